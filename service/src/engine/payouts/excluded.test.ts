import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { type ClaimedOutflow, claimOutflows } from '../../db/claim_outflows.ts'
import { markSpent, upsertCoin } from '../../db/coins.ts'
import { findOutflow } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { stringifyExact } from '../../domain/exact_json.ts'
import { bucketOf } from '../../domain/orders/identifiers.ts'
import type { Coin } from '../../domain/payouts/intent.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  fundReserve,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
  tell,
  writeAttempt,
} from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { worldSigningNothing } from '../testing/willing_signer.ts'
import { endExcluded } from './excluded.ts'
import { giveUpWaiting } from './give_up.ts'
import { orphanOutflows } from './orphan.ts'
import { checkFiller, fillerIdOf, readFillerFunds, takeBackCoins } from './take_back.ts'

/**
 * What: a payout that provably can never be mined ends, together with its filler, and gives back what is left of its coins;
 * while that is not proven, or somebody has gone on with it meanwhile, nothing changes.
 * How: a real PostgreSQL, orders moved by facts, and a chain that says what the test wants.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('excluded')
})

beforeEach(async () => {
  await stage.reset()
  await stage.db.query(
    `INSERT INTO addresses (family, address, purpose, key_index) VALUES ('bitcoin', 'change-7', 'change', 7)`,
  )
})

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n
const COIN = 100_000_000n

/** A chain that has proof, or none; `meanwhile` happens while it looks for it. */
function chainWith(hasProof: boolean, meanwhile: () => Promise<void> = async () => {}): Chain {
  return {
    ...stage.chain('BTC'),
    areExcluded: async () => {
      await meanwhile()
      return hasProof
    },
  }
}

const coins = ['gone', 'stands'].map(
  (txHash): Coin => ({
    txHash,
    index: 0,
    satoshi: COIN,
    address: 'deposit-1',
    key: { purpose: 'deposit', index: 1 },
  }),
)

async function paidOrder() {
  await fundReserve(stage, 'BTC:BTC', 10n * COIN)
  const order = await placeOrder(stage, 'USDT:ERC20', 'BTC:BTC', { asks: 100n * ETHER, promises: COIN })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 100n * ETHER, 60))
  return order
}

async function spendCoins(payoutId: string) {
  for (const coin of coins) await upsertCoin(stage.db, 'BTC', coin, { height: 1, hash: 'h' })
  await markSpent(stage.db, 'BTC', coins, payoutId)
  await stage.db.query('UPDATE attempts SET intent = $1', [
    stringifyExact({ family: 'bitcoin', inputs: coins }),
  ])
}

/** An order whose payout was sent and spends both coins. */
async function send() {
  const order = await paidOrder()
  const { payoutId, txHash } = await sendPayout(stage, order)
  await spendCoins(payoutId)
  await stage.db.query("UPDATE attempts SET answer = 'refused'")
  return { order, payoutId, txHash }
}

/** An order whose payout was drafted out of both coins, and not signed. */
async function draft() {
  const { terms } = await paidOrder()
  await tell(stage, terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  const payoutId = `${terms.id}:1`
  await stage.db.query(
    `INSERT INTO attempts (bucket, payout_id, attempt, intent, drafted_at_ms) VALUES ($1, $2, 1, '{}', 1)`,
    [bucketOf(terms.id), payoutId],
  )
  await spendCoins(payoutId)
  return { payoutId }
}

let claims = 0

/** Every due outflow, by another worker each time. */
async function claim(): Promise<(payoutId: string) => ClaimedOutflow> {
  claims += 1
  stage.advance(1)
  const time = { nowMs: stage.world.clock.nowMs(), wallMs: claims, claimMs: 0 }
  const claimed = await claimOutflows(stage.db, 'BTC', 'reserve', time, 5)
  return (payoutId) => {
    const outflow = claimed.find((one) => one.payoutId === payoutId)
    assert(outflow !== undefined, `${payoutId} is due`)
    return outflow
  }
}

async function takeBack(payoutId: string): Promise<string> {
  const stuck = (await claim())(payoutId)
  await takeBackCoins(worldSigningNothing(stage), stuck)
  return fillerIdOf(stuck)
}

/** It was deep in the chain, so that its payout ended, and has lost its block. */
async function outlivingFiller(payoutId: string): Promise<string> {
  const filler = await takeBack(payoutId)
  await writeAttempt(stage, filler, 1, 'filler-tx')
  await stage.db.query(
    `UPDATE outflows SET state = 'orphaned', mined_height = 100, mined_hash = 'h', mined_cost = 0
     WHERE payout_id = $1`,
    [filler],
  )
  await stage.db.query("UPDATE outflows SET state = 'failed' WHERE payout_id = $1", [payoutId])
  return filler
}

async function statusOfOrder() {
  const [row] = await stage.db.query<{ status: string; reasons: unknown }>(
    'SELECT status, emergency_reasons AS reasons FROM orders',
  )
  return row
}

async function stateOf(payoutId: string) {
  return (await findOutflow(stage.db, payoutId))?.state
}

async function spenders() {
  const rows = await stage.db.query<{ tx_hash: string; spent_by: string | null }>(
    'SELECT tx_hash, spent_by FROM coins',
  )
  return Object.fromEntries(rows.map(({ tx_hash, spent_by }) => [tx_hash, spent_by]))
}

test('a payout ends, its planned filler with it, and its coins are free', async () => {
  const { payoutId } = await send()
  const filler = await takeBack(payoutId)
  expect(await stateOf(filler)).toBe('planned')
  expect(await endExcluded(worldSigningNothing(stage), chainWith(true), (await claim())(payoutId))).toBe(true)
  expect(await stateOf(payoutId)).toBe('failed')
  expect(await stateOf(filler)).toBe('cancelled')
  expect(await statusOfOrder()).toMatchObject({ status: 'EMERGENCY', reasons: ['NETWORK_PROBLEM'] })
  expect(await spenders()).toEqual({ gone: null, stands: null })
})

test('one that was drafted and never signed ends as well', async () => {
  const { payoutId } = await draft()
  expect(await endExcluded(worldSigningNothing(stage), chainWith(true), (await claim())(payoutId))).toBe(true)
  expect(await stateOf(payoutId)).toBe('cancelled')
  expect(await statusOfOrder()).toMatchObject({ status: 'EMERGENCY', reasons: ['NETWORK_PROBLEM'] })
  expect(await spenders()).toEqual({ gone: null, stands: null })
})

test('without proof it goes on waiting, and only its filler is planned', async () => {
  const { payoutId } = await send()
  const stuck = (await claim())(payoutId)
  const troubled = { ...stuck, troubleSinceMs: 0 }
  await giveUpWaiting(worldSigningNothing(stage), chainWith(false), troubled)
  expect(await stateOf(payoutId)).toBe('broadcast')
  expect(await stateOf(fillerIdOf(stuck))).toBe('planned')
  expect(await statusOfOrder()).toMatchObject({ status: 'WITHDRAW' })
  expect(await spenders()).toEqual({ gone: payoutId, stands: payoutId })
})

test('of which the signer knows another transaction nothing is given up', async () => {
  const { payoutId } = await draft()
  const stuck = (await claim())(payoutId)
  await giveUpWaiting(
    worldSigningNothing(stage),
    chainWith(true),
    { ...stuck, troubleSinceMs: 0 },
    'conflict',
  )
  expect(await stateOf(payoutId)).toBe('planned')
  expect(await stateOf(fillerIdOf(stuck))).toBeUndefined()
  expect(await statusOfOrder()).toMatchObject({ status: 'EXCHANGE' })
})

test('before it has waited too long, and while the network has it, nobody is asked for proof', async () => {
  const { payoutId } = await send()
  const stuck = (await claim())(payoutId)
  const asked = chainWith(true, () => Promise.reject(new Error('the chain was asked')))
  const nowMs = stage.world.clock.nowMs()
  await giveUpWaiting(worldSigningNothing(stage), asked, { ...stuck, troubleSinceMs: nowMs })
  await stage.db.query("UPDATE attempts SET answer = 'accepted'")
  await giveUpWaiting(worldSigningNothing(stage), asked, { ...stuck, troubleSinceMs: 0 })
  expect(await stateOf(payoutId)).toBe('broadcast')
})

test('one that was final and lost its block ends, stays owed, and gives back its coins', async () => {
  const { order, payoutId, txHash } = await send()
  await confirmPayout(stage, order, { payoutId, txHash, cost: 21n })
  await stage.db.query("UPDATE chain_blocks SET hash = 'another' WHERE chain = 'BTC' AND height = 100")
  const replaced = { kind: 'replaced', aboveHeight: 0 } as const
  await orphanOutflows(stage.world, 'BTC', replaced, 1, nobodyElse)
  expect(await stateOf(payoutId)).toBe('orphaned')
  expect(await endExcluded(worldSigningNothing(stage), chainWith(true), (await claim())(payoutId))).toBe(true)
  expect(await stateOf(payoutId)).toBe('failed')
  expect(await statusOfOrder()).toMatchObject({ status: 'DONE' })
  expect(await spenders()).toEqual({ gone: null, stands: null })
  expect(stage.logged.filter(({ level }) => level === 'error')).toHaveLength(1)
})

test('a filler that was sent ends with the payout that it stands in for, and not by itself', async () => {
  const { payoutId } = await send()
  const filler = await takeBack(payoutId)
  await writeAttempt(stage, filler, 1, 'filler-tx')
  const claimed = await claim()
  expect(await endExcluded(worldSigningNothing(stage), chainWith(true), claimed(filler))).toBe(false)
  expect(await stateOf(filler)).toBe('broadcast')
  expect(await endExcluded(worldSigningNothing(stage), chainWith(true), claimed(payoutId))).toBe(true)
  expect([await stateOf(payoutId), await stateOf(filler)]).toEqual(['failed', 'failed'])
})

test('a filler that outlived its payout ends by itself, and gives back the coins of both', async () => {
  const { payoutId } = await send()
  const filler = await outlivingFiller(payoutId)
  await stage.db.query("UPDATE coins SET spent_by = $1 WHERE tx_hash = 'gone'", [filler])
  expect(await endExcluded(worldSigningNothing(stage), chainWith(true), (await claim())(filler))).toBe(true)
  expect(await stateOf(filler)).toBe('failed')
  expect(await spenders()).toEqual({ gone: null, stands: null })
  expect(stage.logged.filter(({ level }) => level === 'error')).toEqual([])
})

test.each([
  [
    'another worker has taken it',
    async () => {
      await claim()
    },
  ],
  [
    'a further attempt of it was written down',
    ({ payoutId }: Meanwhile) => writeAttempt(stage, payoutId, 2, 'payout-tx-2'),
  ],
  [
    'an attempt of its filler was written down',
    ({ filler }: Meanwhile) => writeAttempt(stage, filler, 1, 'filler-tx'),
  ],
  [
    'it was found to be final',
    async ({ payoutId }: Meanwhile) => {
      await stage.db.query("UPDATE outflows SET state = 'confirmed' WHERE payout_id = $1", [payoutId])
    },
  ],
] as const)('nothing changes when, while the chain was asked, %s', async (_what, meanwhile) => {
  const { payoutId } = await send()
  const filler: string = await takeBack(payoutId)
  const stuck = (await claim())(payoutId)
  const chain = chainWith(true, (): Promise<void> => meanwhile({ payoutId, filler }))
  expect(await endExcluded(worldSigningNothing(stage), chain, stuck)).toBe(false)
  expect(await stateOf(payoutId)).not.toBe('failed')
  expect(await stateOf(filler)).not.toBe('cancelled')
  expect(await statusOfOrder()).toMatchObject({ status: 'WITHDRAW' })
  expect(await spenders()).toEqual({ gone: payoutId, stands: payoutId })
})

type Meanwhile = { readonly payoutId: string; readonly filler: string }

test('a filler that ended because its payout was sent after all is planned again when that is refused once more', async () => {
  const { payoutId } = await send()
  const filler = await takeBack(payoutId)
  await stage.db.query("UPDATE attempts SET answer = 'accepted'")
  expect(await checkFiller(worldSigningNothing(stage), (await claim())(filler))).toBe('over')
  expect(await stateOf(filler)).toBe('cancelled')
  await stage.db.query("UPDATE attempts SET answer = 'refused'")
  await takeBack(payoutId)
  const check = async () => checkFiller(worldSigningNothing(stage), (await claim())(filler))
  expect(await check(), 'it may still pass').toBe('waits')
  await stage.db.query("UPDATE outflows SET trouble = 'refused', trouble_since_ms = 1 WHERE payout_id = $1", [
    payoutId,
  ])
  expect(await check(), 'for half an hour').toBe('needed')
  expect(await stateOf(filler)).toBe('planned')
})

test('a filler that lost its block is sent again, although its payout, which it ended, had been sent once', async () => {
  const { payoutId } = await send()
  const filler = await outlivingFiller(payoutId)
  const answer = 'UPDATE attempts SET answer = $2 WHERE payout_id = $1'
  await stage.db.query(answer, [payoutId, 'accepted'])
  // The network has forgotten it, and does not take it for what it bids.
  await stage.db.query(answer, [filler, 'refused'])
  expect(await checkFiller(worldSigningNothing(stage), (await claim())(filler))).toBe('needed')
})

test('a filler that ended because its payout was final is sent again when that has lost its block', async () => {
  const { order, payoutId, txHash } = await send()
  const filler = await takeBack(payoutId)
  await writeAttempt(stage, filler, 1, 'filler-tx')
  await confirmPayout(stage, order, { payoutId, txHash, cost: 21n })
  expect(await checkFiller(worldSigningNothing(stage), (await claim())(filler))).toBe('over')
  expect(await stateOf(filler)).toBe('failed')
  await stage.db.query("UPDATE outflows SET state = 'orphaned' WHERE payout_id = $1", [payoutId])
  // The network had both once, and has neither now.
  await stage.db.query("UPDATE attempts SET answer = 'accepted' WHERE payout_id = $1", [filler])
  await takeBack(payoutId)
  expect(await stateOf(filler)).toBe('signed')
  await stage.db.query("UPDATE attempts SET answer = 'accepted' WHERE payout_id = $1", [payoutId])
  expect(
    await checkFiller(worldSigningNothing(stage), (await claim())(filler)),
    'it has the payout again',
  ).toBe('waits')
})

test('a dearer attempt of a filler takes back what its earlier one does, although there is more by now', async () => {
  const { payoutId } = await send()
  const filler = await takeBack(payoutId)
  const fundsOf = async () => {
    const funds = await readFillerFunds(stage.db, (await claim())(filler))
    assert(funds.model === 'coins' && funds.outbids !== undefined, 'it takes back coins')
    return { coins: funds.coins.map(({ txHash }) => txHash), outbids: funds.outbids.length }
  }
  await stage.db.query("UPDATE coins SET block_height = NULL, block_hash = NULL WHERE tx_hash = 'gone'")
  expect(await fundsOf()).toEqual({ coins: ['stands'], outbids: 1 })
  await writeAttempt(stage, filler, 1, 'filler-tx')
  await stage.db.query('UPDATE attempts SET intent = $2 WHERE payout_id = $1', [
    filler,
    stringifyExact({ family: 'bitcoin', inputs: coins.filter(({ txHash }) => txHash === 'stands') }),
  ])
  for (const coin of coins) await upsertCoin(stage.db, 'BTC', coin, { height: 2, hash: 'again' })
  expect(await fundsOf(), 'it pays more than both').toEqual({ coins: ['stands'], outbids: 2 })
})

test.each([
  ['accepted', 'needed'],
  ['unknown', 'needed'],
  ['refused', 'waits'],
] as const)(
  'a filler whose last answer was %s is %s when its payout was sent after all',
  async (answer, what) => {
    const { payoutId } = await send()
    const filler = await takeBack(payoutId)
    await writeAttempt(stage, filler, 1, 'filler-tx')
    await stage.db.query(
      "UPDATE attempts SET answer = CASE WHEN payout_id = $1 THEN 'accepted' ELSE $2 END",
      [payoutId, answer],
    )
    expect(await checkFiller(worldSigningNothing(stage), (await claim())(filler))).toBe(what)
  },
)

test('nobody plans a filler for what has ended', async () => {
  const { payoutId } = await send()
  const stuck = (await claim())(payoutId)
  expect(await endExcluded(worldSigningNothing(stage), chainWith(true), stuck)).toBe(true)
  await takeBackCoins(worldSigningNothing(stage), stuck)
  expect(await stateOf(fillerIdOf(stuck))).toBeUndefined()
})

test('where payouts spend no coins there is nothing to ask', async () => {
  const { payoutId } = await send()
  const stuck = (await claim())(payoutId)
  expect(await endExcluded(worldSigningNothing(stage), stage.chain('BTC'), stuck)).toBe(false)
})
