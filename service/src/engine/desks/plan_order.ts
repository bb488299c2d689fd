import type { Amount } from '../../domain/money/amount.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import type { Quote } from '../../domain/quotes/quote.ts'
import type { DeskWorld } from '../world.ts'
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
  // An offer from before does not open a pair that is closed now (spec 4.3, rule 3).
  const open = readMarket(world.market, pair.value, request.rateType)
  if (!open.ok && open.rejection.code === 'MAINTENANCE') return open
  const destination = await addresses.readDestination(pair.value.to, request)
  if (!destination.ok) return destination
  const refund =
    request.refundAddress === null
      ? accept(null)
      : await addresses.readAddress(pair.value.from, request.refundAddress, 'refund_address')
  if (!refund.ok) return refund
  const amount = readAmount(pair.value.from, request.amount)
  if (!amount.ok) return amount
  const agreed = await agreeRate(world, findLock, pair.value, amount.value, request)
  if (!agreed.ok) return agreed
  return accept({
    request,
    pair: pair.value,
    ...agreed.value,
    destination: destination.value.address,
    destinationTag: destination.value.tag,
    refundAddress: refund.value,
  })
}

type Agreed = Pick<Plan, 'quote' | 'feeShare' | 'createdAtMs' | 'expiresAtMs'>

async function agreeRate(
  world: DeskWorld,
  findLock: FindLock,
  pair: Pair,
  amount: Amount,
  request: CreateRequest,
): Promise<DeskOutcome<Agreed>> {
  const nowMs = world.clock.nowMs()
  const { policy } = world
  if (request.rateType === 'fixed') {
    const lock = await findLock(pair, amount, request.rateId)
    if (!lock.ok) return lock
    if (lock.value !== null) {
      const { feeShare, expiresAtMs } = lock.value
      if (expiresAtMs - nowMs < policy.lockLeastLeftMs) return refuse(rateExpired)
      return accept({ quote: lock.value, feeShare, createdAtMs: nowMs, expiresAtMs })
    }
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
