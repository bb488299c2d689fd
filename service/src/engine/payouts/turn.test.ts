import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { insertAddresses } from '../../db/addresses.ts'
import { type AssetId, assetOf } from '../../domain/catalog/assets.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { MINUTE_MS } from '../../domain/time.ts'
import {
  type BooksStage,
  confirmDeposit,
  fundReserve,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  RESERVE,
  tell,
} from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { payingStellar } from '../testing/paying_stellar.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { workPayouts } from './work.ts'

/**
 * What: payouts that only wait for those before them are in no trouble, however long that takes, and no nonce is filled before it is next.
 * Where an account has one transaction waiting they take a nonce when it is their turn.
 * How: a real PostgreSQL, orders moved by facts, and chains on paper whose mined nonce and answers the test chooses.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('turn')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n

/** What its node says from now on. */
type Node = {
  mined: number
  readonly answers: Record<string, 'accepted' | 'refused' | 'unknown'>
  readonly sent: string[]
  readonly signed: string[]
}

/** Hashes are made of what is paid: `tx-CB…:1#2` is a second attempt. */
function openNode(mined: number): Node & { readonly world: SigningWorld; readonly parts: Partial<Chain> } {
  const node: Node = { mined, answers: {}, sent: [], signed: [] }
  const world = worldWithSigner(stage, {
    sign: async ({ payoutId, attempt }) => {
      node.signed.push(payoutId)
      return accept({ txHash: `tx-${payoutId}#${attempt}`, bytes: 'ff' })
    },
  })
  const parts: Partial<Chain> = {
    minedNonce: async () => node.mined,
    broadcast: async ({ txHash }) => {
      const payoutId = txHash.slice(3).split('#')[0] ?? ''
      node.sent.push(payoutId)
      return node.answers[payoutId] ?? 'accepted'
    },
  }
  return Object.assign(node, { world, parts })
}

/** Payouts that are due, the first one first. */
async function planPayouts(asset: AssetId, count: number): Promise<readonly string[]> {
  const { family } = chainFacts[assetOf(asset).chain]
  await insertAddresses(stage.db, family, 'reserve', 0, [RESERVE])
  if (family === 'evm') await fundReserve(stage, 'ETH:ETH', 1_000n * ETHER)
  const payoutIds: string[] = []
  for (let made = 0; made < count; made += 1) {
    const order = await placeOrder(stage, 'BTC:BTC', asset, { asks: 1_000_000n, promises: 1_000n })
    await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
    await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
    payoutIds.push(`${order.terms.id}:1`)
    stage.advance(1)
  }
  return payoutIds
}

let height = 100

/** A minute passes, a block of it is looked at, and whatever is due has a step. */
async function work(world: SigningWorld, chain: Chain, minutes = 1): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    stage.advance(MINUTE_MS)
    await lookAt(stage, 'BTC', 100)
    height += 1
    await lookAt(stage, chain.id, height)
    await workPayouts(world, chain)
  }
}
async function outflows() {
  return stage.db.query<{ id: string; state: string; nonce: number | null; trouble: string | null }>(
    'SELECT payout_id AS id, state, nonce, trouble FROM outflows ORDER BY nonce NULLS LAST, planned_at_ms',
  )
}

async function fillers() {
  return (await outflows()).map(({ id }) => id).filter((id) => id.startsWith('house-'))
}

const STALL_MINUTES = 31

test('of payouts on Stellar that are due together one has a sequence, and the others are in no trouble', async () => {
  const [first, second, third] = await planPayouts('XLM:XLM', 3)
  const node = openNode(1)
  const chain = payingStellar(stage, node.parts)
  await work(node.world, chain, 3)
  const waits = { state: 'planned', nonce: null, trouble: null }
  const after = await outflows()
  expect(after).toMatchObject([{ state: 'broadcast', nonce: 1, trouble: null }, waits, waits])
  const leader = after[0]?.id
  expect([first, second, third]).toContain(leader)
  expect(new Set(node.sent), 'nothing before its turn').toEqual(new Set([leader]))
  await work(node.world, chain, STALL_MINUTES)
  expect((await outflows()).slice(1)).toMatchObject([waits, waits])

  const served = [leader]
  for (const nonce of [2, 3]) {
    node.mined = nonce
    stage.chain('XLM').mined(`tx-${served.at(-1)}#1`, height + 1, 100n)
    await work(node.world, chain, 2)
    const now = (await outflows()).find((one) => one.nonce === nonce)
    expect(now).toMatchObject({ state: 'broadcast', trouble: null })
    served.push(now?.id)
  }
  expect(new Set(served)).toEqual(new Set([first, second, third]))
  expect(node.signed, 'each once').toEqual(served)
  expect(await fillers()).toEqual([])
})

test('what of Stellar has a later sequence is neither sent nor signed nor filled before it is next, and then it is', async () => {
  const [first, second] = await planPayouts('XLM:XLM', 2)
  const node = openNode(1)
  const chain = payingStellar(stage, node.parts)
  await work(node.world, chain)
  const [{ id: leader = '' } = {}] = await outflows()
  const behind = (leader === first ? second : first) ?? ''
  // As it was drafted by an earlier release: before its turn.
  node.mined = 2
  node.answers[behind] = 'unknown'
  await work(node.world, chain)
  node.mined = 1
  const [sent, signed] = [node.sent.filter((id) => id === behind).length, node.signed.length]
  expect([sent > 0, signed]).toEqual([true, 2])
  await work(node.world, chain, STALL_MINUTES + 2)
  expect(await outflows()).toMatchObject([
    { id: leader, nonce: 1, trouble: null },
    { id: behind, nonce: 2, trouble: null },
  ])
  expect(node.sent.filter((id) => id === behind)).toHaveLength(sent)
  expect(node.signed).toHaveLength(signed)

  node.mined = 2
  node.answers[behind] = 'refused'
  stage.chain('XLM').mined(`tx-${leader}#1`, height + 1, 100n)
  await work(node.world, chain, STALL_MINUTES - 3)
  expect((await outflows())[1]).toMatchObject({ id: behind, trouble: expect.stringContaining('refuses') })
  expect(await fillers(), 'its trouble began with its turn').toEqual([])
  await work(node.world, chain, 4)
  expect(await fillers()).toEqual(['house-XLM-2:1'])
})

test('what of Stellar has a later sequence goes out as soon as it is next', async () => {
  await planPayouts('XLM:XLM', 2)
  const node = openNode(1)
  const chain = payingStellar(stage, node.parts)
  await work(node.world, chain)
  node.mined = 2
  const [{ id: leader = '' } = {}, { id: behind = '' } = {}] = await outflows()
  node.answers[behind] = 'unknown'
  await work(node.world, chain)
  node.mined = 1
  await work(node.world, chain, STALL_MINUTES)
  node.mined = 2
  node.answers[behind] = 'accepted'
  stage.chain('XLM').mined(`tx-${leader}#1`, height + 1, 100n)
  await work(node.world, chain)
  expect(await outflows()).toMatchObject([
    { id: leader, state: 'confirmed' },
    { id: behind, state: 'broadcast', trouble: null },
  ])
  expect(
    node.signed.filter((id) => id === behind),
    'what was signed before its turn',
  ).toHaveLength(1)
})

test('what stands behind a sequence that nobody has is in trouble', async () => {
  const [alone] = await planPayouts('XLM:XLM', 1)
  const node = openNode(3)
  node.answers[alone ?? ''] = 'unknown'
  const chain = payingStellar(stage, node.parts)
  await work(node.world, chain)
  node.mined = 2
  await work(node.world, chain, STALL_MINUTES)
  expect(await outflows()).toMatchObject([{ nonce: 3, trouble: expect.stringContaining('did not say') }])
})

test('what is in the way of all, and of the one before them, sends those that wait to their customers', async () => {
  await planPayouts('XLM:XLM', 2)
  const node = openNode(1)
  const cheap = payingStellar(stage, node.parts)
  await work(node.world, cheap)
  const [{ id: leader = '' } = {}] = await outflows()
  node.answers[leader] = 'refused'
  const message = 'the ledger asks more than the cap'
  const dear: Chain = { ...cheap, bid: async () => refuse({ code: 'fee_cap', message }) }
  await work(node.world, dear, STALL_MINUTES + 3)
  const statuses = await stage.db.query<{ status: string }>(
    `SELECT status FROM orders ORDER BY order_id || ':1' = $1 DESC`,
    [leader],
  )
  expect(statuses).toEqual([{ status: 'WITHDRAW' }, { status: 'EMERGENCY' }])
})

/** The XRP Ledger on paper, which says of what has to wait that nobody can say. */
function payingXrp(parts: Partial<Chain>): Chain {
  return {
    ...stage.chain('XRP'),
    balance: async () => 10n ** 30n,
    bid: async () => accept({ family: 'xrp', feeDrops: 15n, lastLedgerSequence: 200 }),
    draft: ({ payoutId, address: to, units: drops }, _, funds) => {
      if (funds.model !== 'account') throw new Error('the XRP Ledger has accounts')
      const { from, nonce: sequence } = funds
      const what = { payoutId, attempt: 1, from, sequence, payment: { to, tag: null, drops } }
      return accept({
        family: 'xrp',
        chain: 'XRP',
        networkId: 0,
        ...what,
        feeDrops: 15n,
        lastLedgerSequence: 200,
      })
    },
    raise: () => refuse({ code: 'network', message: 'there is no need' }),
    ...parts,
  }
}

test.each(['unknown', 'refused'] as const)(
  'a payout on the XRP Ledger that is %s only behind another is in no trouble, and is sent meanwhile',
  async (answer) => {
    await planPayouts('XRP:XRP', 2)
    const node = openNode(1)
    await work(node.world, payingXrp(node.parts))
    const [{ id: leader = '' } = {}, { id: behind = '' } = {}] = await outflows()
    node.answers[behind] = answer
    await work(node.world, payingXrp(node.parts), STALL_MINUTES + 2)
    expect(await outflows()).toMatchObject([
      { id: leader, nonce: 1 },
      { id: behind, nonce: 2, trouble: null },
    ])
    expect(node.sent.filter((id) => id === behind).length).toBeGreaterThan(STALL_MINUTES)
  },
)

test('a payout on Ethereum that is refused behind another is filled when it is next, and not before', async () => {
  await planPayouts('ETH:ETH', 2)
  const node = openNode(0)
  const chain = payingChain(stage, {
    ...node.parts,
    raise: () => refuse({ code: 'network', message: 'there is no need' }),
  })
  await work(node.world, chain)
  const [{ id: leader = '' } = {}, { id: behind = '' } = {}] = await outflows()
  node.answers[behind] = 'refused'
  await work(node.world, chain, STALL_MINUTES + 2)
  expect(await fillers()).toEqual([])
  node.mined = 1
  stage.chain('ETH').mined(`tx-${leader}#1`, height + 1, 100n)
  await work(node.world, chain, 2)
  expect(await fillers()).toEqual(['house-ETH-1:1'])
})
