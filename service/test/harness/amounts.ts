import { assetOf, findAsset } from '../../src/domain/catalog/assets.ts'
import type { CurrencyCode } from '../../src/domain/catalog/currencies.ts'
import { type NetworkId, networkChains } from '../../src/domain/catalog/networks.ts'
import type { TestSandbox } from './test_sandbox.ts'

/** A JSON number of the interface in the asset's on-chain units: 1.5 USDT on BEP20 is 1500000000000000000. */
export function chainUnits(amount: number | string, currency: CurrencyCode, network: NetworkId): bigint {
  const { chainDecimals, precision } = assetOn(currency, network)
  const text = typeof amount === 'string' ? amount : amount.toFixed(precision)
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(chainDecimals, '0'))
}

/** What the blocks say that an address holds, in on-chain units. */
export function balanceOf(
  { devnet }: TestSandbox,
  address: string,
  currency: CurrencyCode,
  network: NetworkId,
): Promise<bigint> {
  return devnet.balance(networkChains[network], currency, address)
}

/** Sends from the faucet to any address, which `remote.pay` does to an order's only. Gives the transaction's hash. */
export async function send(
  { devnet }: TestSandbox,
  network: NetworkId,
  currency: CurrencyCode,
  to: string,
  amount: number | string,
): Promise<string> {
  const units = chainUnits(amount, currency, network)
  return (await devnet.send(networkChains[network], currency, to, units)).txHash
}

function assetOn(currency: CurrencyCode, network: NetworkId) {
  const asset = findAsset(currency, network)
  if (asset === undefined) throw new Error(`${currency} does not travel on ${network}`)
  return assetOf(asset.id)
}
