import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chainFacts, chainIds } from '../domain/catalog/networks.ts'
import { buildChains } from './index.ts'

/**
 * What: which assets the chains carry is what the configuration says, and nothing else: what is listed goes by it.
 * How: settings of a few chains, with nodes that nobody runs.
 */
const nobody = 'http://127.0.0.1:1'
const usdt = '0xdAC17F958D2ee523a2206206994597C13D831ec7'
const evmCaps = { maxFeePerGasWeiMax: 1n, gasLimitMax: 21_000n }

const settings: Parameters<typeof buildChains>[0] = {
  BTC: { rpcUrl: nobody, network: 'regtest', milliSatPerVbMax: 1n, feeSatoshiMax: 1n },
  ETH: { rpcUrl: nobody, evmChainId: 31337, tokens: { 'USDT:ERC20': usdt }, ...evmCaps },
  BNB: { rpcUrl: null, evmChainId: 31338, tokens: { 'USDT:BEP20': usdt }, ...evmCaps },
  XRP: { rpcUrl: null, networkId: 1, feeDropsMax: 1n },
  XLM: { rpcUrl: null, passphrase: 'Standalone Network ; February 2017', feeStroopsMax: 1n },
  TRX: { rpcUrl: null, solidUrl: null, genesisBlockId: '', feeLimitSunMax: 1n, tokens: {} },
  EOS: { rpcUrl: null, chainId: '', account: '', publicKey: '' },
  SOL: { rpcUrl: null, genesisHash: '', feeLamportsMax: 1n, tokens: {} },
  nodeTimeoutMs: 100,
}

test('chains that have a node carry their coin and their tokens that have a contract, whether or not the node answers', async () => {
  const chains = await buildChains(settings, async () => '')
  expect([...chains].map(([id, { assets }]) => [id, assets])).toEqual([
    ['BTC', ['BTC:BTC']],
    ['ETH', ['ETH:ETH', 'USDT:ERC20']],
  ])
})

const families = [...new Set(chainIds.map((chain) => chainFacts[chain].family))]

/** Which of a family's chains it runs for is for its types to say: each EVM chain, and elsewhere there is one. */
test.each(families)('the connector of %s runs the suite of every chain', (family) => {
  const suite = join(import.meta.dirname, '../../test/contract', `${family}.test.ts`)
  expect(readFileSync(suite, 'utf8')).toMatch(/^\s*describeChain\(\{/m)
})
