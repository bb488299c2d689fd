import { expect, test } from 'vitest'
import { assets } from '../../domain/catalog/assets.ts'
import { currencyCodes } from '../../domain/catalog/currencies.ts'
import { type NetworkId, networkChains } from '../../domain/catalog/networks.ts'
import { pairFinder } from './quoting.ts'

/**
 * What: no name of a network leads to an asset on another chain, where whoever pays it would look for it in vain.
 * How: every currency with every network that there is, and what is left when one coin is not configured.
 */
const networks = Object.keys(networkChains) as NetworkId[]

function find(currency: string, network: string | null, without?: string) {
  const configured = new Set(assets.map(({ id }) => id).filter((id) => id !== without))
  const [to, toNetwork] = currency === 'BTC' ? ['XRP', 'XRP'] : ['BTC', 'BTC']
  const pair = pairFinder(configured)({ from: currency, to, fromNetwork: network, toNetwork })
  return pair.ok ? pair.value.from : null
}

test.each(currencyCodes)('a network of %s is on the chain that it names', (currency) => {
  for (const network of networks) {
    const found = find(currency, network)
    if (found !== null) expect(found.chain, network).toBe(networkChains[network])
  }
  for (const asset of assets.filter((each) => each.currency === currency))
    expect(find(currency, asset.network)).toBe(asset)
})

test('the coin of a chain goes by the name of its tokens as well, or by none', () => {
  for (const asset of assets.filter(({ isNative }) => isNative)) {
    expect([find(asset.currency, null), find(asset.currency, 'native')]).toEqual([asset, asset])
    expect(find(asset.currency, null, asset.id), 'not configured').toBeNull()
  }
  expect([find('ETH', 'ERC20'), find('BNB', 'BEP20'), find('TRX', 'TRC20')].map((each) => each?.id)).toEqual([
    'ETH:ETH',
    'BNB:BNB',
    'TRX:TRX',
  ])
})
