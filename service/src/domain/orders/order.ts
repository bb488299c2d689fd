import type { AssetId } from '../catalog/assets.ts'
import { assetOf, nativeAsset } from '../catalog/assets.ts'
import { type Amount, amountOf, toPrecision } from '../money/amount.ts'
import type { Rate } from '../money/rate.ts'
import type { PayoutId } from '../payouts/intent.ts'
import { type BasisPoints, type Quote, quoteAtRate, type RateType } from '../quotes/quote.ts'
import type { InstantMs } from '../time.ts'
import type { OrderId } from './identifiers.ts'

export const orderStatuses = [
  'NEW',
  'PENDING',
  'EXCHANGE',
  'WITHDRAW',
  'DONE',
  'EXPIRED',
  'EMERGENCY',
  'REFUND',
  'REFUNDED',
] as const

export type OrderStatus = (typeof orderStatuses)[number]

/** Nothing is waited for any more. Only a late deposit goes on from one of them, EXPIRED. */
export const finishedStatuses = ['DONE', 'EXPIRED', 'REFUNDED'] as const satisfies readonly OrderStatus[]

export const emergencyReasons = [
  'UNDERPAID',
  'OVERPAID',
  'LATE_DEPOSIT',
  'RATE_SLIPPAGE',
  'NETWORK_PROBLEM',
  'DESTINATION_PROBLEM',
] as const

export type EmergencyReason = (typeof emergencyReasons)[number]

export type BlockRef = { readonly height: number; readonly hash: string }

/** What was agreed when the order was created; none of it ever changes. */
export type OrderTerms = {
  readonly id: OrderId
  readonly accountId: string
  readonly createdAtMs: InstantMs
  readonly expiresAtMs: InstantMs
  readonly rateType: RateType
  readonly from: AssetId
  readonly to: AssetId
  /** The exact deposit that the order asks for. */
  readonly asks: Amount
  /** What it promises to pay for that. */
  readonly promises: Amount
  readonly rate: Rate
  readonly fee: Amount
  readonly feeShare: BasisPoints
  readonly networkFee: Amount
  readonly destination: string
  readonly destinationTag: string | null
  readonly callbackUrl: string | null
  readonly depositAddress: string
  readonly depositTag: string | null
  readonly requiredConfirmations: number
  /** How far from `asks` a deposit may be and still be it. */
  readonly tolerance: Amount
  /** How far below the quote a float rate may fall before the customer is asked. */
  readonly slippage: BasisPoints
}

/**
 * counted: adds up to what the order received. extra: came when the order could no longer use it, and counts should it be open again.
 * dust: too small to count; what is all that the order is short of is counted. foreign: another asset than the order asks for.
 */
export type DepositRole = 'counted' | 'extra' | 'dust' | 'foreign'

export type Deposit = {
  /** `BTC:txid:vout`: unique for ever on all chains. */
  readonly key: string
  readonly txHash: string
  readonly amount: Amount
  readonly seenAtMs: InstantMs
  readonly role: DepositRole
  /** Seen or, at a fixed rate, mined too late: it counts, but only the customer can say for what. */
  readonly isLate: boolean
  /** seen: known, in no block. mined: in a block. confirmed: deep enough, and booked. vanished: replaced or dropped. */
  readonly state: 'seen' | 'mined' | 'confirmed' | 'vanished'
  readonly block: BlockRef | null
}

/** What the exchange came to. Gross = paid + fee + networkFee. */
export type Settlement = {
  readonly received: Amount
  readonly paid: Amount
  readonly rate: Rate
  readonly fee: Amount
  readonly networkFee: Amount
}

export type Refund = { readonly amount: Amount; readonly networkFee: Amount; readonly address: string }

export type OrderState =
  | { readonly status: 'NEW' }
  | { readonly status: 'PENDING' }
  | { readonly status: 'EXPIRED' }
  /** Without a settlement the exchange is due; with one its payout is on the way. */
  | { readonly status: 'EXCHANGE'; readonly settlement: null }
  | { readonly status: 'EXCHANGE'; readonly settlement: Settlement; readonly payoutId: PayoutId }
  | {
      readonly status: 'WITHDRAW'
      readonly settlement: Settlement
      readonly payoutId: PayoutId
      readonly txHash: string
    }
  | {
      readonly status: 'DONE'
      readonly settlement: Settlement
      readonly payoutId: PayoutId
      readonly txHash: string
      readonly completedAtMs: InstantMs
    }
  | { readonly status: 'EMERGENCY'; readonly reasons: readonly EmergencyReason[] }
  | {
      readonly status: 'REFUND'
      readonly refund: Refund
      readonly payoutId: PayoutId
      readonly txHash: string | null
    }
  | {
      readonly status: 'REFUNDED'
      readonly refund: Refund
      readonly payoutId: PayoutId
      readonly txHash: string
      readonly completedAtMs: InstantMs
    }

export type Order = {
  readonly terms: OrderTerms
  readonly refundAddress: string | null
  readonly deposits: readonly Deposit[]
  readonly state: OrderState
  /** Counts status changes; the event log has one row for each. */
  readonly sequence: number
  readonly updatedAtMs: InstantMs
  /** How many outflows were ever planned. */
  readonly outflowCount: number
  /**
   * Whether an exact transaction of the live outflow was ever written down. From then on it may be on its way, and
   * only the chain can say that it is not.
   */
  readonly isOutflowCommitted: boolean
  readonly failedCosts: FailedCosts
  /** When it first came into EMERGENCY; null: never, or before that was noted. */
  readonly firstEmergencyAtMs: InstantMs | null
}

/**
 * What payouts and refunds took of the network that were executed and failed, in its native asset. Who is paid by a contract of
 * his own decides how often that happens, so it is taken off whatever is offered next.
 */
export type FailedCosts = { readonly payouts: Amount; readonly refunds: Amount }

export function nothingFailed({ from, to }: Pick<OrderTerms, 'from' | 'to'>): FailedCosts {
  const nothingOn = (asset: AssetId) => amountOf(nativeAsset(assetOf(asset).chain).id, 0n)
  return { payouts: nothingOn(to), refunds: nothingOn(from) }
}

/** Whether an outflow has failed at its customer's cost. */
export function hasFailedAtCost({ failedCosts: { payouts, refunds } }: Pick<Order, 'failedCosts'>): boolean {
  return payouts.units > 0n || refunds.units > 0n
}

/** Deposits that add up, whether deep enough or not. */
export function countedDeposits(order: Order): readonly Deposit[] {
  return order.deposits.filter(({ role, state }) => role === 'counted' && state !== 'vanished')
}

/** What the order received and the ledger has booked for it. */
export function received(order: Order): Amount {
  return sum(
    order,
    countedDeposits(order).filter(({ state }) => state === 'confirmed'),
  )
}

/** What was seen on the way, confirmed or not; the interface's `deposit_received`. */
export function receivedSoFar(order: Order): Amount {
  return sum(order, countedDeposits(order))
}

function sum(order: Order, deposits: readonly Deposit[]): Amount {
  return amountOf(
    order.terms.from,
    deposits.reduce((total, { amount }) => total + amount.units, 0n),
  )
}

/** Exactly the amount asked, to the currency's precision and the agreed tolerance (docs/api.md, Lifecycle). */
export function compareToAsked(order: Order, amount: Amount): 'under' | 'exact' | 'over' {
  const { asks, tolerance } = order.terms
  const shown = toPrecision(amount, 'down').units
  if (shown < asks.units - tolerance.units) return 'under'
  return shown > asks.units + tolerance.units ? 'over' : 'exact'
}

/**
 * What a fixed order pays for what was received. One that received what it asked for pays exactly what it promised. Where the tolerance
 * let a little less through, the locked rate holds for what came: otherwise everybody would pay the least that is tolerated.
 * Null when what came is too little to be paid out.
 */
export function promised(order: Order): Quote | null {
  const from = received(order)
  const { asks, promises: to, rate, fee, networkFee } = order.terms
  return from.units < asks.units ? quoteAtRate(order.terms, from) : { from, to, rate, fee, networkFee }
}

/** What a reorganisation took away after an outflow was made of it: settled, and no longer confirmed. */
export function orphaned(order: Order): Amount {
  const settled = settledUnits(order.state)
  return amountOf(order.terms.from, settled === null ? 0n : settled - received(order).units)
}

function settledUnits(state: OrderState): bigint | null {
  if ('settlement' in state && state.settlement !== null) return state.settlement.received.units
  return 'refund' in state ? state.refund.amount.units + state.refund.networkFee.units : null
}

/** Less than this is recorded and changes nothing, unless it is just what an order is short of (dust_that_counts.ts). */
export function isDust(amount: Amount): boolean {
  return amount.units < assetOf(amount.asset).minCredit
}
