/**
 * A chain is a ledger with blocks; it is named by its native network. A network is what the interface calls
 * the way a currency travels: USDT on ERC20 travels on the chain ETH.
 */
export const chainFacts = {
  BTC: { name: 'Bitcoin', family: 'bitcoin', native: 'BTC', confirmations: 3, confirmationsLarge: 6 },
  ETH: { name: 'Ethereum', family: 'evm', native: 'ETH', confirmations: 12, confirmationsLarge: 12 },
  // One validator makes more blocks than that in its turn, so its node is also asked what is final (`finalBlock`).
  BNB: { name: 'BNB Smart Chain', family: 'evm', native: 'BNB', confirmations: 12, confirmationsLarge: 12 },
  // A ledger that is validated is final: there is nothing to wait for, and nothing is ever taken back.
  XRP: { name: 'XRP Ledger', family: 'xrp', native: 'XRP', confirmations: 1, confirmationsLarge: 1 },
  XLM: { name: 'Stellar', family: 'stellar', native: 'XLM', confirmations: 1, confirmationsLarge: 1 },
  // A block is solid, and never taken back, when 19 of 27 witnesses have built on it: 20 confirmations while all of
  // them take their turns, more when some do not. So its node is asked as well (`finalBlock`).
  TRX: { name: 'TRON', family: 'tron', native: 'TRX', confirmations: 20, confirmationsLarge: 20 },
  // Only what is irreversible is told.
  EOS: { name: 'EOS', family: 'eos', native: 'EOS', confirmations: 1, confirmationsLarge: 1 },
  // Only what is final is told of.
  SOL: { name: 'Solana', family: 'solana', native: 'SOL', confirmations: 1, confirmationsLarge: 1 },
} as const satisfies Record<
  string,
  { name: string; family: string; native: string; confirmations: number; confirmationsLarge: number }
>

/**
 * Where deposits lie. `coins`: as unspent outputs, spent from where they lie. `addresses`: each on an account of its
 * own, swept from there into the reserve. `tags`: all on one account, which is the reserve; a tag tells them apart.
 */
export const depositsLie = {
  bitcoin: 'coins',
  evm: 'addresses',
  xrp: 'tags',
  stellar: 'tags',
  tron: 'addresses',
  eos: 'tags',
  solana: 'addresses',
} as const satisfies Record<AddressFamily, 'coins' | 'addresses' | 'tags'>

/**
 * Whether no node takes an attempt any more once it is too late. Elsewhere it may say at every block that it takes what
 * it has not (geth does so of what it means to try later, because its pool is full or the fee too low for it), or not
 * say whether it takes it.
 */
export const attemptsEndWithTime: Readonly<Record<AddressFamily, boolean>> = {
  bitcoin: false,
  evm: false,
  xrp: true,
  stellar: true,
  tron: true,
  eos: true,
  solana: true,
}

/**
 * Whether an account has one transaction waiting at a time, so that whatever comes before its turn is dropped: stellar-core 20 and later
 * (https://github.com/stellar/stellar-core/pull/3869). What leaves such an account takes its nonce when it is its turn, and not before.
 */
export const leavesInTurn: Readonly<Record<AddressFamily, boolean>> = {
  bitcoin: false,
  evm: false,
  xrp: false,
  stellar: true,
  tron: false,
  eos: false,
  solana: false,
}

/**
 * Whether no chain ever takes two attempts of a payout, whatever the service says: they share a nonce or a coin.
 * Elsewhere only time keeps them apart, and the service has to be believed when it says of a block how old it is, and
 * that an earlier attempt was not taken (`isOver` of a chain); each may pay.
 */
export const excludesOnChain: Readonly<Record<AddressFamily, boolean>> = {
  bitcoin: true,
  evm: true,
  xrp: true,
  stellar: true,
  tron: false,
  eos: false,
  solana: false,
}

/**
 * Not a matter of how many confirmations are enough: with one that may be taken back a deposit is looked at again
 * before it is paid for.
 */
const tellFinalOnly: Readonly<Record<AddressFamily, boolean>> = {
  bitcoin: false,
  evm: false,
  xrp: true,
  stellar: true,
  tron: false,
  eos: true,
  solana: true,
}

export type ChainId = keyof typeof chainFacts
/** Chains of one family share address format and keys: a deposit sent on the wrong one is still found. */
export type AddressFamily = (typeof chainFacts)[ChainId]['family']

/**
 * Whether nothing is told before it is final: what waits for a block is not, nor a block that may yet be taken back.
 */
export function tellsFinalOnly(chain: ChainId): boolean {
  return tellFinalOnly[chainFacts[chain].family]
}

/** Which Bitcoin: each writes its addresses its own way. */
export const bitcoinNetworkNames = ['mainnet', 'testnet', 'regtest'] as const
export type BitcoinNetwork = (typeof bitcoinNetworkNames)[number]

export const chainIds = Object.keys(chainFacts) as readonly ChainId[]

/** Chains that run the EVM: an address of one is one of all, and only their ids (EIP-155) tell them apart. */
export type EvmChainId = {
  [Id in ChainId]: (typeof chainFacts)[Id]['family'] extends 'evm' ? Id : never
}[ChainId]

export function isEvmChain(chain: ChainId): chain is EvmChainId {
  return chainFacts[chain].family === 'evm'
}

export const evmChains = chainIds.filter(isEvmChain)

/** Network identifiers of the interface (spec 2.2) and the chain each lives on. */
export const networkChains = {
  BTC: 'BTC',
  ETH: 'ETH',
  BNB: 'BNB',
  XRP: 'XRP',
  XLM: 'XLM',
  TRX: 'TRX',
  EOS: 'EOS',
  SOL: 'SOL',
  ERC20: 'ETH',
  BEP20: 'BNB',
  TRC20: 'TRX',
} as const satisfies Record<string, ChainId>

export type NetworkId = keyof typeof networkChains

export function isNetworkId(text: string): text is NetworkId {
  return Object.hasOwn(networkChains, text)
}

export function isChainId(text: string): text is ChainId {
  return Object.hasOwn(chainFacts, text)
}
