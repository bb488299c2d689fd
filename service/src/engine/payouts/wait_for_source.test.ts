import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { saveComparison } from '../../db/reconciliations.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { HOUR_MS, MINUTE_MS } from '../../domain/time.ts'
import {
  type BooksStage,
  confirmDeposit,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  tell,
} from '../testing/books_stage.ts'
import { PAPER_FEES, payingChain } from '../testing/paying_chain.ts'
import { pricedOrder } from '../testing/priced_order.ts'
import { openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { workPayouts } from './work.ts'

/**
 * What: nothing is signed for a deposit that has left the chain since its payout was drafted, however long the signer was away, or whose
 * chain holds less than the books say, or that the books do not know, nor more than they owe; and nothing is sent for one that left while
 * the signer took its time, nor on a chain that was stopped meanwhile; and the time that a payout waited for its draft is none that it was refused for.
 * How: a real PostgreSQL, orders moved by facts, a chain on paper that can be paid on, and a signer that comes and goes.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('wait_for_source')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

/** It signs while `isThere` says so. */
function signingWorld(isThere: () => boolean, signed: string[] = []): SigningWorld {
  return worldWithSigner(stage, {
    lastSigned: async (payoutId) => signed.filter((one) => one === payoutId).length,
    lastOutflow: async (orderId) => signed.filter((one) => one.startsWith(`${orderId}:`)).length,
    sign: async ({ payoutId, attempt }) => {
      if (!isThere()) throw new Error('the signer is away')
      signed.push(payoutId)
      return accept({ txHash: `tx-${payoutId}-${attempt}`, bytes: 'ff' })
    },
  })
}

/** Its payout is planned, and the reserve covers it. */
async function coveredOrder() {
  await openReserve(stage)
  return pricedOrder(stage)
}

async function outflows() {
  return stage.db.query('SELECT kind, state, trouble FROM outflows ORDER BY planned_at_ms, state DESC')
}

async function pass(minutes: number) {
  stage.advance(minutes * MINUTE_MS)
  await lookAt(stage, 'BTC', 100)
}

/** An order whose payout is drafted, with its deposit taken out of its block while the signer is away, and back since. */
async function orphanedOrder() {
  const { id, key } = await coveredOrder()
  let isThere = false
  const signed: string[] = []
  const world = signingWorld(() => isThere, signed)
  const chain = payingChain(stage)
  await workPayouts(world, chain)
  expect(await outflows()).toMatchObject([{ state: 'planned', trouble: expect.stringContaining('is away') }])
  await tell(stage, id, `${key}:unmined:blockhash`, { kind: 'DepositUnmined', key })
  isThere = true
  return { id, key, signed, work: () => workPayouts(world, chain) }
}

test('a payout that was drafted is signed only while its deposit is still in its block', async () => {
  const { id, signed, work } = await orphanedOrder()
  await pass(1)
  await work()
  expect(await outflows()).toMatchObject([
    { state: 'planned', trouble: expect.stringContaining('confirmed') },
  ])
  expect(signed).toEqual([])
  // The nonce that it has is filled, so that those behind it go out.
  for (let minute = 0; minute <= stage.world.policy.stallMs / MINUTE_MS; minute += 1) {
    await pass(1)
    await work()
  }
  expect(await outflows()).toMatchObject([{ kind: 'payout', state: 'planned' }, { kind: 'filler' }])
  expect(signed).not.toContain(`${id}:1`)
})

const seenAgain = async (height: number, units = 1_000_000n) => ({
  txHash: 'again',
  amount: { asset: 'BTC:BTC', units } as const,
  seenAtMs: stage.world.clock.nowMs(),
  block: { height, hash: (await stage.chain('BTC').blockHash(height)) ?? '' },
})

test('a payout that was drafted is not signed when its deposit is gone for good', async () => {
  const { id, key, signed, work } = await orphanedOrder()
  await pass(1)
  await tell(stage, id, `${key}:vanished`, { kind: 'DepositVanished', key })
  await pass(1)
  await work()
  expect(await outflows()).toMatchObject([
    { state: 'planned', trouble: expect.stringContaining('confirmed') },
  ])
  expect(signed).toEqual([])
})

test('it is signed when its deposit was mined again and is as deep as before, and not until then', async () => {
  const { id, key, signed, work } = await orphanedOrder()
  stage.advance(MINUTE_MS)
  await lookAt(stage, 'BTC', 120)
  const again = await seenAgain(120)
  await tell(stage, id, `${key}:again`, { kind: 'DepositSeen', key, ...again })
  await work()
  expect(signed, 'it is in the newest block').toEqual([])
  stage.advance(MINUTE_MS)
  await lookAt(stage, 'BTC', 125)
  await tell(stage, id, `${key}:confirmed:again`, { kind: 'DepositConfirmed', key })
  await work()
  expect(signed).toEqual([`${id}:1`])
})

test('it is not signed when its deposit came back with less', async () => {
  const { id, key, signed, work } = await orphanedOrder()
  stage.advance(MINUTE_MS)
  await lookAt(stage, 'BTC', 120)
  const again = await seenAgain(110, 999_999n)
  await tell(stage, id, `${key}:again`, { kind: 'DepositSeen', key, ...again })
  await tell(stage, id, `${key}:confirmed:again`, { kind: 'DepositConfirmed', key })
  await work()
  expect(signed).toEqual([])
})

test('it is not signed on the word of a look that is still to come: the clock was set back since', async () => {
  await openReserve(stage)
  stage.advance(HOUR_MS)
  await pricedOrder(stage)
  stage.advance(-HOUR_MS)
  await stage.db.query('UPDATE outflows SET due_at_ms = $1', [stage.world.clock.nowMs()])
  const signed: string[] = []
  const world = signingWorld(() => true, signed)
  await workPayouts(world, payingChain(stage))
  expect(await outflows()).toMatchObject([
    { state: 'planned', trouble: expect.stringContaining('does not answer') },
  ])
  expect(signed).toEqual([])
  await pass(1)
  await workPayouts(world, payingChain(stage))
  expect(await outflows()).toMatchObject([{ state: 'broadcast' }])
})

test.each([
  [59_000, 'broadcast'],
  [-5_000, 'broadcast'],
  [61_000, 'planned'],
  [-6_000, 'planned'],
] as const)('where a watcher whose clock is %i ms ahead looks, it is %s', async (aheadMs, state) => {
  await coveredOrder()
  await stage.db.query('UPDATE chain_heads SET looked_wall_ms = $1', [stage.world.clock.wallMs() + aheadMs])
  await workPayouts(
    signingWorld(() => true),
    payingChain(stage),
  )
  expect(await outflows()).toMatchObject([{ state }])
})

/** So many comparisons of what the books say of a chain with the chain, in each of which that differs by so much. */
async function compare(times: number, difference: bigint, chain: 'BTC' | 'ETH' = 'BTC'): Promise<void> {
  const units = { ledgerUnits: 1_000_000n, inFlight: 0n, chainUnits: 1_000_000n + difference, difference }
  for (let made = 0; made < times; made += 1) {
    const time = { nowMs: stage.world.clock.nowMs(), dueWallMs: 0 }
    await saveComparison(stage.db, chain, { asset: nativeAsset(chain).id, height: 100, ...units }, time)
  }
}

test('nothing is paid for a deposit on a chain that holds less than the books say, until both agree', async () => {
  const { id } = await coveredOrder()
  const signed: string[] = []
  const work = () =>
    workPayouts(
      signingWorld(() => true, signed),
      payingChain(stage),
    )
  await compare(3, -1n)
  await work()
  expect(await outflows()).toMatchObject([
    { state: 'planned', trouble: 'BTC, where the deposit is, holds less than the books say' },
  ])
  expect(await stage.db.query('SELECT 1 FROM attempts')).toEqual([])
  await compare(1, 0n)
  await pass(1)
  await work()
  expect(signed).toEqual([`${id}:1`])
})

test('its customer is asked when that lasts for too long', async () => {
  await coveredOrder()
  await compare(3, -1n)
  for (let minute = 0; minute <= stage.world.policy.stallMs / MINUTE_MS; minute += 1) {
    await workPayouts(
      signingWorld(() => true),
      payingChain(stage),
    )
    await pass(1)
  }
  expect(await stage.db.query('SELECT status FROM orders')).toEqual([{ status: 'EMERGENCY' }])
})

test.each([
  ['it differed twice', 2, -1n],
  ['the chain holds more', 3, 1n],
])('a payout leaves while %s', async (_, times, difference) => {
  await coveredOrder()
  await compare(times, difference)
  await workPayouts(
    signingWorld(() => true),
    payingChain(stage),
  )
  expect(await outflows()).toMatchObject([{ state: 'broadcast' }])
})

/** A deposit that no chain has, of as much as the order asks, and the order as it is once that is confirmed; none of it in the books. */
async function inventDeposit(orderId: string): Promise<void> {
  const block = await stage.chain('BTC').blockHash(90)
  await stage.corrupt(
    `INSERT INTO deposits (bucket, order_id, deposit_key, chain, tx_hash, asset, units, role, is_late, state, seen_at_ms,
       block_height, block_hash)
     SELECT bucket, order_id, 'BTC:invented:0', 'BTC', 'invented', from_asset, asks, 'counted', false, 'confirmed',
       created_at_ms, 90, $2 FROM orders WHERE order_id = $1`,
    [orderId, block],
  )
  await stage.corrupt(`UPDATE orders SET status = 'EXCHANGE' WHERE order_id = $1`, [orderId])
}

test('nothing is paid for a deposit that the books do not know', async () => {
  await openReserve(stage)
  const { terms } = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  await inventDeposit(terms.id)
  await tell(stage, terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  await lookAt(stage, 'BTC', 100)
  const world = signingWorld(() => true)
  for (const _ of [1, 2]) {
    await workPayouts(world, payingChain(stage))
    await pass(1)
  }
  const trouble = 'the confirmed deposit BTC:invented:0 of 0.01 BTC:BTC is booked with 0 BTC:BTC'
  expect(await outflows()).toMatchObject([{ state: 'planned', trouble }])
  expect(await stage.db.query('SELECT 1 FROM attempts')).toEqual([])
  const told = stage.logged.filter(({ message }) => message === 'an outflow has to wait')
  expect(told, 'once').toEqual([expect.objectContaining({ facts: { payout: `${terms.id}:1`, trouble } })])
})

test.each([
  [
    'a deposit that was enlarged',
    'UPDATE deposits SET units = units * 2',
    'of 0.02 BTC:BTC is booked with 0.01 BTC:BTC',
  ],
  [
    'more than its order settled for',
    'UPDATE outflows SET units = units * 2',
    'it pays 2 ETH:ETH, and the books owe its order 1 ETH:ETH',
  ],
])('nothing is paid for %s', async (_, sql, trouble) => {
  await coveredOrder()
  await stage.corrupt(sql)
  const signed: string[] = []
  await workPayouts(
    signingWorld(() => true, signed),
    payingChain(stage),
  )
  expect(await outflows()).toMatchObject([{ state: 'planned', trouble: expect.stringContaining(trouble) }])
  expect(signed).toEqual([])
})

test('no more is refunded than the books owe', async () => {
  await openReserve(stage)
  const order = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: 10n ** 18n, promises: 1_000_000n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 5n * 10n ** 17n, 100))
  const refund = {
    amount: amountOf('ETH:ETH', 10n ** 17n),
    networkFee: amountOf('ETH:ETH', 4n * 10n ** 17n),
    address: 'outside',
  }
  await tell(stage, order.terms.id, 'chosen:1', { kind: 'ActionChosen', action: 'refund', refund })
  await lookAt(stage, 'ETH', 100)
  const world = signingWorld(() => true)
  await stage.corrupt('UPDATE outflows SET units = units + 1')
  await workPayouts(world, payingChain(stage))
  expect(await outflows()).toMatchObject([
    { kind: 'refund', state: 'planned', trouble: expect.stringContaining('the books owe its order') },
  ])
  await stage.corrupt('UPDATE outflows SET units = units - 1')
  await pass(1)
  await lookAt(stage, 'ETH', 100)
  await workPayouts(world, payingChain(stage))
  expect(await outflows()).toMatchObject([{ kind: 'refund', state: 'broadcast' }])
})

/** A chain that notes what it was sent, and calls `bidding` when a payout is drafted. */
function notingChain(bidding: () => Promise<void> = async () => {}) {
  const sent: string[] = []
  const chain = payingChain(stage, {
    bid: async () => {
      await bidding()
      return accept({ family: 'evm', ...PAPER_FEES })
    },
    lookup: async () => ({ where: 'absent' }),
    broadcast: async ({ txHash }) => {
      sent.push(txHash)
      return 'accepted'
    },
  })
  return { chain, sent }
}

/** It takes two seconds to answer, and `meanwhile` happens in those. */
function slowSigner(meanwhile: () => Promise<void>): SigningWorld {
  return worldWithSigner(stage, {
    sign: async ({ payoutId }) => {
      stage.advance(2_000)
      await meanwhile()
      return accept({ txHash: `tx-${payoutId}`, bytes: 'ff' })
    },
  })
}

test('what the signer took its time for is sent after another look at its deposit', async () => {
  const { id } = await coveredOrder()
  const world = slowSigner(async () => {})
  const { chain, sent } = notingChain()
  await workPayouts(world, chain)
  expect(await outflows()).toMatchObject([{ state: 'signed', trouble: null }])
  expect(sent).toEqual([])
  await workPayouts(world, chain)
  expect(await outflows()).toMatchObject([{ state: 'broadcast' }])
  expect(sent).toEqual([`tx-${id}:1`])
})

test('it is never sent when its deposit has gone while the signer took its time', async () => {
  const { id, key } = await coveredOrder()
  const world = slowSigner(() => tell(stage, id, `${key}:unmined:blockhash`, { kind: 'DepositUnmined', key }))
  const { chain, sent } = notingChain()
  for (let round = 0; round < 5; round += 1) {
    await workPayouts(world, chain)
    await pass(1)
  }
  expect(await outflows()).toMatchObject([{ state: 'signed', trouble: expect.stringContaining('confirmed') }])
  expect(sent).toEqual([])
})

test('nor is it signed when its block has gone while the node took its time for the draft', async () => {
  await coveredOrder()
  const signed: string[] = []
  const { chain } = notingChain(async () => {
    stage.advance(2_000)
    stage.chain('BTC').fork(100)
  })
  await workPayouts(
    signingWorld(() => true, signed),
    chain,
  )
  expect(await outflows()).toMatchObject([
    { state: 'planned', trouble: expect.stringContaining('not in the chain') },
  ])
  expect(await stage.db.query('SELECT 1 FROM attempts'), 'it is drafted').toHaveLength(1)
  expect(signed).toEqual([])
})

test('nor is it when the chain that it leaves on was stopped meanwhile', async () => {
  await coveredOrder()
  const signed: string[] = []
  const { chain } = notingChain(async () => {
    stage.advance(2_000)
    await compare(3, 1n, 'ETH')
  })
  await workPayouts(
    signingWorld(() => true, signed),
    chain,
  )
  expect(await outflows()).toMatchObject([
    { state: 'planned', trouble: 'outflows of ETH are stopped: ledger and chain differ' },
  ])
  expect(await stage.db.query('SELECT 1 FROM attempts'), 'it is drafted').toHaveLength(1)
  expect(signed).toEqual([])
})

test('what was claimed with it is not drafted when the chain was stopped while the signer took its time', async () => {
  await coveredOrder()
  await pricedOrder(stage)
  const world = slowSigner(() => compare(3, 1n, 'ETH'))
  const { chain, sent } = notingChain()
  await workPayouts({ ...world, policy: { ...world.policy, atOnce: 1 } }, chain)
  expect(await outflows()).toMatchObject([
    { state: 'signed', trouble: null },
    { state: 'planned', trouble: 'outflows of ETH are stopped: ledger and chain differ' },
  ])
  expect(await stage.db.query('SELECT 1 FROM attempts')).toHaveLength(1)
  expect(sent).toEqual([])
})

test('nor is what was drafted before when that chain was stopped while the node of its deposit took its time', async () => {
  await coveredOrder()
  let isThere = false
  const signed: string[] = []
  const world = signingWorld(() => isThere, signed)
  const { chain, sent } = notingChain()
  await workPayouts(world, chain)
  expect(await outflows()).toMatchObject([{ state: 'planned', trouble: expect.stringContaining('signer') }])
  isThere = true
  await pass(1)
  const btc = stage.chain('BTC')
  const slow: Chain = {
    ...btc,
    blockHash: async (height) => {
      stage.advance(2_000)
      await compare(3, 1n, 'ETH')
      return btc.blockHash(height)
    },
  }
  await workPayouts({ ...world, chains: new Map(world.chains).set('BTC', slow) }, chain)
  expect(await outflows()).toMatchObject([
    { state: 'planned', trouble: 'outflows of ETH are stopped: ledger and chain differ' },
  ])
  expect(signed).toEqual([])
  expect(sent).toEqual([])
})

test('a filler that the signer took its time for is not sent on a chain that was stopped meanwhile', async () => {
  await orphanedOrder()
  const slow = slowSigner(() => compare(3, 1n, 'ETH'))
  // At once with the filler its payout might read that nothing is stopped, after the signer took its time and before anything is.
  const world = { ...slow, policy: { ...slow.policy, atOnce: 1 } }
  const { chain, sent } = notingChain()
  for (let minute = 0; minute <= stage.world.policy.stallMs / MINUTE_MS; minute += 1) {
    await pass(1)
    await workPayouts(world, chain)
  }
  await pass(1)
  await workPayouts(world, chain)
  expect(await outflows()).toMatchObject([
    { kind: 'payout', state: 'planned' },
    { kind: 'filler', state: 'signed', trouble: 'outflows of ETH are stopped: ledger and chain differ' },
  ])
  expect(sent).toEqual([])
})

test('it is signed when its deposit is there all the same', async () => {
  await coveredOrder()
  let isThere = false
  const world = signingWorld(() => isThere)
  await workPayouts(world, payingChain(stage))
  isThere = true
  await pass(10)
  await workPayouts(world, payingChain(stage))
  expect(await outflows()).toMatchObject([{ state: 'broadcast', trouble: null }])
})

test('what waited for its draft nearly as long as it may is not given up when its first answer is lost', async () => {
  await coveredOrder()
  let hasFunds = false
  const world = signingWorld(() => true)
  const chain = payingChain(stage, {
    bid: async () =>
      hasFunds
        ? accept({ family: 'evm', ...PAPER_FEES })
        : refuse({ code: 'funds', message: 'there is none yet' }),
    lookup: async () => ({ where: 'absent' }),
    broadcast: async () => 'unknown',
  })
  for (let minute = 1; minute < stage.world.policy.stallMs / MINUTE_MS; minute += 1) {
    await workPayouts(world, chain)
    await pass(1)
  }
  hasFunds = true
  await workPayouts(world, chain)
  await pass(2)
  await workPayouts(world, chain)
  expect(await outflows()).toMatchObject([
    { kind: 'payout', trouble: expect.stringContaining('did not say') },
  ])
})
