import { bitcoinSpellings } from '../../domain/catalog/bitcoin_spellings.ts'
import type { BitcoinNetwork } from '../../domain/catalog/networks.ts'

export type BitcoinSettings = {
  readonly id: 'BTC'
  /** A Bitcoin Core compatible node with `-txindex=1`; credentials stand in the URL. */
  readonly rpcUrl: string
  readonly network: BitcoinNetwork
  /** Above this we do not pay; a payout waits for the fees to come down, or for a person. */
  readonly milliSatPerVbMax: bigint
  /** The most that one transaction may pay in all. The signer signs none above it, so none is written down. */
  readonly feeSatoshiMax: bigint
  /** What is bid while the node has too little data for an estimate (regtest, a node that just started). */
  readonly milliSatPerVbFallback: bigint
  readonly timeoutMs: number
  /** `scantxoutset` reads every coin there is: a minute or two on mainnet. 15 minutes unless told. */
  readonly scanTimeoutMs?: number
}

/** The only asset there is on this chain. */
export const BITCOIN = 'BTC:BTC'

/** What tells one network from another: how addresses are spelt, how the chain starts. */
export const networkFacts = {
  mainnet: {
    spelling: bitcoinSpellings.mainnet,
    chain: 'main',
    genesis: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
  },
  testnet: {
    spelling: bitcoinSpellings.testnet,
    chain: 'test',
    genesis: '000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943',
  },
  regtest: {
    spelling: bitcoinSpellings.regtest,
    chain: 'regtest',
    genesis: '0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206',
  },
} as const
