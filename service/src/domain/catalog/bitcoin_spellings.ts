import type { BitcoinNetwork } from './networks.ts'

/** What begins an address: a word in bech32, a byte in base58. */
type BitcoinSpelling = {
  readonly bech32: string
  readonly pubKeyHash: number
  readonly scriptHash: number
  readonly wif: number
}

const testnet = { bech32: 'tb', pubKeyHash: 0x6f, scriptHash: 0xc4, wif: 0xef }

/** How each network writes its addresses; regtest differs from testnet only in its bech32 word. */
export const bitcoinSpellings = {
  mainnet: { bech32: 'bc', pubKeyHash: 0x00, scriptHash: 0x05, wif: 0x80 },
  testnet,
  regtest: { ...testnet, bech32: 'bcrt' },
} as const satisfies Record<BitcoinNetwork, BitcoinSpelling>
