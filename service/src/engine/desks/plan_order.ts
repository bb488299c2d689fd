import type { RateLock } from '../../db/rate_locks.ts'
import type { Amount } from '../../domain/money/amount.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import type { Quote } from '../../domain/quotes/quote.ts'
import type { InstantMs } from '../../domain/time.ts'
import type { Policy } from '../policy.ts'
import type { DeskWorld } from '../world.ts'
import { aboutBoth } from './about_field.ts'
import type { CreateRequest, DeskOutcome } from './desk.ts'
import { type FindLock, rateExpired } from './find_lock.ts'
import { type FindPair, makeQuote, type Pair, readAmount, readMarket } from './quoting.ts'
import type { AddressReader } from './read_address.ts'

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
  /** As given where tags mean nothing; otherwise the one that the destination needs. */
  readonly destinationTag: string | null
  readonly refundAddress: string | null
}

export type PlanReaders = {
  readonly findPair: FindPair
  readonly findLock: FindLock
  readonly addresses: AddressReader
}

/** In the order of docs/api.md, Envelope: pair, networks, addresses, the amount's decimals, rate lock, amount. */
export async function planOrder(
  world: DeskWorld,
  { findPair, findLock, addresses }: PlanReaders,
  request: CreateRequest,
): Promise<DeskOutcome<Plan>> {
  const pair = findPair(request)
  if (!pair.ok) return pair
  // An offer from before does not open a pair that is closed now (spec 4.3, rule 3). It is kept without a price: the rate is locked.
  const open = readMarket(world.market, pair.value, request.rateType)
  if (!open.ok && open.rejection.code === 'MAINTENANCE') return open
  const places = await readPlaces(addresses, pair.value, request)
  if (!places.ok) return places
  const amount = readAmount(pair.value.from, request.amount)
  if (!amount.ok) return amount
  const agreed = await agreeRate(world, findLock, pair.value, amount.value, request)
  if (!agreed.ok) return agreed
  return accept({
    request,
    pair: pair.value,
    ...agreed.value,
    ...places.value,
  })
}

type Places = Pick<Plan, 'destination' | 'destinationTag' | 'refundAddress'>

async function readPlaces(
  { readDestination, readAddress }: AddressReader,
  pair: Pair,
  request: CreateRequest,
): Promise<DeskOutcome<Places>> {
  const { refundAddress } = request
  const [destination, refund] = await Promise.all([
    readDestination(pair.to, request),
    refundAddress === null ? accept(null) : readAddress(pair.from, refundAddress, 'refund_address'),
  ])
  if (!destination.ok)
    return refund.ok ? destination : refuse(aboutBoth(destination.rejection, refund.rejection))
  if (!refund.ok) return refund
  const { address, tag } = destination.value
  return accept({ destination: address, destinationTag: tag, refundAddress: refund.value })
}

/** Whether whoever is to pay at a fixed rate could still do so (docs/api.md, Rate locks). */
export function hasTimeToPay(
  { lockLeastLeftMs }: Pick<Policy, 'lockLeastLeftMs'>,
  expiresAtMs: InstantMs,
  nowMs: InstantMs,
): boolean {
  return expiresAtMs - nowMs >= lockLeastLeftMs
}

type Agreed = Pick<Plan, 'quote' | 'feeShare' | 'createdAtMs' | 'expiresAtMs'>

async function agreeRate(
  world: DeskWorld,
  findLock: FindLock,
  pair: Pair,
  amount: Amount,
  request: CreateRequest,
): Promise<DeskOutcome<Agreed>> {
  const { policy } = world
  const lock =
    request.rateType === 'fixed'
      ? await findLock(pair, amount, request.rateId)
      : accept<RateLock | null>(null)
  if (!lock.ok) return lock
  // Looking for the lock takes as long as the database does.
  const nowMs = world.clock.nowMs()
  if (lock.value !== null) {
    const { feeShare, expiresAtMs } = lock.value
    if (!hasTimeToPay(policy, expiresAtMs, nowMs)) return refuse(rateExpired)
    return accept({ quote: lock.value, feeShare, createdAtMs: nowMs, expiresAtMs })
  }
  const market = readMarket(world.market, pair, request.rateType)
  if (!market.ok) return market
  const quote = makeQuote(market.value, 'from', amount)
  if (!quote.ok) return quote
  // A fixed one keeps its rate as long as a lock would, but none is stored: nobody was promised this rate but this
  // order. Kept, it would give a later order of the same amount an old rate for what is left of its time, and then
  // refuse it for an hour.
  const openMs = request.rateType === 'float' ? policy.floatOpenMs : policy.lockMs
  return accept({
    quote: quote.value,
    feeShare: policy.fees[request.rateType],
    createdAtMs: nowMs,
    expiresAtMs: nowMs + openMs,
  })
}
