import { findNewestRateLock, findRateLock, type RateLock } from '../db/rate_locks.ts'
import type { Asset } from '../domain/catalog/assets.ts'
import type { Amount } from '../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import type { Quote } from '../domain/quotes/quote.ts'
import type { CreateRequest, DeskRejection } from './desk.ts'
import { findPair, makeQuote, type Pair, readAmount, readMarket } from './quoting.ts'
import { lockOf } from './rate_desk.ts'
import type { DeskWorld } from './world.ts'

type Refused<Value> = Outcome<Value, DeskRejection>

/** What was agreed with the client: everything that an order needs but its names. */
export type Plan = {
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
export async function planOrder(world: DeskWorld, request: CreateRequest): Promise<Refused<Plan>> {
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
