import type { ChainId } from '../catalog/networks.ts'
import type { Amount } from '../money/amount.ts'
import { payoutIdOf } from '../orders/identifiers.ts'
import type { PayoutId } from './intent.ts'

/** What a deposit address holds of an asset, and what it would cost at most to move that to the reserve. */
export type Holding = {
  readonly amount: Amount
  /** In units of the asset itself, at present prices and fees; null without a price. Gas that has to be brought is in it. */
  readonly cost: Amount | null
  /** Whether the native coin at the address pays for the gas. Always so for the native coin itself. */
  readonly hasGas: boolean
  /** What has to be brought in native coin where it does not. */
  readonly missingGas: Amount
}

export type SweepStep =
  | { readonly kind: 'sweep'; readonly amount: Amount }
  /** First the gas; once it is there the address is looked at again. */
  | { readonly kind: 'bring_gas'; readonly amount: Amount }

/** Worth it: at least `multiple` times what moving it costs. Zero never is. */
export function isWorthSweeping({ amount, cost }: Holding, multiple: bigint): boolean {
  return cost !== null && amount.units > 0n && amount.units >= multiple * cost.units
}

/**
 * The next thing to do for an address, or null while nothing is worth it. Tokens come before the native coin, which
 * pays for moving them; the holdings are given in the order that they are to be swept in.
 */
export function nextSweepStep(holdings: readonly Holding[], multiple: bigint): SweepStep | null {
  const chosen = holdings.find((holding) => isWorthSweeping(holding, multiple))
  if (chosen === undefined) return null
  return chosen.hasGas
    ? { kind: 'sweep', amount: chosen.amount }
    : { kind: 'bring_gas', amount: chosen.missingGas }
}

/** The `number`th outflow that is planned for a deposit address; `SWEEPS_OF_U` (db/unswept.ts) says the same to PostgreSQL. */
export function sweepIdOf(chain: ChainId, keyIndex: number, number: number): PayoutId {
  return payoutIdOf(`sweep-${chain}-${keyIndex}-${number}`, 1)
}
