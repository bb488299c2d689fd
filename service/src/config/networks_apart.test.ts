import { expect, test } from 'vitest'
import { assets } from '../domain/catalog/assets.ts'
import { type ChainId, chainIds, evmChains } from '../domain/catalog/networks.ts'
import { mainnetChainIds } from './chain_settings.ts'
import { ConfigError } from './problems.ts'
import { readServeConfig } from './serve_config.ts'
import { contractVariable, variableOf } from './variables.ts'

/**
 * What: coins that are worth nothing are not exchanged for money.
 * How: the configuration of a watcher, which needs nodes and no keys.
 */
const eosKey = 'PUB_K1_6MRyAjQq8ud7hVNYcfnVPJqcVpscN5So8BhtHuGYqET5BoDq63'
const testNetworks = {
  BTC: { CAMBIST_BTC_NETWORK: 'testnet' },
  ETH: { CAMBIST_ETH_CHAIN_ID: '11155111' },
  BNB: { CAMBIST_BNB_CHAIN_ID: '97' },
  XRP: { CAMBIST_XRP_NETWORK_ID: '1' },
  XLM: { CAMBIST_XLM_NETWORK: 'Test SDF Network ; September 2015' },
  TRX: { CAMBIST_TRX_GENESIS: '0000000000000000de1aa88295e1fcf982742f773e0419c5a9c134c994a9059e' },
  EOS: { CAMBIST_EOS_CHAIN_ID: '73e4385a2708e6d7048834fbc1079f2fabb17b3c125b146af438971e90716c4d' },
  SOL: { CAMBIST_SOL_GENESIS: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG' },
} as const satisfies Record<ChainId, Record<string, string>>

function nodesOf(...chains: readonly ChainId[]): Record<string, string> {
  return Object.fromEntries([
    ['DATABASE_URL', 'postgres://cambist@db/cambist'],
    ...chains.map((chain) => [`CAMBIST_${chain}_URL`, 'http://node:1']),
    ...(chains.includes('EOS') ? [['CAMBIST_EOS_ACCOUNT', 'mycambist123'] as const] : []),
    ...(chains.includes('EOS') ? [['CAMBIST_EOS_KEY', eosKey] as const] : []),
  ])
}

/** What is wrong with the environment, as `VARIABLE: message` lines. */
function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readServeConfig(env, 'watcher')
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((each) => `${each.variable}: ${each.message}`)
    throw error
  }
  return []
}

test.each(chainIds)('a test network of %s stands beside no main network', (chain) => {
  const other = chain === 'BTC' ? 'ETH' : 'BTC'
  const [variable = ''] = Object.keys(testNetworks[chain])
  expect(problemsOf({ ...nodesOf(...chainIds), ...testNetworks[chain] })).toEqual([
    expect.stringMatching(`^${variable}: .*test network.*CAMBIST_${other}_URL.*unset CAMBIST_${chain}_URL`),
  ])
  expect(problemsOf({ ...nodesOf(chain, other), ...testNetworks[chain] })).toHaveLength(1)
  expect(problemsOf({ ...nodesOf(chain), ...testNetworks[chain] }), 'alone').toEqual([])
  expect(problemsOf({ ...nodesOf(other), ...testNetworks[chain] }), 'without its node').toEqual([])
})

test('networks of one kind stand side by side', () => {
  expect(problemsOf(nodesOf(...chainIds))).toEqual([])
  const allTest = Object.assign({}, ...Object.values(testNetworks))
  expect(problemsOf({ ...nodesOf(...chainIds), ...allTest })).toEqual([])
})

test('a network that nobody knows may be of either kind', () => {
  const unknown = { CAMBIST_ETH_CHAIN_ID: '8453' }
  expect(problemsOf({ ...nodesOf('BTC', 'ETH'), ...unknown })).toEqual([])
  expect(problemsOf({ ...nodesOf('BTC', 'ETH'), ...unknown, ...testNetworks.BTC })).toEqual([])
})

test('one chain is not two: its coins would be counted under two names, at two prices', () => {
  const both = (ETH: string, BNB: string) =>
    problemsOf({ ...nodesOf('ETH', 'BNB'), CAMBIST_ETH_CHAIN_ID: ETH, CAMBIST_BNB_CHAIN_ID: BNB })
  for (const id of ['8453', '1337', '31337'])
    expect(both(id, `0${id}`), id).toEqual([
      expect.stringMatching(`^CAMBIST_BNB_CHAIN_ID: is ${id} .*CAMBIST_ETH_CHAIN_ID.*unset CAMBIST_BNB_URL`),
    ])
  expect(problemsOf({ ...nodesOf('ETH'), CAMBIST_ETH_CHAIN_ID: '97', CAMBIST_BNB_CHAIN_ID: '97' })).toEqual(
    [],
  )
  expect(both('31337', '31338')).toEqual([])
})

test('a chain with the coin of another is not believed: its coins would go at the price of the other', () => {
  const of = (ETH: string, BNB: string) =>
    problemsOf({ ...nodesOf('ETH', 'BNB'), CAMBIST_ETH_CHAIN_ID: ETH, CAMBIST_BNB_CHAIN_ID: BNB })
  expect(of('56', '1')).toEqual([
    expect.stringMatching('^CAMBIST_ETH_CHAIN_ID: is 56, the chain id of BNB Smart Chain.*set it to 1'),
    expect.stringMatching('^CAMBIST_BNB_CHAIN_ID: is 1, the chain id of Ethereum.*set it to 56'),
  ])
  expect(of('1', '1')).toEqual([
    expect.stringMatching('^CAMBIST_BNB_CHAIN_ID: is 1, the chain id of Ethereum'),
  ])
  expect(of('56', '56')).toEqual([expect.stringMatching('^CAMBIST_ETH_CHAIN_ID: is 56, the chain id of BNB')])
})

const pairsOfEvm = evmChains.flatMap((chain) =>
  evmChains.filter((other) => other !== chain).map((other) => [chain, other] as const),
)

test.each(pairsOfEvm)(
  'a node of %s is not taken for one of %s, whichever EVM chains there are',
  (chain, other) => {
    const id = `CAMBIST_${chain}_CHAIN_ID`
    expect(problemsOf({ ...nodesOf(chain), [id]: String(mainnetChainIds[other]) })).toEqual([
      expect.stringMatching(`^${id}: is ${mainnetChainIds[other]}, .*set it to ${mainnetChainIds[chain]}`),
    ])
    const own = { CAMBIST_ETH_CHAIN_ID: '8453', CAMBIST_BNB_CHAIN_ID: '8454', [id]: '31337' }
    expect(problemsOf({ ...nodesOf(chain, other), ...own })).toEqual([])
    const alike = { ...own, [`CAMBIST_${other}_CHAIN_ID`]: '31337' }
    expect(problemsOf({ ...nodesOf(chain, other), ...alike })).toEqual([
      expect.stringContaining(`what is on that chain would be counted as`),
    ])
  },
)

test.each(assets.filter(({ isNative }) => !isNative))('the contract of $id is known', ({ id }) => {
  const all = assets
    .filter((each) => !each.isNative)
    .map((each) => variableOf(contractVariable(each.id)).default)
  const published = variableOf(contractVariable(id)).default
  expect(published, 'on a main network it would not be offered, and no other token be kept off it').toEqual(
    expect.any(String),
  )
  expect(all.filter((each) => each === published)).toHaveLength(1)
})

test('a contract is one token: with two names its balance would be counted twice, and its deposits not at all', () => {
  const usdt = '0xdAC17F958D2ee523a2206206994597C13D831ec7'
  for (const contract of [usdt, usdt.toLowerCase()])
    expect(problemsOf({ ...nodesOf('ETH'), CAMBIST_CONTRACT_USDC_ERC20: contract })).toEqual([
      expect.stringMatching('^CAMBIST_CONTRACT_USDC_ERC20: is the contract of USDT on ERC20'),
    ])
  const published = String(variableOf(contractVariable('USDT:BEP20')).default)
  expect(problemsOf({ ...nodesOf('BNB'), CAMBIST_CONTRACT_USDC_BEP20: published })).toEqual([
    expect.stringMatching('^CAMBIST_CONTRACT_USDC_BEP20: is the contract of USDT on BEP20'),
  ])
  const other = String(variableOf(contractVariable('USDC:BEP20')).default)
  const renamed = { CAMBIST_CONTRACT_USDT_BEP20: other, CAMBIST_CONTRACT_USDC_BEP20: `0x${'ab'.repeat(20)}` }
  expect(problemsOf({ ...nodesOf('BNB'), ...renamed }), 'also where its own name has another').toEqual([
    expect.stringMatching('^CAMBIST_CONTRACT_USDT_BEP20: is the contract of USDC on BEP20'),
  ])
  const swapped = {
    CAMBIST_CONTRACT_USDC_ERC20: usdt,
    CAMBIST_CONTRACT_USDT_ERC20: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
  }
  expect(problemsOf({ ...nodesOf('ETH'), ...swapped })).toEqual([
    expect.stringMatching('^CAMBIST_CONTRACT_USDT_ERC20: is the contract of USDC on ERC20'),
    expect.stringMatching('^CAMBIST_CONTRACT_USDC_ERC20: is the contract of USDT on ERC20'),
  ])
  const onBoth = { CAMBIST_CONTRACT_USDT_ERC20: usdt, CAMBIST_CONTRACT_USDT_BEP20: usdt }
  expect(problemsOf({ ...nodesOf('ETH', 'BNB'), ...onBoth }), 'on two chains it is two').toEqual([])
})
