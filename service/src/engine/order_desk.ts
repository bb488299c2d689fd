import { createHash } from 'node:crypto'
import { assignAddress } from '../db/addresses.ts'
import { appendEvent, findSnapshot, insertFact } from '../db/books.ts'
import type { Sql } from '../db/database.ts'
import { findOrder, findOrderByToken, insertOrder } from '../db/orders.ts'
import { findNewestRateLock, findRateLock, type RateLock } from '../db/rate_locks.ts'
import { fillRetrySlot, findRetrySlot } from '../db/retry_slots.ts'
import { assert } from '../domain/assert.ts'
import { type Asset, assetOf } from '../domain/catalog/assets.ts'
import { chainFacts } from '../domain/catalog/networks.ts'
import { type Amount, parseAmount } from '../domain/money/amount.ts'
import {
  isOrderId,
  ORDER_ID_DIGITS,
  orderIdOf,
  SHORT_ID_DIGITS,
  shortIdOf,
} from '../domain/orders/identifiers.ts'
import type { Order, OrderTerms } from '../domain/orders/order.ts'
import { sealedTermsOf } from '../domain/orders/seal.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import { type Quote, type RateType, shareOf } from '../domain/quotes/quote.ts'
import type { CreateRequest, Desk, DeskOutcome, DeskRejection, OrderView, RetrySlot } from './desk.ts'
import { findPair, makeQuote, type Pair, readAmount, readMarket } from './quoting.ts'
import { lockOf } from './rate_desk.ts'
import { viewOrder } from './view.ts'
import type { DeskWorld } from './world.ts'

type Refused<Value> = Outcome<Value, DeskRejection>
type Created = { readonly order: OrderView; readonly isReplay: boolean }

/** POST /v1/order/create and GET /v1/order/{order_id}. */
export function orderDesk(world: DeskWorld): Pick<Desk, 'createOrder' | 'findOrder'> {
  return {
    createOrder: async (accountId, request, retry) => {
      const created = await createOrder(world, accountId, request, retry)
      if (!created.ok) return created
      const { order, isReplay } = created.value
      // Made again from the order id, so that a replay gives the same token; only its hash is stored.
      return { ok: true, value: { order, token: world.tokenOf(order.order_id), isReplay } }
    },
    findOrder: async (id, viewer) => {
      const order = await find(world, id, viewer)
      return order === null ? null : viewOrder(order, world.market)
    },
  }
}

const SHORT_ID = new RegExp(`^\\d{${SHORT_ID_DIGITS}}$`)

/** A token finds its order by the short id and by the full one; an account by the full one. */
async function find(
  world: DeskWorld,
  id: string,
  viewer: Parameters<Desk['findOrder']>[1],
): Promise<Order | null> {
  const isFull = isOrderId(id)
  if (viewer.kind === 'token') {
    if (!isFull && !SHORT_ID.test(id)) return null
    const order = await findOrderByToken(world.db, isFull ? shortIdOf(id) : id, hashToken(viewer.token))
    return !isFull || order?.terms.id === id ? order : null
  }
  const order = isFull ? await findOrder(world.db, id) : null
  return order?.terms.accountId === viewer.accountId ? order : null
}

function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** The event of its creation. */
const FIRST_SEQUENCE = 1

async function createOrder(
  world: DeskWorld,
  accountId: string,
  request: CreateRequest,
  retry: RetrySlot,
): Promise<DeskOutcome<Created>> {
  const earlier = await replay(world, accountId, retry)
  if (earlier !== null) return earlier
  const plan = await planOrder(world, request)
  if (!plan.ok) return plan
  const order = await openOrder(world, accountId, plan.value, retry)
  if (order === 'taken') {
    const first = await replay(world, accountId, retry)
    assert(first !== null, 'a retry slot that was taken is filled')
    return first
  }
  if (order === 'no_address') {
    return refuse({
      code: 'MAINTENANCE',
      message: 'no deposit address is ready at the moment; try again in a few seconds',
    })
  }
  return accept({ order: viewOrder(order, world.market), isReplay: false })
}

async function replay(
  world: DeskWorld,
  accountId: string,
  retry: RetrySlot,
): Promise<DeskOutcome<Created> | null> {
  const slot = await findRetrySlot(world.db, accountId, retry.slot)
  if (slot === null) return null
  if (slot.bodyHash !== retry.bodyHash) return refuse(idempotencyConflict)
  // As it was answered the first time, whatever became of the order since: its first event keeps that.
  const first = await findSnapshot(world.db, slot.orderId, FIRST_SEQUENCE)
  assert(first !== null, 'a filled slot names an order, and an order has its first event')
  return accept({ order: first as OrderView, isReplay: true })
}

export const idempotencyConflict: DeskRejection = {
  code: 'IDEMPOTENCY_CONFLICT',
  message: 'this Idempotency-Key was used with another request; use a new key for a new request',
}

type Plan = {
  readonly request: CreateRequest
  readonly pair: Pair
  readonly quote: Quote
  readonly feeShare: bigint
  /** One moment for all of it: what is agreed now is created now. */
  readonly createdAtMs: number
  readonly expiresAtMs: number
  readonly destination: string
  readonly refundAddress: string | null
}

/** DESIGN 3, Errors: pair, networks, address and tag, rate lock, amount, in this order. */
async function planOrder(world: DeskWorld, request: CreateRequest): Promise<Refused<Plan>> {
  const pair = findPair(request)
  if (!pair.ok) return pair
  // An offer from before does not open a pair that is closed now (spec 4.3, rule 3).
  const open = readMarket(world.market, pair.value, request.rateType)
  if (!open.ok && open.rejection.code === 'MAINTENANCE') return open
  const destination = readAddress(world, pair.value.to, request.destination, 'destination')
  if (!destination.ok) return destination
  const refund =
    request.refundAddress === null
      ? accept(null)
      : readAddress(world, pair.value.from, request.refundAddress, 'refund_address')
  if (!refund.ok) return refund
  const amount = readAmount(pair.value.from, request.amount)
  if (!amount.ok) return amount
  const agreed = await agreeRate(world, pair.value, amount.value, request)
  if (!agreed.ok) return agreed
  return accept({
    request,
    pair: pair.value,
    ...agreed.value,
    destination: destination.value,
    refundAddress: refund.value,
  })
}

function readAddress(world: DeskWorld, asset: Asset, text: string, field: string): Refused<string> {
  const chain = world.chains.get(asset.chain)
  if (chain === undefined) {
    return refuse({
      code: 'MAINTENANCE',
      message: `${asset.network} is not available at the moment; try again later`,
    })
  }
  const address = chain.parseAddress(text)
  if (address.ok) return address
  const message = `${field} is not a valid ${asset.network} address: ${address.rejection.message}`
  return refuse({ code: 'INVALID_ADDRESS', message, details: [{ field, message }] })
}

type Agreed = Pick<Plan, 'quote' | 'feeShare' | 'createdAtMs' | 'expiresAtMs'>

async function agreeRate(
  world: DeskWorld,
  pair: Pair,
  amount: Amount,
  request: CreateRequest,
): Promise<Refused<Agreed>> {
  const nowMs = world.clock.nowMs()
  const { policy } = world
  if (request.rateType === 'fixed') {
    const lock = await findLock(world, pair, amount, request.rateId)
    if (!lock.ok) return lock
    if (lock.value !== null) {
      const leftMs = lock.value.expiresAtMs - nowMs
      if (leftMs < policy.lockLeastLeftMs) return refuse(rateExpired)
      return accept(keep(lock.value, nowMs))
    }
  }
  const market = readMarket(world.market, pair, request.rateType)
  if (!market.ok) return market
  const quote = makeQuote(market.value, 'from', amount)
  if (!quote.ok) return quote
  if (request.rateType === 'float') {
    return accept({
      quote: quote.value,
      feeShare: policy.fees.float,
      createdAtMs: nowMs,
      expiresAtMs: nowMs + policy.floatOpenMs,
    })
  }
  // Not stored: nobody was promised this rate but this order. Kept, it would give a later order of the same amount
  // an old rate for what is left of its time, and then refuse it for an hour.
  return accept(keep(lockOf(world, quote.value, nowMs), nowMs))
}

function keep(lock: RateLock, createdAtMs: number): Agreed {
  return { quote: lock, feeShare: lock.feeShare, createdAtMs, expiresAtMs: lock.expiresAtMs }
}

const rateExpired: DeskRejection = {
  code: 'RATE_EXPIRED',
  message: 'the fixed rate has expired; request a new rate and create the order with it',
}

/** With `rate_id` that lock; without, the newest on the same pair and amount; null: there is none to keep to. */
async function findLock(
  world: DeskWorld,
  pair: Pair,
  amount: Amount,
  rateId: string | null,
): Promise<Refused<RateLock | null>> {
  const sinceMs = world.clock.nowMs() - world.policy.lockMemoryMs
  if (rateId === null) {
    return accept(await findNewestRateLock(world.db, pair.from.id, pair.to.id, amount.units, sinceMs))
  }
  const lock = await findRateLock(world.db, rateId)
  if (lock === null || lock.expiresAtMs <= sinceMs) return refuse(rateExpired)
  const isSame =
    lock.from.asset === pair.from.id && lock.to.asset === pair.to.id && lock.from.units === amount.units
  if (isSame) return accept(lock)
  const message = 'rate_id belongs to a quote on another pair, network or amount'
  return refuse({ code: 'INVALID_PARAMETER', message, details: [{ field: 'rate_id', message }] })
}

/** Address, order, event and retry slot in one transaction: all of it, or the client's retry finds nothing done. */
function openOrder(
  world: DeskWorld,
  accountId: string,
  plan: Plan,
  retry: RetrySlot,
): Promise<Order | 'taken' | 'no_address'> {
  const nowMs = plan.createdAtMs
  const orderId = orderIdOf(world.randomDigits(ORDER_ID_DIGITS))
  return world.db
    .transaction(async (tx) => {
      const filled = { bodyHash: retry.bodyHash, orderId, answer: null }
      if (!(await fillRetrySlot(tx, accountId, retry.slot, filled, world.clock.wallMs()))) return 'taken'
      const { chain } = plan.pair.from
      const depositAddress = await assignAddress(tx, chainFacts[chain].family, chain, orderId, nowMs)
      if (depositAddress === null) throw new NoAddress()
      const order = newOrder(termsOf(world, plan, { orderId, accountId, depositAddress }), plan)
      await writeOrder(world, tx, order)
      return order
    })
    .catch((error: unknown) => {
      if (error instanceof NoAddress) return 'no_address'
      throw error
    })
}

/** Thrown so that the retry slot is given back. */
class NoAddress extends Error {}

function termsOf(
  world: DeskWorld,
  { request, pair, quote, feeShare, createdAtMs, expiresAtMs, destination }: Plan,
  ids: { orderId: string; accountId: string; depositAddress: string },
): OrderTerms {
  return {
    id: ids.orderId,
    accountId: ids.accountId,
    createdAtMs,
    expiresAtMs,
    rateType: request.rateType satisfies RateType,
    from: pair.from.id,
    to: pair.to.id,
    asks: quote.from,
    promises: quote.to,
    rate: quote.rate,
    fee: quote.fee,
    feeShare,
    networkFee: quote.networkFee,
    destination,
    destinationTag: request.destinationTag,
    callbackUrl: request.callbackUrl,
    depositAddress: ids.depositAddress,
    depositTag: null,
    requiredConfirmations: requiredConfirmations(world, quote.from),
    tolerance: shareOf(quote.from, world.policy.tolerance, 'down'),
    slippage: world.policy.slippage,
  }
}

/** Spec 8: BTC 3 to 6; the larger number from the configured amount on. */
function requiredConfirmations(world: DeskWorld, amount: Amount): number {
  const asset = assetOf(amount.asset)
  const { confirmations, confirmationsLarge } = chainFacts[asset.chain]
  const threshold = world.policy.largeDeposits[asset.currency]
  if (threshold === undefined) return confirmations
  const large = parseAmount(asset, threshold)
  assert(large.ok, `the threshold for large ${asset.currency} deposits is an amount`)
  return amount.units >= large.value.units ? confirmationsLarge : confirmations
}

function newOrder(terms: OrderTerms, plan: Plan): Order {
  return {
    terms,
    refundAddress: plan.refundAddress,
    deposits: [],
    state: { status: 'NEW' },
    sequence: FIRST_SEQUENCE,
    updatedAtMs: terms.createdAtMs,
    outflowCount: 0,
    isOutflowCommitted: false,
  }
}

async function writeOrder(world: DeskWorld, tx: Sql, order: Order): Promise<void> {
  const { terms } = order
  const seal = world.seal(sealedTermsOf(order))
  await insertOrder(tx, order, { tokenHash: hashToken(world.tokenOf(terms.id)), seal })
  await insertFact(
    tx,
    terms.id,
    { key: 'created', kind: 'OrderCreated', outcome: 'changed' },
    terms.createdAtMs,
  )
  await appendEvent(tx, order, {
    previousStatus: null,
    factKey: 'created',
    snapshot: viewOrder(order, world.market),
  })
}
