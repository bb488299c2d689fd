import { expect, test } from 'vitest'
import { buildChains } from '../chains/index.ts'
import { chainIds } from '../domain/catalog/networks.ts'
import { defaultPolicy } from './default_policy.ts'
import { excludesByTime } from './payouts/over.ts'

/**
 * What: whatever keeps attempts of a chain apart says when there is a further one: how long the last has waited, or that it is over.
 * How: all chains there are, with nodes that nobody runs.
 */
const rpcUrl = 'http://127.0.0.1:1'
const evm = { rpcUrl, tokens: {}, maxFeePerGasWeiMax: 1n, gasLimitMax: 21_000n }

test('each chain either raises fees after a while or says when an attempt is over', async () => {
  const settings = {
    BTC: { rpcUrl, network: 'regtest', milliSatPerVbMax: 1n, feeSatoshiMax: 1n },
    ETH: { ...evm, evmChainId: 31337 },
    BNB: { ...evm, evmChainId: 31338 },
    XRP: { rpcUrl, networkId: 1, feeDropsMax: 1n },
    XLM: { rpcUrl, passphrase: 'Standalone Network ; February 2017', feeStroopsMax: 1n },
    TRX: { rpcUrl, solidUrl: null, genesisBlockId: '', feeLimitSunMax: 1n, tokens: {} },
    EOS: { rpcUrl, chainId: '', account: 'cambist', publicKey: '' },
    SOL: { rpcUrl, genesisHash: '', feeLamportsMax: 1n, tokens: {} },
    nodeTimeoutMs: 100,
  } as const
  const chains = await buildChains(settings, async () => '')
  expect([...chains.keys()].toSorted()).toEqual(chainIds.toSorted())
  for (const [id, chain] of chains) {
    expect(defaultPolicy.bumpAfterMs[id] === undefined, id).toBe(excludesByTime(chain))
  }
})
