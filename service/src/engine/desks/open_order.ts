import { createHash } from 'node:crypto'
import { reserveAddresses } from '../../db/addresses.ts'
import { isAboutData } from '../../db/database.ts'
import { insertNewOrders, type NewOrder } from '../../db/new_orders.ts'
import { type AddressFamily, type ChainId, chainFacts } from '../../domain/catalog/networks.ts'
import { BUCKET_DIGITS, ORDER_ID_DIGITS, orderIdOf } from '../../domain/orders/identifiers.ts'
import { nothingFailed, type Order, type OrderTerms } from '../../domain/orders/order.ts'
import { sealedTermsOf } from '../../domain/orders/seal.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { shareOf } from '../../domain/quotes/quote.ts'
import { batched } from '../batched.ts'
import { depositAccount } from '../deposit_account.ts'
import { requiredConfirmations } from '../required_confirmations.ts'
import { viewOrder } from '../view.ts'
import type { DeskWorld } from '../world.ts'
import type { DeskOutcome, OrderView, RetrySlot } from './desk.ts'
import { rateExpired } from './find_lock.ts'
import { hasTimeToPay, type Plan } from './plan_order.ts'

/** An order that is to be opened for whoever asked for it. */
export type Opening = { readonly accountId: string; readonly plan: Plan; readonly retry: RetrySlot }

/** Null: nothing was opened, for the retry slot had been filled before, or no deposit address was ready. */
type Opened = DeskOutcome<OrderView> | null

export type OpenOrder = (opening: Opening) => Promise<Opened>

/** The event of its creation. */
export const FIRST_SEQUENCE = 1

/** More save little more: what a statement costs by itself is then a twentieth of the whole. */
const ORDERS_MAX = 64

/**
 * Opens orders in batches: address, order, first event and retry slot of each in one transaction, so that a client's
 * retry finds all of it done or nothing. Batches are by address family, because a batch takes its addresses at once,
 * and all orders of a batch lie in one bucket, so that it stays on one machine when buckets are spread over several.
 */
export function orderOpener(world: DeskWorld): OpenOrder {
  const queues = new Map<AddressFamily, OpenOrder>()
  return (opening) => {
    const { family } = chainFacts[opening.plan.pair.from.chain]
    const queue = queues.get(family) ?? openQueue(world, family)
    queues.set(family, queue)
    return queue(opening)
  }
}

/** After so many are given the pool is looked after, and not only at the end of its rest: orders may come quickly. */
const GIVEN_UNNOTICED_MAX = 25

function openQueue(world: DeskWorld, family: AddressFamily): OpenOrder {
  // Before it, all addresses had been given or were being given when this process looked last.
  let firstFreeIndex = 0
  let givenUnnoticed = 0
  let known: DepositAccount | null = null
  // The statement that gives an address cannot read the account out of it. Where tags tell deposits apart, all are on that of the reserve.
  const arrivesAt = async (chain: ChainId): Promise<DepositAccount> => {
    if (known !== null) return known
    const [reserve] = await reserveAddresses(world.db, family)
    if (reserve === undefined) return {}
    known = depositAccount(world.chains, chain, reserve)
    return known
  }
  const openTimely = async (openings: readonly Opening[]): Promise<Opened[]> => {
    const [first] = openings
    if (first === undefined) return []
    const bucket = world.randomDigits(BUCKET_DIGITS)
    // A family whose chains have accounts for tags is one chain.
    const { chain } = first.plan.pair.from
    const account = world.chains.get(chain)?.accountOf === undefined ? {} : await arrivesAt(chain)
    const orders = openings.map((opening) => newOrder(world, opening, { bucket, account }))
    const fromIndex = firstFreeIndex
    const { deposits, free } = await insertNewOrders(world.db, family, orders, fromIndex)
    firstFreeIndex = free.firstIndex
    world.alarms.ring('relay')
    const opened = orders.map(({ order, snapshot }) => {
      const deposit = deposits.get(order.terms.id)
      if (deposit === undefined) return null
      const { address, tag } = deposit
      const itsAccount = tag !== null && depositAccount(world.chains, chain, address)
      return accept({ ...snapshot, deposit_address: address, deposit_tag: tag, ...itsAccount })
    })
    const isLeft = (_: unknown, index: number) => opened[index] === null
    givenUnnoticed += deposits.size
    if (free.count < orders.length || givenUnnoticed >= GIVEN_UNNOTICED_MAX) {
      givenUnnoticed = 0
      world.alarms.ring('pool')
    }
    if (fromIndex === 0 || free.count === orders.length) return opened
    // Somebody who died while giving some may have left them free further back.
    firstFreeIndex = 0
    const later = await openAll(openings.filter(isLeft))
    return opened.map((one) => one ?? later.shift() ?? null)
  }
  // Each waits for the writes before its own, which take as long as the database does: a lock may run out meanwhile.
  const openAll = async (openings: readonly Opening[]): Promise<Opened[]> => {
    const nowMs = world.clock.nowMs()
    const isLate = ({ plan: { request, expiresAtMs } }: Opening) =>
      request.rateType === 'fixed' && !hasTimeToPay(world.policy, expiresAtMs, nowMs)
    const opened = await openTimely(openings.filter((opening) => !isLate(opening)))
    return openings.map((opening) => (isLate(opening) ? refuse(rateExpired) : (opened.shift() ?? null)))
  }
  return batched(openAll, { itemsMax: ORDERS_MAX, isOneToBlame: isAboutData })
}

type Prepared = NewOrder & { readonly snapshot: OrderView }
type DepositAccount = ReturnType<typeof depositAccount>

function newOrder(
  world: DeskWorld,
  { accountId, plan, retry }: Opening,
  { bucket, account }: { readonly bucket: string; readonly account: DepositAccount },
): Prepared {
  const id = orderIdOf(world.randomDigits(ORDER_ID_DIGITS - BUCKET_DIGITS) + bucket)
  const terms = termsOf(world, plan, { id, accountId })
  const order: Order = {
    terms,
    refundAddress: plan.refundAddress,
    deposits: [],
    state: { status: 'NEW' },
    sequence: FIRST_SEQUENCE,
    updatedAtMs: plan.createdAtMs,
    outflowCount: 0,
    isOutflowCommitted: false,
    failedCosts: nothingFailed(terms),
    firstEmergencyAtMs: null,
  }
  return {
    order,
    secrets: { tokenHash: hashToken(world.tokenOf(id)), seal: world.seal(sealedTermsOf(order)) },
    snapshot: { ...viewOrder(order, world), ...account },
    retry: { ...retry, atWallMs: world.clock.wallMs() },
  }
}

export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function termsOf(
  world: DeskWorld,
  { request, pair, quote, feeShare, createdAtMs, expiresAtMs, destination, destinationTag }: Plan,
  ids: { readonly id: string; readonly accountId: string },
): OrderTerms {
  return {
    ...ids,
    createdAtMs,
    expiresAtMs,
    rateType: request.rateType,
    from: pair.from.id,
    to: pair.to.id,
    asks: quote.from,
    promises: quote.to,
    rate: quote.rate,
    fee: quote.fee,
    feeShare,
    networkFee: quote.networkFee,
    destination,
    destinationTag,
    callbackUrl: request.callbackUrl,
    // Taken from the pool in the statement that stores the order.
    depositAddress: '',
    depositTag: null,
    requiredConfirmations: requiredConfirmations(world.policy, quote.from),
    tolerance: shareOf(quote.from, world.policy.tolerance, 'down'),
    slippage: world.policy.slippage,
  }
}
