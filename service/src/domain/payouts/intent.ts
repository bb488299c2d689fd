import type { AssetId } from '../catalog/assets.ts'
import type { ChainId } from '../catalog/networks.ts'
import type { InstantMs } from '../time.ts'

/** `CB…:1`: the order's first outflow. The number grows only when the one before is provably dead. */
export type PayoutId = string

export type OutflowKind = 'payout' | 'refund' | 'filler' | 'sweep'

/** Whether it pays an order's customer. Fillers and sweeps go from us to us: of them only what they cost leaves. */
export function paysSomebody({ kind }: { readonly kind: OutflowKind }): boolean {
  return kind === 'payout' || kind === 'refund'
}

/** Which of our keys: enough for the signer to derive it, useless to anyone else. */
export type KeyPath = {
  /** deposit: one for each order; reserve: what payouts are made from; change: what comes back on UTXO chains. */
  readonly purpose: 'deposit' | 'reserve' | 'change'
  readonly index: number
}

export function isSameKey(one: KeyPath, other: KeyPath): boolean {
  return one.purpose === other.purpose && one.index === other.index
}

/** A deposit address of ours that money leaves from. */
export type OutflowSource = { readonly key: KeyPath; readonly address: string }

/** Something that has to leave: `units` of the asset's ledger scale to `address`. */
export type Outflow = {
  readonly payoutId: PayoutId
  readonly kind: OutflowKind
  readonly asset: AssetId
  readonly units: bigint
  readonly address: string
  readonly tag: string | null
  /** Account chains, sweeps: left out, it leaves from the reserve. The units of native coin are then all there is. */
  readonly from?: OutflowSource
}

/** An unspent output that is ours. `satoshi` because it is what the chain counts in. */
export type Coin = {
  readonly txHash: string
  readonly index: number
  readonly satoshi: bigint
  readonly address: string
  readonly key: KeyPath
}

/**
 * One exact Bitcoin transaction, before signatures. Every attempt shares an input with every earlier one: with
 * {A}, {A,B}, {B} the first and the third could both be mined.
 */
export type BitcoinIntent = {
  readonly family: 'bitcoin'
  readonly chain: ChainId
  readonly payoutId: PayoutId
  readonly attempt: number
  readonly inputs: readonly Coin[]
  readonly payment: { readonly address: string; readonly satoshi: bigint }
  readonly change: { readonly address: string; readonly satoshi: bigint; readonly key: KeyPath } | null
  readonly feeSatoshi: bigint
}

/** One exact EVM transaction, before its signature. Attempt n+1 keeps the nonce of attempt n. */
export type EvmIntent = {
  readonly family: 'evm'
  readonly chain: ChainId
  readonly evmChainId: number
  readonly payoutId: PayoutId
  readonly attempt: number
  readonly from: KeyPath
  readonly nonce: number
  /** The person or contract paid; with `token`, the call goes to the contract and pays `to`. */
  readonly to: string
  /** What the chain counts in: wei, or the token's own units; not ledger units. */
  readonly units: bigint
  readonly token: string | null
  readonly gasLimit: bigint
  readonly maxFeePerGasWei: bigint
  readonly maxPriorityFeePerGasWei: bigint
}

/**
 * One exact transaction of the XRP Ledger, before its signature. Attempt n+1 keeps the sequence of attempt n, and none
 * can be in a ledger after `lastLedgerSequence`.
 */
export type XrpIntent = {
  readonly family: 'xrp'
  readonly chain: ChainId
  readonly networkId: number
  readonly payoutId: PayoutId
  readonly attempt: number
  readonly from: KeyPath
  readonly sequence: number
  /** A classic address. Null: a filler, which sets nothing on our own account and only uses up the sequence. */
  readonly payment: { readonly to: string; readonly tag: number | null; readonly drops: bigint } | null
  readonly feeDrops: bigint
  readonly lastLedgerSequence: number
}

/**
 * One exact Stellar transaction, before its signature. Attempt n+1 keeps the sequence of attempt n, and none can be in a
 * ledger that closes after `maxTimeS`.
 */
export type StellarIntent = {
  readonly family: 'stellar'
  readonly chain: ChainId
  /** Names the network: signatures are worth nothing on another one. */
  readonly passphrase: string
  readonly payoutId: PayoutId
  readonly attempt: number
  readonly from: KeyPath
  readonly sequence: bigint
  /**
   * `to` is an account (G…) or a muxed address (M…). `memo` is of the kind id when it is a number that fits one, otherwise
   * text. `creates`: the account is not there yet. Null: a filler, which only uses up the sequence.
   */
  readonly payment: {
    readonly to: string
    readonly memo: string | null
    readonly stroops: bigint
    readonly creates: boolean
  } | null
  readonly feeStroops: bigint
  /** Seconds since 1970, by the ledger's clock. */
  readonly maxTimeS: number
}

/**
 * One exact transaction of TRON, before its signature. Nothing on chain keeps two attempts apart but time: it can only be
 * in a block that stands on `reference` and whose parent is older than `expirationMs`. Attempt n+1 refers to a block that
 * is no older than the expiration of every earlier one.
 */
export type TronIntent = {
  readonly family: 'tron'
  readonly chain: ChainId
  readonly payoutId: PayoutId
  readonly attempt: number
  readonly from: KeyPath
  /** The person paid, in base58; with `token`, the call goes to the contract and pays `to`. */
  readonly to: string
  /** Sun, or the token's own units; not ledger units. */
  readonly units: bigint
  readonly token: string | null
  /** The most that energy may cost; 0 without a contract. */
  readonly feeLimitSun: bigint
  /** A solid block: its id and its time. */
  readonly reference: { readonly id: string; readonly timeMs: InstantMs }
  readonly expirationMs: InstantMs
  /** Nobody looks at it but the hash: equal payments of one moment have to differ. */
  readonly timestampMs: InstantMs
}

/**
 * One exact transaction of EOS, before its signature. As on TRON nothing keeps two attempts apart but time: it can only be in
 * a block that stands on `reference`, and in none that is later than `expirationMs`. Attempt n+1 refers to a block that is
 * no older than the expiration of every earlier one.
 */
export type EosIntent = {
  readonly family: 'eos'
  readonly chain: ChainId
  /** Signatures are over it, and worth nothing on another network. */
  readonly chainId: string
  readonly payoutId: PayoutId
  readonly attempt: number
  readonly from: KeyPath
  /** The name of our account. */
  readonly account: string
  /** In units of 0.0001 EOS. Without a memo it is ''. */
  readonly payment: { readonly to: string; readonly memo: string; readonly units: bigint }
  /** An irreversible block: its id and its time. */
  readonly reference: { readonly id: string; readonly timeMs: InstantMs }
  /** Whole seconds. */
  readonly expirationMs: InstantMs
  /** The most it may take of the network, in words. Far more than it needs: equal payments of one moment have to differ. */
  readonly netWordsMax: number
}

/**
 * One exact transaction of Solana, before its signatures. Nothing on chain keeps two attempts apart but the blocks that they
 * may be in: those above the one of `reference`, up to `lastHeight`. Attempt n+1 refers to a block no lower than that of every
 * earlier one.
 */
export type SolanaIntent = {
  readonly family: 'solana'
  readonly chain: ChainId
  readonly payoutId: PayoutId
  readonly attempt: number
  /** Whose money it is. */
  readonly from: KeyPath
  /** Who pays the network, and signs as well. */
  readonly payer: KeyPath
  /** The person paid; a token comes to lie in their associated account, which is made if it is not there. */
  readonly to: string
  /** Lamports, or the token's own units; not ledger units. */
  readonly units: bigint
  /** The token's mint. */
  readonly token: string | null
  readonly computeUnits: number
  readonly unitPriceMicroLamports: bigint
  /** A final block. Its height counts blocks, and not the slots that were skipped. */
  readonly reference: { readonly slot: number; readonly blockhash: string; readonly height: number }
  readonly lastHeight: number
}

export type Intent =
  | BitcoinIntent
  | EvmIntent
  | XrpIntent
  | StellarIntent
  | TronIntent
  | EosIntent
  | SolanaIntent

/** Sequences begin at the ledger that made the account, times 2^32: only what came since fits a number. */
const SEQUENCE_COUNT_BITS = 32

/** What orders the transactions of an account, each of which waits for the one before; null where none does. */
export function nonceOf(intent: Intent): number | null {
  switch (intent.family) {
    case 'bitcoin':
    case 'tron':
    case 'eos':
    case 'solana':
      return null
    case 'evm':
      return intent.nonce
    case 'xrp':
      return intent.sequence
    case 'stellar':
      return countOfSequence(intent.sequence)
  }
}

/** The outputs of ours that it spends, and that no other may spend at the same time; none where money lies on accounts. */
export function coinsOf(intent: Intent): readonly Coin[] {
  switch (intent.family) {
    case 'bitcoin':
      return intent.inputs
    case 'evm':
    case 'xrp':
    case 'stellar':
    case 'tron':
    case 'eos':
    case 'solana':
      return []
  }
}

/** How many sequences of its account came before, of the 2^32 that there are. */
export function countOfSequence(sequence: bigint): number {
  return Number.parseInt(String(BigInt.asUintN(SEQUENCE_COUNT_BITS, sequence)), 10)
}

/**
 * Where attempts have neither a nonce nor a coin in common: the time in which one can be in a block at all. Two whose times
 * do not meet are never both valid. Null: something else keeps them apart (a nonce, a coin, heights).
 */
export function validityOf(
  intent: Intent,
): { readonly fromMs: InstantMs; readonly untilMs: InstantMs } | null {
  return intent.family === 'tron' || intent.family === 'eos'
    ? { fromMs: intent.reference.timeMs, untilMs: intent.expirationMs }
    : null
}

/** Exactly the bytes to broadcast, in hex without 0x, and the hash the chain will know them by. */
export type SignedTx = { readonly txHash: string; readonly bytes: string }
