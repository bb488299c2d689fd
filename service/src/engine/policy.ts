import type { AssetId } from '../domain/catalog/assets.ts'
import type { CurrencyCode } from '../domain/catalog/currencies.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import type { BasisPoints } from '../domain/quotes/quote.ts'

/** What the operator decides, by the configuration or by default_policy.ts. Durations are on the service's clock. */
export type Policy = {
  readonly fees: { readonly fixed: BasisPoints; readonly float: BasisPoints }
  /** How far below the quote a float rate may fall before the customer is asked. */
  readonly slippage: BasisPoints
  /** Share of the asked amount by which a deposit may differ and still count as exact. */
  readonly tolerance: BasisPoints
  /** How long a fixed quote is kept; the order it becomes keeps what is left (docs/api.md, Rate locks). */
  readonly lockMs: number
  /** Below this much left, a lock is too short to pay in. */
  readonly lockLeastLeftMs: number
  /** How long a lapsed lock is remembered, so that its order is told RATE_EXPIRED. */
  readonly lockMemoryMs: number
  /** How long a float order waits for its deposit; a fixed one waits until its lock ends (`lockMs`). */
  readonly floatOpenMs: number
  /** From this amount (whole units, decimal text) on, a deposit needs the larger number of confirmations. */
  readonly largeDeposits: Partial<Record<CurrencyCode, string>>
  /** When neither exchange nor payout was possible for this long, the order goes to EMERGENCY with NETWORK_PROBLEM. */
  readonly stallMs: number
  /** For so long a node has to say at every look that a payee cannot be paid before the order asks (DESTINATION_PROBLEM): longer than one is behind. */
  readonly payeeRefusedMs: number
  /** A payout that is unmined for this long gets a higher fee. Left out where only time keeps attempts apart: there `isOver` decides. */
  readonly bumpAfterMs: Partial<Readonly<Record<ChainId, number>>>
  /** A chain in trouble for this long takes its currencies off the list; a currency without a price for as long is off it, too. */
  readonly chainTroubleMs: number
  /** No new orders into or out of these; those that were taken go on. */
  readonly paused: readonly AssetId[]
  /** A chain whose node has had no new block for this long is in trouble; one that is left out may stand still. */
  readonly standstillMs: Partial<Record<ChainId, number>>
  /** Addresses kept ready for orders to come. */
  readonly poolSize: number
  readonly retrySlotMs: number
  /** A deposit is moved to the reserve when it is worth this many times what that costs; 0: never. */
  readonly sweepCostMultiple: bigint
  /** How long a deposit address rests at least after a look that found nothing worth it. */
  readonly sweepRestMs: number
  /** How many orders or outflows a loop works on at the same time: while one waits for the disk, another goes on. */
  readonly atOnce: number
  /** How long engine loops rest between looks, in real milliseconds. */
  readonly restMs: number
}
