import { assert } from '../assert.ts'
import { type Asset, type AssetId, assetOf } from '../catalog/assets.ts'
import { accept, type Outcome } from '../outcome.ts'
import { divide, formatDecimal, parseDecimal, powerOfTen, type Rounding } from './decimal.ts'

/** An exact quantity of one asset, in its ledger units (10^-asset.decimals). */
export type Amount = { readonly asset: AssetId; readonly units: bigint }

export function amountOf(asset: AssetId, units: bigint): Amount {
  return { asset, units }
}

export function add(left: Amount, right: Amount): Amount {
  assert(left.asset === right.asset, `${left.asset} adds to ${right.asset}`)
  return { asset: left.asset, units: left.units + right.units }
}

/** Text of a person or program, at most `precision` decimals, to an amount. */
export function parseAmount(asset: Asset, text: string): Outcome<Amount> {
  const parsed = parseDecimal(text, asset.precision)
  if (!parsed.ok) return parsed
  return accept(amountOf(asset.id, parsed.value * asset.step))
}

/** The amount as the interface shows it: at most `precision` decimals, rounded as named. */
export function showAmount(amount: Amount, rounding: Rounding): string {
  const asset = assetOf(amount.asset)
  return formatDecimal(divide(amount.units, asset.step, rounding), asset.precision)
}

/** Every digit of the amount; for the ledger, logs and operators. */
export function exactAmount(amount: Amount): string {
  return formatDecimal(amount.units, assetOf(amount.asset).decimals)
}

/** The amount cut or raised to the interface's precision, still in ledger units. */
export function toPrecision(amount: Amount, rounding: Rounding): Amount {
  const { step } = assetOf(amount.asset)
  return amountOf(amount.asset, divide(amount.units, step, rounding) * step)
}

/** On-chain units (satoshi, wei, token units) to an amount; always exact. */
export function fromChainUnits(assetId: AssetId, chainUnits: bigint): Amount {
  return amountOf(assetId, chainUnits * chainStepOf(assetId))
}

/** An amount to on-chain units. What the chain cannot carry must have been rounded before, on purpose. */
export function toChainUnits(amount: Amount): bigint {
  const step = chainStepOf(amount.asset)
  assert(
    amount.units >= 0n && amount.units % step === 0n,
    `${exactAmount(amount)} ${amount.asset} can be carried by its chain`,
  )
  return amount.units / step
}

/** The least that the chain can carry, in ledger units. */
function chainStepOf(assetId: AssetId): bigint {
  const { decimals, chainDecimals } = assetOf(assetId)
  return powerOfTen(decimals - chainDecimals)
}
