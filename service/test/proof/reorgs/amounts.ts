import type { CreatedOrder } from '@cambist/sdk'
import { type AssetId, assetOf } from '../../../src/domain/catalog/assets.ts'
import { amountOf, fromChainUnits } from '../../../src/domain/money/amount.ts'
import { powerOfTen } from '../../../src/domain/money/decimal.ts'
import { convert, parseRate } from '../../../src/domain/money/rate.ts'
import { defaultPolicy } from '../../../src/engine/default_policy.ts'
import { chainUnits } from '../../harness/amounts.ts'

/** What the tables say of an order that has ended, in ledger units. */
export type EndedRow = {
  readonly from_asset: AssetId
  readonly to_asset: AssetId
  readonly settled_received: bigint | null
  readonly settled_paid: bigint | null
  readonly settled_rate: string | null
  readonly refund_units: bigint | null
  readonly refund_network_fee: bigint | null
  /** Whether its customer was ever asked, and what a refund was said to cost then, as it was shown. */
  readonly was_asked: boolean
  readonly shown_refund_fee: string | null
}

export type ShownOrder = Pick<
  CreatedOrder,
  'rate_type' | 'deposit_amount' | 'receive_amount' | 'fee' | 'network_fee'
>

/**
 * What was shown is paid for what was asked, at a fixed rate and by whoever nobody asked; otherwise what it is worth at the
 * prices of the storm, which never move, less the fee and what a payout costs.
 */
export function checkPaid(shown: ShownOrder, row: EndedRow): string[] {
  const { from_asset: from, to_asset: to, settled_received: received, settled_paid: paid } = row
  if (received === null || paid === null || row.settled_rate === null) return ['it has no settlement']
  const asked = unitsIn(from, shown.deposit_amount)
  const promised = unitsIn(to, shown.receive_amount)
  if (shown.rate_type === 'fixed' && received === asked && !row.was_asked)
    return paid === promised ? [] : [`it paid ${paid}, and ${promised} was shown`]
  const cost = unitsIn(to, shown.network_fee)
  const worth = (received * (promised + unitsIn(to, shown.fee) + cost)) / asked
  const most = withoutFee(shown, worth) + unitOf(to)
  const least = withoutFee(shown, worth - cost * COST_TIMES_MAX) - unitOf(to)
  return [
    ...(least <= paid && paid <= most
      ? []
      : [`it paid ${paid} for ${received}, and by what was shown that is ${least} to ${most}`]),
    ...checkRate(row.settled_rate, received, paid, row),
  ]
}

/** All that was received goes back, less what that costs, which is about what was said. */
export function checkRefunded(row: EndedRow): string[] {
  const { from_asset: from, refund_units: units, refund_network_fee: cost, shown_refund_fee: said } = row
  if (units === null || cost === null) return ['it has no refund']
  const most = said === null ? (units + cost) / 10n : unitsIn(from, said) * COST_TIMES_MAX
  return cost <= most
    ? []
    : [`it kept ${cost} for its refund of ${units}, and should keep ${most} at the most`]
}

/** Fees of the local chains change from block to block, but not by more. */
const COST_TIMES_MAX = 4n

/** What it says of itself: paid at the rate that it shows. */
function checkRate(
  rate: string,
  received: bigint,
  paid: bigint,
  { from_asset, to_asset }: EndedRow,
): string[] {
  const should = convert(amountOf(from_asset, received), parseRate(from_asset, to_asset, rate), 'down').units
  // The rate is shown with 15 digits, and what we pay is cut to the precision.
  const rounding = unitOf(to_asset) + should / powerOfTen(14)
  const off = paid > should ? paid - should : should - paid
  return off <= rounding ? [] : [`it paid ${paid} for ${received} at ${rate}, which is ${should}`]
}

const WHOLE_BASIS_POINTS = 10_000n

function withoutFee({ rate_type }: ShownOrder, units: bigint): bigint {
  return (units * WHOLE_BASIS_POINTS) / (WHOLE_BASIS_POINTS + defaultPolicy.fees[rate_type])
}

/** The least that the interface shows. */
function unitOf(asset: AssetId): bigint {
  const { decimals, precision } = assetOf(asset)
  return powerOfTen(decimals - precision)
}

function unitsIn(asset: AssetId, amount: number | string): bigint {
  const { currency, network } = assetOf(asset)
  return fromChainUnits(asset, chainUnits(amount, currency, network)).units
}
