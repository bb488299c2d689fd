import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Transfer } from '../../chains/chain.ts'
import { listUnclaimed, type Unclaimed } from '../../db/house_deposits.ts'
import { apply } from '../apply.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  RESERVE,
  sendPayout,
  strayDeposit,
  tell,
} from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { runOrderCommand } from '../testing/stage_commands.ts'
import { bookHouseDeposits, noteHouseDeposit } from './house.ts'

/**
 * What: of what no order could use, an operator is told what may still count: given back by hand, it would be paid twice; and what came
 * to the reserve, where money that somebody sends back looks like his own.
 * How: a real PostgreSQL, and an order that is paid once more while its payout is under way.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('unclaimed')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

async function told() {
  const rows = await listUnclaimed(stage.db, 100)
  return rows.map(({ kind, units, status, may_count }) => ({ kind, units, status, may_count }))
}

/** What `cambist order …` prints. */
function run(...words: string[]): Promise<string> {
  return runOrderCommand(stage, words)
}

test('the command says of what may still count that it may not be given back yet', async () => {
  expect(await run('unclaimed')).toBe('There is no unclaimed money.')
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
  const payout = await sendPayout(stage, order)
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 500_000n, 95))
  expect(await run('unclaimed')).toMatch(
    new RegExp(` extra +0\\.005 BTC:BTC +\\w+ +${order.terms.id} +not yet: the order is WITHDRAW$`),
  )
  await confirmPayout(stage, order, { ...payout, cost: 1n })
  expect(await run('unclaimed')).toMatch(new RegExp(` ${order.terms.id} +yes$`))
})

test('no more unclaimed money is listed than was asked for, the newest first, and the command says that there is more', async () => {
  const stray = { asset: 'BTC:BTC', address: 'late', purpose: 'deposit' } as const
  await strayDeposit(stage, { ...stray, units: 7_000n, height: 100 })
  stage.advance(1)
  await strayDeposit(stage, { ...stray, units: 8_000n, height: 101 })
  const all: { units: string }[] = JSON.parse(await run('unclaimed', '--json'))
  expect(all.map(({ units }) => units)).toEqual(['8000', '7000'])
  const lines = (await run('unclaimed', '--limit', '1')).split('\n')
  expect(lines.slice(1)).toEqual([
    expect.stringContaining('0.00008 BTC:BTC'),
    '',
    'There are more than these 1: --limit shows them.',
  ])
  await expect(run('unclaimed', '--limit', 'all')).rejects.toThrow('all is not a count from 1 to 99999')
})

test('the command says of what is not confirmed that it may not be given back yet, wherever it came', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
  const payout = await sendPayout(stage, order)
  const extra = await mineDeposit(stage, order, 500_000n, 101)
  const answers = async () => {
    const rows: { kind: string; is_final: boolean }[] = JSON.parse(await run('unclaimed', '--json'))
    const lines = (await run('unclaimed')).split('\n').slice(1)
    return rows.map(({ kind, is_final }, at) => [kind, is_final, lines[at]?.split(/ {2,}/).at(-1)])
  }
  expect(await answers()).toEqual([['extra', false, 'not yet: it is not final, and the order is WITHDRAW']])
  await confirmPayout(stage, order, { ...payout, cost: 1n })
  await strayDeposit(stage, {
    asset: 'BTC:BTC',
    units: 7_000n,
    address: 'late',
    purpose: 'deposit',
    height: 101,
  })
  expect(await answers()).toEqual([
    ['extra', false, 'not yet: it is not final'],
    ['stray', false, 'not yet: it is not final'],
  ])
  await confirmDeposit(stage, order, extra)
  await lookAt(stage, 'BTC', 110)
  await bookHouseDeposits(stage.world, 'BTC', 110, 0, nobodyElse)
  expect(await answers()).toEqual([
    ['extra', true, 'yes'],
    ['stray', true, 'yes'],
  ])
})

test('what Bitcoin has confirmed may be given back six blocks deep, as the service pays large amounts', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 90))
  await confirmPayout(stage, order, { ...(await sendPayout(stage, order)), cost: 1n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 500_000_000n, 100))
  const stray = { address: 'late', purpose: 'deposit', height: 100 } as const
  await strayDeposit(stage, { ...stray, asset: 'BTC:BTC', units: 500_000_000n })
  await strayDeposit(stage, { ...stray, asset: 'ETH:ETH', units: 10n ** 18n })
  await lookAt(stage, 'ETH', 111)
  await bookHouseDeposits(stage.world, 'ETH', 111, 0, nobodyElse)
  await bookHouseDeposits(stage.world, 'BTC', 102, 0, nobodyElse)
  const answers = async () => {
    const lines = (await run('unclaimed')).split('\n').slice(1)
    return lines.map((line) =>
      / (?:5|1) (\S+) +(confirmed) .*? (yes|not yet.*)$/.exec(line)?.slice(1).join(' '),
    )
  }
  const answer = (bitcoin: string) =>
    [bitcoin, bitcoin, 'yes'].map((word, at) => `${at < 2 ? 'BTC:BTC' : 'ETH:ETH'} confirmed ${word}`)
  for (const height of [102, 104]) {
    await lookAt(stage, 'BTC', height)
    expect(await answers()).toEqual(answer('not yet: it is not final'))
  }
  await lookAt(stage, 'BTC', 105)
  expect(await answers()).toEqual(answer('yes'))
})

test('what replaces the lost deposit of an order that was paid may not be given back: it may be the same money', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  const { id } = order.terms
  // One that was replaced before the order was paid: nothing was paid for it, and it keeps nothing back.
  const never = await mineDeposit(stage, order, 1_500_000n, 90)
  await tell(stage, id, `${never}:unmined`, { kind: 'DepositUnmined', key: never })
  await tell(stage, id, `${never}:vanished`, { kind: 'DepositVanished', key: never })
  const lost = await mineDeposit(stage, order, 1_000_000n, 95)
  await confirmDeposit(stage, order, lost)
  await confirmPayout(stage, order, { ...(await sendPayout(stage, order)), cost: 1n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 999_000n, 95))
  expect(await run('unclaimed')).toMatch(/ yes$/)
  await tell(stage, id, `${lost}:unmined`, { kind: 'DepositUnmined', key: lost })
  const isKept = / not yet: what the order was paid for is gone$/
  expect(await run('unclaimed')).toMatch(isKept)
  await tell(stage, id, `${lost}:vanished`, { kind: 'DepositVanished', key: lost })
  expect(await run('unclaimed')).toMatch(isKept)
  expect(JSON.parse(await run('unclaimed', '--json'))).toMatchObject([
    { kind: 'extra', is_final: true, may_count: false, may_replace: true },
  ])
  await mineDeposit(stage, order, 1_000_000n, 96)
  expect(await run('unclaimed'), 'it is back, and not deep yet').toMatch(isKept)
  await tell(stage, id, `${lost}:confirmed:again`, { kind: 'DepositConfirmed', key: lost })
  expect(await run('unclaimed')).toMatch(/ yes$/)
})

test('the commands and the log name the transaction, also where the key of a deposit does not', async () => {
  const block = { height: 100, hash: 'block' }
  const transfer = { id: '1', txHash: 'a-hash', to: 'GACCOUNT', asset: 'XLM:XLM', units: 7n } as const
  const own = {
    address: 'GACCOUNT',
    key: { purpose: 'reserve', index: 1 },
    orderId: null,
    chain: null,
  } as const
  await noteHouseDeposit(stage.world, 'XLM', transfer, own, block)
  expect(stage.logged).toMatchObject([{ level: 'warn', facts: { deposit: 'XLM:1', tx: 'a-hash' } }])
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  const { id, depositAddress } = order.terms
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
  await sendPayout(stage, order)
  await mineDeposit(stage, order, 500_000n, 100)
  const told = [
    ['BTC', `deposit-tx-${id}-500000`, depositAddress, stage.world.clock.nowMs()],
    ['XLM', 'a-hash', 'GACCOUNT', stage.world.clock.nowMs()],
  ]
  const rows: Unclaimed[] = JSON.parse(await run('unclaimed', '--json'))
  expect(rows.map((row) => [row.chain, row.tx_hash, row.address, row.seen_at_ms])).toEqual(told)
  const seen = '2027-01-15 08:00:00Z'
  expect(await run('unclaimed')).toMatch(new RegExp(`^XLM:1 +a-hash +${seen} +GACCOUNT +stray `, 'm'))
  expect(await run('show', id)).toMatch(new RegExp(`${seen} +deposit-tx-${id}-1000000$`, 'm'))
})

test('an order is shown with what came to its address and is not its own', async () => {
  const place = () => placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: 10n ** 18n, promises: 1_000_000n })
  const [order, other] = [await place(), await place()]
  const { id, depositAddress } = order.terms
  const none = "At its address, not the order's: none"
  expect(await run('show', id)).toContain(none)
  const own = {
    address: depositAddress,
    key: { purpose: 'deposit', index: 1 },
    orderId: id,
    chain: 'ETH',
  } as const
  const came = (id: string, asset: Transfer['asset']) => ({
    id,
    txHash: `tx-${id}`,
    to: depositAddress,
    asset,
    units: 7n,
  })
  const block = { height: 100, hash: 'block' }
  await noteHouseDeposit(stage.world, 'BNB', came('1', 'USDT:BEP20'), own, block)
  await noteHouseDeposit(stage.world, 'ETH', came('2', { unlisted: '0xtoken' }), own, block)
  const shown = await run('show', id)
  expect(shown).toMatch(
    /^BNB:1 +stray +0\.000000000000000007 USDT:BEP20 +mined +2027-01-15 08:00:00Z +tx-1$/m,
  )
  expect(shown).toMatch(/^ETH:2 +unlisted +7 units of 0xtoken +mined +2027-01-15 08:00:00Z +tx-2$/m)
  expect(JSON.parse(await run('show', id, '--json'))).toMatchObject({
    at_address: [{ tx_hash: 'tx-1' }, { tx_hash: 'tx-2' }],
  })
  expect(await run('show', other.terms.id)).toContain(none)
})

test('of what an order cannot use, the log tells once that it is booked; of dust it tells nothing', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
  await confirmPayout(stage, order, { ...(await sendPayout(stage, order)), cost: 1n })
  const extra = await mineDeposit(stage, order, 500_000n, 101)
  const foreign = await mineDeposit(stage, order, 10n ** 18n, 101, 'ETH:ETH')
  expect(stage.logged, 'nothing is there before it is final').toEqual([])
  for (const key of [extra, foreign]) await confirmDeposit(stage, order, key)
  for (const asset of ['BTC:BTC', 'ETH:ETH'] as const)
    await confirmDeposit(stage, order, await mineDeposit(stage, order, 3n, 101, asset))
  const again = { kind: 'DepositConfirmed', key: extra } as const
  await apply(stage.world, order.terms.id, `${extra}:confirmed:blockhash`, again)
  await apply(stage.world, order.terms.id, `${extra}:confirmed:another`, again)
  const told = (deposit: string, role: string, asset: string, amount: string) => ({
    level: 'warn',
    message: 'money came that its order cannot use now',
    facts: { order: order.terms.id, status: 'DONE', deposit, role, asset, amount },
  })
  expect(stage.logged).toEqual([
    told(extra, 'extra', 'BTC:BTC', '0.005'),
    told(foreign, 'foreign', 'ETH:ETH', '1'),
  ])
})

const atReserve = { address: RESERVE, purpose: 'reserve', height: 101 } as const

test('of what came to the reserve the log tells once that it is booked, and the command lists it: somebody may have sent it back', async () => {
  expect(await run('unclaimed', '--reserve')).toBe('Nothing came to a reserve.')
  await strayDeposit(stage, { ...atReserve, asset: 'ETH:ETH', units: 5n * 10n ** 17n })
  const rows = async () => {
    const lines = (await run('unclaimed', '--reserve')).split('\n')
    return lines.slice(1).map((line) => line.split(/ {2,}/))
  }
  const came = 'house-tx-ETH:ETH-500000000000000000'
  const row = (state: string, final: string) => [
    `ETH:${came}:0`,
    '0.5 ETH:ETH',
    state,
    final,
    expect.stringMatching(/^2027-/),
    came,
  ]
  expect(await rows()).toEqual([row('mined', 'not yet')])
  expect(stage.logged, 'nothing is there before it is final').toEqual([])
  const book = () => bookHouseDeposits(stage.world, 'ETH', 130, 0, nobodyElse)
  await book()
  await book()
  await lookAt(stage, 'ETH', 130)
  expect(await rows()).toEqual([row('confirmed', 'yes')])
  expect(JSON.parse(await run('unclaimed', '--reserve', '--json'))).toMatchObject([
    { tx_hash: came, asset: 'ETH:ETH', units: '500000000000000000', is_final: true },
  ])
  expect(stage.logged).toEqual([
    {
      level: 'warn',
      message: 'money came to the reserve: a top-up of yours, or money sent back by a receiver',
      facts: { chain: 'ETH', deposit: `ETH:${came}:0`, tx: came, asset: 'ETH:ETH', amount: '0.5' },
    },
  ])
  expect(await run('unclaimed'), 'it is booked as capital').toBe('There is no unclaimed money.')
})

test('of what came to the reserve of Bitcoin, the command says that it is final six deep, whatever the amount', async () => {
  await strayDeposit(stage, { ...atReserve, asset: 'BTC:BTC', units: 500_000_000n })
  await bookHouseDeposits(stage.world, 'BTC', 130, 0, nobodyElse)
  const isFinalAt = async (height: number) => {
    await lookAt(stage, 'BTC', height)
    return JSON.parse(await run('unclaimed', '--reserve', '--json'))[0].is_final
  }
  expect(await isFinalAt(105)).toBe(false)
  expect(await isFinalAt(106)).toBe(true)
})

test('of dust at the reserve neither tells, nor the log of what names its tag, which only an operator knows', async () => {
  await strayDeposit(stage, { ...atReserve, asset: 'ETH:ETH', units: 1n })
  await strayDeposit(stage, { ...atReserve, asset: 'XRP:XRP', units: 1_000_000n })
  for (const chain of ['ETH', 'XRP'] as const) await bookHouseDeposits(stage.world, chain, 130, 0, nobodyElse)
  expect(stage.logged).toEqual([])
  const arrivals: { asset: string }[] = JSON.parse(await run('unclaimed', '--reserve', '--json'))
  expect(arrivals.map(({ asset }) => asset)).toEqual(['XRP:XRP'])
})

test('the commands find an order by its last digits, and list those of a status', async () => {
  const place = () => placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  const [paid, waits] = [await place(), await place()]
  await confirmDeposit(stage, paid, await mineDeposit(stage, paid, 1_000_000n, 100))
  const shown = await run('show', paid.terms.id.slice(-8))
  expect(shown).toMatch(new RegExp(`^Order +${paid.terms.id}\\n`))
  expect(await run('show', paid.terms.id)).toBe(shown)
  const idsOf = (text: string) => text.match(/^CB\d{16}/gm)
  expect(idsOf(await run('list', '--status', 'new'))).toEqual([waits.terms.id])
  expect(idsOf(await run('list'))).toHaveLength(2)
  expect(idsOf(await run('list', '--limit', '1'))).toHaveLength(1)
  for (const [words, told] of [
    [['show', '99999999'], 'There is no order that ends with'],
    [['show', '9999999'], 'neither an order id nor its last 8 digits'],
    [['show', `CB${'9'.repeat(16)}`], 'There is no order'],
    [['list', '--status', 'paid'], 'is not a status'],
    [['list', '--limit', '0'], 'is not a count'],
    [['list', '--trouble', '--status', 'NEW'], 'leave out --status'],
  ] as const)
    await expect(run(...words)).rejects.toThrow(told)
})

test('a list that was cut says so', async () => {
  for (const _ of [1, 2]) await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 1n })
  expect(await run('list', '--limit', '1')).toMatch(/\n\nThere are more than these 1: --limit shows them\.$/)
  expect(await run('list', '--limit', '2')).not.toContain('There are more')
  expect(JSON.parse(await run('list', '--limit', '1', '--json'))).toHaveLength(1)
})

test('what is in the way of outflows is listed, the longest first, and nothing of what was given up', async () => {
  expect(await run('list', '--trouble')).toBe('Nothing is in the way of any outflow or exchange.')
  const ids: string[] = []
  for (const _ of [1, 2, 3]) {
    const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
    await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
    await sendPayout(stage, order)
    ids.push(order.terms.id)
  }
  const [givenUp, short, long] = ids
  const trouble = (id: string | undefined, state: string, sinceMs: number, why: string) =>
    stage.corrupt(
      `UPDATE outflows SET state = $2, trouble = $4, trouble_since_ms = $3, mined_height = 1, mined_hash = 'block',
         mined_cost = 1 WHERE order_id = $1`,
      [id, state, sinceMs, why],
    )
  await trouble(givenUp, 'failed', 1_000, 'it was refused')
  await trouble(short, 'broadcast', 3_000, 'no answer')
  await trouble(long, 'orphaned', 2_000, 'an empty reserve')
  await stage.db.query(
    `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms,
       trouble, trouble_since_ms)
     VALUES (0, 'sweep', 'sweep:1', 'sweep', 'ETH', 'USDT:ERC20', 5000000, 'a', 'planned', 1, 1, 'no gas', 4000)`,
  )
  const lines = (await run('list', '--trouble')).split('\n').map((line) => line.split(/ {2,}/))
  expect(lines).toEqual([
    ['ORDER', 'OUTFLOW', 'CHAIN', 'KIND', 'STATE', 'AMOUNT', 'SINCE', 'TROUBLE'],
    [long, `${long}:1`, 'ETH', 'payout', 'orphaned', '1 ETH:ETH', '1970-01-01 00:00:02Z', 'an empty reserve'],
    [short, `${short}:1`, 'ETH', 'payout', 'broadcast', '1 ETH:ETH', '1970-01-01 00:00:03Z', 'no answer'],
    [
      '-',
      'sweep:1',
      'ETH',
      'sweep',
      'planned',
      '0.000000000005 USDT:ERC20',
      '1970-01-01 00:00:04Z',
      'no gas',
    ],
  ])
  expect(await run('list', '--trouble', '--limit', '2')).toContain('There are more than these 2')
})

test('what came to an order may count until that one is done: dust of what it asks for as well, which may complete it', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 3n, 100))
  expect(await told()).toEqual([{ kind: 'dust', units: 3n, status: 'NEW', may_count: true }])
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
  const payout = await sendPayout(stage, order)
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 500_000n, 101))
  expect(await told()).toEqual([
    { kind: 'dust', units: 3n, status: 'WITHDRAW', may_count: true },
    { kind: 'extra', units: 500_000n, status: 'WITHDRAW', may_count: true },
  ])
  await confirmPayout(stage, order, { ...payout, cost: 1n })
  expect(await told()).toEqual([
    { kind: 'dust', units: 3n, status: 'DONE', may_count: false },
    { kind: 'extra', units: 500_000n, status: 'DONE', may_count: false },
  ])
})
