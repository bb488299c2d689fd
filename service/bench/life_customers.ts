import { assert } from '../src/domain/assert.ts'
import { type Asset, type AssetId, assetIdsOn, assetOf } from '../src/domain/catalog/assets.ts'
import { chainFacts } from '../src/domain/catalog/networks.ts'
import { parseAmount, toChainUnits } from '../src/domain/money/amount.ts'
import type { CreateRequest } from '../src/engine/desks/desk.ts'
import type { SimulatedNodes } from '../test/simulation/chains/simulated_chains.ts'
import type { CreatedOrder } from './life_process.ts'

/** Coins, and coins and tokens of accounts, as a deposit and as a payout, equally often. */
const pairs = [
  ['BTC:BTC', '0.01', 'USDT:ERC20'],
  ['USDT:ERC20', '500', 'BNB:BNB'],
  ['BNB:BNB', '2', 'USDC:BEP20'],
  ['USDC:BEP20', '600', 'ETH:ETH'],
  ['ETH:ETH', '0.3', 'BTC:BTC'],
] as const satisfies readonly (readonly [AssetId, string, AssetId])[]

/** What there has to be a reserve of: everything on the chains that are paid to. */
export const traded: readonly Asset[] = [...new Set(pairs.map(([, , to]) => assetOf(to).chain))]
  .flatMap(assetIdsOn)
  .map(assetOf)

const destinations: Record<string, string> = {
  bitcoin: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
  evm: '0x52908400098527886E0F7030069857D2E4169EE7',
}

/** What the customer with this number asks for; every other one wants a fixed rate. */
export function requestOf(number: number): CreateRequest {
  const [from, amount, to] = pairs[number % pairs.length] ?? pairs[0]
  const [source, target] = [assetOf(from), assetOf(to)]
  return {
    from: source.currency,
    fromNetwork: source.network,
    to: target.currency,
    toNetwork: target.network,
    amount,
    rateType: number % 2 === 0 ? 'float' : 'fixed',
    destination: destinations[chainFacts[target.chain].family] ?? '',
    destinationTag: null,
    refundAddress: null,
    callbackUrl: null,
    rateId: null,
  }
}

/** As the order asks. */
export function payFor(nodes: SimulatedNodes, { currency, network, address, amount }: CreatedOrder): void {
  const asset = assetOf(`${currency}:${network}` as AssetId)
  const parsed = parseAmount(asset, amount)
  assert(parsed.ok, `${amount} is an amount of ${currency}`)
  payTo(nodes, asset, address, toChainUnits(parsed.value))
}

/** In the units of the chain. */
export function payTo(nodes: SimulatedNodes, { id, chain }: Asset, to: string, units: bigint): void {
  if (chain === 'BTC') nodes.BTC.pay([{ address: to, satoshi: units }])
  else nodes[chain].pay([{ to, asset: id, units }])
}
