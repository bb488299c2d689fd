import { expect, test } from 'vitest'
import { requiredDepth } from './required_depth.ts'
import { Witness } from './witness.ts'

/**
 * What: whoever signs for what is gone, or has not all come back, is noticed, whether anybody has told of it or not, and however many
 * digits the amounts have.
 * How: the tables are made by hand, and the chain says when a block was lost.
 */
type Row = { deposit_key: string; state: string; units: string }
type Story = { readonly deposits: readonly Row[]; readonly units: string | null; readonly lostAtMs?: number }

const LOOK_MS = 1_500

/** What is said of a payout that was signed at 2 s, in a look that began before; `unmined`: told in this moment, of this deposit. */
async function signWith({ deposits, units, lostAtMs }: Story, unmined: readonly [number, Row][] = []) {
  let nowMs = 0
  let told: Row | undefined
  const rows = async (sql: string): Promise<never[]> => {
    if (sql.includes("state = 'confirmed'")) return (told?.state === 'confirmed' ? [{}] : []) as never[]
    if (sql.includes('settled_received')) return [{ order_id: 'CB1', units }] as never[]
    if (!sql.includes('d.deposit_key')) return []
    const block = { chain: 'BTC', asset: 'BTC:BTC', tx_hash: 'tx', block_hash: 'block' }
    return deposits.map((deposit) => ({ ...deposit, ...block })) as never[]
  }
  const node = { lostAtMs: () => lostAtMs ?? null, deepestSince: () => 6 }
  const witness = new Witness(
    rows,
    () => ({ BTC: node }) as never,
    () => nowMs,
    requiredDepth('1'),
  )
  const look = (begunAtMs: number) => ({ name: 'a look', begunAtMs }) as never
  for (const [atMs, deposit] of unmined) {
    nowMs = atMs
    told = deposit
    await witness.see(look(0), 'INSERT INTO facts', [1, 'CB1', `${deposit.deposit_key}:unmined:block`], 1)
  }
  nowMs = 2_000
  await witness.see(look(LOOK_MS), 'INSERT INTO signer.signed_transactions', ['CB1:1', 1], 1)
  return witness.problems
}

const one = (state: string, units: string): Row => ({ deposit_key: 'BTC:one:0', state, units })
const other = (state: string, units: string): Row => ({ deposit_key: 'BTC:other:0', state, units })
const notAllBack = 'nothing is signed for a deposit that is gone, or not deep again: CB1:1'
const gone = 'nothing is signed for a deposit that is gone: CB1:1 for BTC:one:0'

test('two thirds are back, and they have fewer digits', async () => {
  const deposits = [one('confirmed', '666667'), other('seen', '333333')]
  expect(await signWith({ deposits, units: '1000000' }, [[1_000, other('confirmed', '333333')]])).toEqual([
    notAllBack,
  ])
})

test('more than all is back, and it has more digits', async () => {
  const deposits = [one('confirmed', '10000000')]
  expect(await signWith({ deposits, units: '8000000' }, [[1_000, one('confirmed', '10000000')]])).toEqual([])
})

test('what was told before the look is not forgotten for what is told after it', async () => {
  const deposits = [one('seen', '600'), other('seen', '400')]
  const unmined: [number, Row][] = [
    [1_000, one('confirmed', '600')],
    [1_800, other('confirmed', '400')],
  ]
  expect(await signWith({ deposits, units: '1000' }, unmined)).toEqual([notAllBack])
})

test('what was back when the look began, and is lost again, was there to be seen', async () => {
  const deposits = [one('seen', '1000')]
  const unmined: [number, Row][] = [
    [1_000, one('confirmed', '1000')],
    [1_800, one('confirmed', '1000')],
  ]
  expect(await signWith({ deposits, units: '1000' }, unmined)).toEqual([])
})

test('a block that was lost before the look, and that nobody has told of', async () => {
  const deposits = [one('confirmed', '1000')]
  expect(await signWith({ deposits, units: '1000', lostAtMs: LOOK_MS - 1 })).toEqual([gone])
  expect(await signWith({ deposits, units: '1000', lostAtMs: LOOK_MS + 1 })).toEqual([])
})

test('an order that is neither exchanged nor refunded', async () => {
  const said = 'nothing is signed for nothing: CB1:1'
  expect(await signWith({ deposits: [one('confirmed', '1000')], units: null })).toEqual([said])
})

/** What is said of a payout that failed at 2 s; a block of its chain was lost then. */
async function failWith(mayPay: boolean, lostAtMs = 0) {
  const rows = async () => [{ chain: 'BTC', bytes: 'bytes' }] as never[]
  const node = { mayPay: () => mayPay, lastLostAtMs: () => lostAtMs }
  const witness = new Witness(
    rows,
    () => ({ BTC: node }) as never,
    () => 500,
    requiredDepth('1'),
  )
  const look = { name: 'a look', begunAtMs: LOOK_MS } as never
  await witness.see(look, 'UPDATE chain_heads SET node_height', ['BTC', 7], 1)
  await witness.see(look, 'UPDATE outflows SET state = $4 WHERE', [1, 'CB1:1', ['signed'], 'failed'], 1)
  return witness.problems
}

test('what was given up and may yet be mined', async () => {
  expect(await failWith(true)).toEqual(['nothing is over that may yet be mined: CB1:1 on BTC'])
  expect(await failWith(false)).toEqual([])
})

test('what was given up when nobody had looked at a lost block yet', async () => {
  expect(await failWith(true, LOOK_MS - 1)).toEqual([])
})
