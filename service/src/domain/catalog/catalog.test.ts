import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { type AssetId, assetIdsOn, assetOf, assets, findAsset, isAssetId, nativeAsset } from './assets.ts'
import { type Currency, currencies, currencyCodes, isCurrencyCode } from './currencies.ts'
import { chainFacts, chainIds, isChainId, isNetworkId, networkChains, tellsFinalOnly } from './networks.ts'

const require = createRequire(import.meta.url)

test('the currencies and networks are these; whoever adds one looks at this list', () => {
  expect(assets.map(({ id }) => id)).toEqual([
    'BTC:BTC',
    'ETH:ETH',
    'USDT:ERC20',
    'USDT:BEP20',
    'USDT:TRC20',
    'USDC:ERC20',
    'USDC:BEP20',
    'USDC:SOL',
    'BNB:BNB',
    'XRP:XRP',
    'XLM:XLM',
    'TRX:TRX',
    'EOS:EOS',
    'SOL:SOL',
  ])
})

test.each(assets)('$id is on a chain that can carry what the interface shows', (asset) => {
  expect(chainIds).toContain(asset.chain)
  expect(asset.chain).toBe(networkChains[asset.network])
  expect(asset.precision).toBeLessThanOrEqual(asset.chainDecimals)
  expect(asset.chainDecimals).toBeLessThanOrEqual(asset.decimals)
  expect(asset.isNative).toBe(nativeAsset(asset.chain).id === asset.id)
  expect(assetOf(asset.id)).toBe(asset)
  expect(findAsset(asset.currency, asset.network)).toBe(asset)
  expect(currencies[asset.currency].networks).toHaveProperty(asset.network)
  expect(chainIds.filter((chain) => assetIdsOn(chain).includes(asset.id))).toEqual([asset.chain])
})

test('chains have names of their own, and those of one family share their addresses', () => {
  const names = chainIds.map((chain) => chainFacts[chain].name).filter((name) => name.length > 0)
  expect(new Set(names).size).toBe(chainIds.length)
  const families = Object.fromEntries(chainIds.map((chain) => [chain, chainFacts[chain].family]))
  expect(families).toEqual({
    BTC: 'bitcoin',
    ETH: 'evm',
    BNB: 'evm',
    XRP: 'xrp',
    XLM: 'stellar',
    TRX: 'tron',
    EOS: 'eos',
    SOL: 'solana',
  })
})

test('an asset that is not in the catalogue is a mistake of ours', () => {
  expect(() => assetOf('USDT:BTC' as AssetId)).toThrow('the catalogue has USDT:BTC')
})

test.each(assets)(
  '$id: dust < what counts < the least order < the most, and payouts are worth making',
  (asset) => {
    expect(asset.minCredit).toBeGreaterThan(0n)
    expect(asset.minCredit).toBeLessThan(asset.minAmount)
    expect(asset.minPayout).toBeGreaterThan(0n)
    expect(asset.minPayout).toBeLessThanOrEqual(asset.minAmount)
    expect(asset.minAmount).toBeLessThan(asset.maxAmount)
    // 15 significant digits survive a JSON number in every client.
    const shown = asset.maxAmount / 10n ** BigInt(asset.decimals - asset.precision)
    expect(shown.toString().length).toBeLessThanOrEqual(15)
  },
)

test('one currency has one scale in the ledger and one set of limits', () => {
  for (const code of currencyCodes) {
    const own = assets.filter(({ currency }) => currency === code)
    expect(own.length).toBe(Object.keys(currencies[code].networks).length)
    expect(new Set(own.map(({ decimals }) => decimals)).size).toBe(1)
    expect(new Set(own.map(({ minAmount, maxAmount }) => `${minAmount} ${maxAmount}`)).size).toBe(1)
    expect(Math.max(...own.map(({ chainDecimals }) => chainDecimals))).toBe(own[0]?.decimals)
  }
})

test('tokens have the decimals that their contracts have', () => {
  const decimals = Object.fromEntries(assets.map(({ id, chainDecimals }) => [id, chainDecimals]))
  expect(decimals).toEqual({
    'BTC:BTC': 8,
    'ETH:ETH': 18,
    'USDT:ERC20': 6,
    'USDT:BEP20': 18,
    'USDT:TRC20': 6,
    'USDC:ERC20': 6,
    'USDC:BEP20': 18,
    'USDC:SOL': 6,
    'BNB:BNB': 18,
    'XRP:XRP': 6,
    'XLM:XLM': 7,
    'TRX:TRX': 6,
    'EOS:EOS': 4,
    'SOL:SOL': 9,
  })
})

test('every currency has its own place in the list, a colour and a logo', () => {
  const priorities = currencyCodes.map((code) => currencies[code].priority)
  expect(priorities.toSorted((left, right) => left - right)).toEqual(priorities.map((_, index) => index + 1))
  const folder = join(dirname(require.resolve('cryptocurrency-icons/package.json')), 'svg', 'color')
  for (const code of currencyCodes) {
    const { color, name }: Currency = currencies[code]
    expect(color).toMatch(/^#[0-9A-F]{6}$/)
    expect(name).not.toBe('')
    expect(existsSync(join(folder, `${code.toLowerCase()}.svg`))).toBe(true)
  }
})

test('confirmations are as the specification says', () => {
  expect(chainFacts.BTC).toMatchObject({ confirmations: 3, confirmationsLarge: 6 })
  expect(chainFacts.ETH).toMatchObject({ confirmations: 12, confirmationsLarge: 12 })
  expect(chainFacts.BNB).toMatchObject({ confirmations: 12, confirmationsLarge: 12 })
})

test('names of things that every object has are no currency, network, chain or asset', () => {
  for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty', '', 'btc']) {
    expect([isCurrencyCode(name), isNetworkId(name), isChainId(name), isAssetId(name)]).toEqual([
      false,
      false,
      false,
      false,
    ])
  }
})

test('of these chains nothing is told before it is final', () => {
  expect(chainIds.filter(tellsFinalOnly)).toEqual(['XRP', 'XLM', 'EOS', 'SOL'])
})
