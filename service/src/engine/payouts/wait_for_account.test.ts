import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { insertAddresses } from '../../db/addresses.ts'
import { assert } from '../../domain/assert.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { MINUTE_MS } from '../../domain/time.ts'
import type { Signer } from '../../signer/signer.ts'
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
import { payingStellar, STELLAR_PRICES } from '../testing/paying_stellar.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import { workPayouts } from './work.ts'

/**
 * What: of payouts to somebody without an account one makes it, and the others wait until it is there.
 * How: a real PostgreSQL, orders moved by facts, and a Stellar on paper whose account is there when the test says so.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('wait_for_account')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n
const SOMEBODY = 'somebody'
/** On the account of somebody, as a muxed address is. */
const AMONG_THEM = 'somebody+7'

type Horizon = { hasAccount: boolean; onBid: () => Promise<void> }

function stellarOn(horizon: Horizon): Chain {
  return payingStellar(stage, {
    bid: async ({ address }) => {
      const creates = !horizon.hasAccount
      await horizon.onBid()
      if (creates && address === AMONG_THEM)
        return refuse({ code: 'destination', message: 'it has no account yet' })
      return accept({ family: 'stellar', ...STELLAR_PRICES, creates })
    },
    raise: () => refuse({ code: 'network', message: 'there is no need' }),
  })
}

async function planPayouts(...addresses: readonly string[]): Promise<readonly string[]> {
  await insertAddresses(stage.db, 'stellar', 'reserve', 0, [RESERVE])
  await fundReserve(stage, 'ETH:ETH', ETHER)
  const payoutIds = []
  for (const address of addresses) {
    const order = await placeOrder(stage, 'ETH:ETH', 'XLM:XLM', { asks: ETHER, promises: 1_000n })
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
    await stage.corrupt('UPDATE outflows SET address = $2 WHERE order_id = $1', [order.terms.id, address])
    payoutIds.push(`${order.terms.id}:1`)
    stage.advance(1)
  }
  return payoutIds
}

/** The watcher has seen the ledger at `height`, and it is `minutes` later. */
async function pass(height: number, minutes = 1): Promise<void> {
  stage.advance(minutes * MINUTE_MS)
  await lookAt(stage, 'ETH', 100)
  await lookAt(stage, 'XLM', height)
}

async function outflows() {
  const rows = await stage.db.query<{ nonce: number | null; trouble: string | null; creates: string | null }>(
    `SELECT state, nonce, trouble, (SELECT intent #>> '{payment,creates}' FROM attempts a
       WHERE a.payout_id = o.payout_id AND attempt = 1) AS creates
     FROM outflows o WHERE kind = 'payout' ORDER BY nonce NULLS LAST, payout_id`,
  )
  return rows
}

const WAITS = { state: 'planned', nonce: null, trouble: null, creates: null }

/** Resolves to all who came when so many have. */
function meeting(count: number): () => Promise<void> {
  let come = 0
  const met = Promise.withResolvers<void>()
  return () => {
    come += 1
    if (come >= count) met.resolve()
    return met.promise
  }
}

test('of two that find no account at the same moment one makes it, and the other pays there', async () => {
  const payoutIds = await planPayouts(SOMEBODY, SOMEBODY)
  const horizon: Horizon = { hasAccount: false, onBid: meeting(2) }
  const chain = stellarOn(horizon)
  const world = worldWithSigner(stage)
  await workPayouts(world, chain)
  expect(await outflows()).toEqual([{ state: 'broadcast', nonce: 1, trouble: null, creates: 'true' }, WAITS])

  await pass(101)
  await workPayouts(world, chain)
  expect((await outflows())[1], 'no ledger has had it').toEqual(WAITS)

  const [made] = await stage.db.query<{ payout_id: string }>('SELECT payout_id FROM attempts')
  expect(payoutIds).toContain(made?.payout_id)
  stage.chain('XLM').mined(`tx-${made?.payout_id}`, 102, 100n)
  horizon.hasAccount = true
  await pass(102)
  await workPayouts(world, chain)
  await pass(103)
  await workPayouts(world, chain)
  expect(await outflows()).toEqual([
    { state: 'confirmed', nonce: 1, trouble: null, creates: 'true' },
    { state: 'broadcast', nonce: 2, trouble: null, creates: 'false' },
  ])
})

test('what cannot make the account waits for what does', async () => {
  await planPayouts(SOMEBODY)
  const horizon: Horizon = { hasAccount: false, onBid: async () => {} }
  const world = worldWithSigner(stage)
  await workPayouts(world, stellarOn(horizon))
  await planPayouts(AMONG_THEM)
  await workPayouts(world, stellarOn(horizon))
  expect((await outflows())[1]).toEqual(WAITS)
})

test('an account that was made while a node said otherwise is not made again', async () => {
  const horizon: Horizon = { hasAccount: false, onBid: async () => {} }
  const world = worldWithSigner(stage)
  const [payoutId] = await planPayouts(SOMEBODY)
  const late: Horizon = {
    hasAccount: false,
    onBid: async () => {
      late.onBid = async () => {}
      await planPayouts(SOMEBODY)
      await workPayouts(world, stellarOn(horizon))
      const [other] = await stage.db.query<{ payout_id: string }>('SELECT payout_id FROM attempts')
      assert(other !== undefined && other.payout_id !== payoutId, 'the other one is drafted')
      stage.chain('XLM').mined(`tx-${other.payout_id}`, 101, 100n)
      await pass(101, 0.05)
      await workPayouts(world, stellarOn(horizon))
    },
  }
  await workPayouts(world, stellarOn(late))
  expect(await outflows()).toEqual([{ state: 'confirmed', nonce: 1, trouble: null, creates: 'true' }, WAITS])
})

test('nobody is given up who waits for an account, and who waits for one that is given up makes it', async () => {
  await planPayouts(SOMEBODY)
  let refused: string | null = null
  const sign: Signer['sign'] = async ({ payoutId }) => {
    refused ??= payoutId
    return payoutId === refused
      ? refuse({ code: 'limit_exceeded', message: 'it does not sign' })
      : accept({ txHash: `tx-${payoutId}`, bytes: 'ff' })
  }
  const world = worldWithSigner(stage, { sign })
  const chain = stellarOn({ hasAccount: false, onBid: async () => {} })
  await workPayouts(world, chain)
  await planPayouts(SOMEBODY)
  const { stallMs } = world.policy
  for (let minute = 0; minute <= stallMs / MINUTE_MS; minute += 1) {
    await pass(101 + minute)
    await workPayouts(world, chain)
  }
  const statuses = async () =>
    (await stage.db.query<{ status: string }>('SELECT status FROM orders ORDER BY order_id')).map(
      ({ status }) => status,
    )
  expect((await outflows())[1]).toEqual(WAITS)
  expect(await statuses()).toEqual(['EXCHANGE', 'EXCHANGE'])

  await pass(200)
  await workPayouts(world, chain)
  stage.chain('XLM').mined('tx-house-XLM-1:1', 200, 100n)
  for (let height = 201; height < 204; height += 1) {
    await pass(height)
    await workPayouts(world, chain)
  }
  expect(await statuses()).toEqual(['EMERGENCY', 'WITHDRAW'])
  expect((await outflows())[1]).toEqual({ state: 'broadcast', nonce: 2, trouble: null, creates: 'true' })
})
