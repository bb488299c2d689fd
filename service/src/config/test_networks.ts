import type { ChainId } from '../domain/catalog/networks.ts'

/** Of EVM chains: Sepolia, Hoodi, Holesky, the test network of BNB Smart Chain, and what local nodes call themselves. */
const evm = [11_155_111, 560_048, 17_000, 97, 1_337, 31_337, 31_338, 31_356] as const

/**
 * The networks whose coins are worth nothing, by what names them in the configuration. Everything else is taken for one with
 * real money: a network that nobody thought of asks for limits and keys in vain, and does not go without them. Those of the devnet
 * are the last of each list.
 */
const testNetworks: Readonly<Record<ChainId, readonly (string | number)[]>> = {
  BTC: ['testnet', 'regtest'],
  ETH: evm,
  BNB: evm,
  // https://xrpl.org/docs/concepts/networks-and-servers/parallel-networks: Testnet, Devnet.
  XRP: [1, 2, 31_344],
  // https://developers.stellar.org/docs/networks: Testnet, Futurenet.
  XLM: [
    'Test SDF Network ; September 2015',
    'Test SDF Future Network ; October 2022',
    'Standalone Network ; February 2017',
  ],
  // Shasta, Nile.
  TRX: [
    '0000000000000000de1aa88295e1fcf982742f773e0419c5a9c134c994a9059e',
    '0000000000000000d698d4192c56cb6be724a558448e2684802de4d6cd8690dc',
    '000000000000000014c5c69ceda271c55067b9ecabaeb5a9f943cc37f474b7bc',
  ],
  // Jungle 4, Kylin, and a nodeos without a genesis of its own.
  EOS: [
    '73e4385a2708e6d7048834fbc1079f2fabb17b3c125b146af438971e90716c4d',
    '5fff1dae8dc8e2fc4d5b23b2c7665c97f9e9d8edf2b6485a86ba311c25639191',
    'cf057bbfb72640471fd910bcb67639c22df9f92470936cddc1ade0e2f2e7dc4f',
    'e3c5af9a16a4fe9ecb93f65d3917407aeb397a454d21431a45784ac62acf563a',
  ],
  // https://solana.com/docs/references/clusters: devnet, testnet.
  SOL: [
    'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG',
    '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY',
    '6HXb6PG1RYysAQCQqT1UWrAG9Rzou3Guc8h7UG3XfV9T',
  ],
}

export function isTestNetwork(chain: ChainId, name: string | number): boolean {
  return testNetworks[chain].includes(name)
}
