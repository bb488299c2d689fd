import type { AssetId } from '../domain/catalog/assets.ts'
import type { AddressFamily, ChainId } from '../domain/catalog/networks.ts'
import type { Amount } from '../domain/money/amount.ts'
import type { BlockRef } from '../domain/orders/order.ts'
import type { Outcome } from '../domain/outcome.ts'
import type {
  BitcoinIntent,
  Coin,
  EvmIntent,
  Intent,
  KeyPath,
  Outflow,
  SignedTx,
} from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'

export type { BlockRef }

/**
 * Money that reached an address. `id` is unique on its chain for ever and survives re-mining in another block:
 * `txid:vout` on Bitcoin; `txhash:log:<ordinal within the transaction>` for a token,
 * `txhash:call:<path in the call tree>` for native coin on EVM (a block-wide log index moves in a reorg).
 */
export type Transfer = {
  readonly id: string
  readonly txHash: string
  readonly to: string
  /** A token that is not in our catalogue is named by its contract; it is recorded and never credited. */
  readonly asset: AssetId | { readonly unlisted: string }
  /** Ledger units of the asset; raw token units when unlisted. */
  readonly units: bigint
  /** The block itself gave it and no transaction did, so `txHash` is the block's. No order counts it: it could not be looked up. */
  readonly isOfBlock?: true
}

export type Block = BlockRef & {
  readonly parentHash: string
  /** The block's own timestamp. */
  readonly timeMs: InstantMs
  /**
   * Successful, final-execution transfers to addresses of ours. Of a token an event is not enough where a node can be asked for balances of
   * this block, nor a trace of coin; on TRON it cannot, and the listed contract's event is.
   */
  readonly transfers: readonly Transfer[]
}

/** Asked once a block (or once a mempool look) with every recipient in it: cost is by block, not by orders. */
export type FindOurs = (addresses: readonly string[]) => Promise<ReadonlySet<string>>

/**
 * ours: what is ours was too little for it, whoever it was to pay. nobodys: what it was made for changed before it was in its block;
 * made anew, it would pay.
 */
export type Fault = 'ours' | 'nobodys'

/** What a connector throws because of its node, and what may be different when asked again. */
export class NodeTrouble extends Error {}

export type TxStatus =
  | { readonly where: 'absent' }
  | { readonly where: 'mempool' }
  | {
      readonly where: 'block'
      readonly block: BlockRef
      /** False when the chain executed and rejected it, or it moved nothing of its token: nothing was paid but the cost. */
      readonly succeeded: boolean
      /** Of an `attempt` that succeeded, where its token moved in another way than it was to: how. Nobody but a person can say what is paid. */
      readonly movedOtherwise?: string
      /** With one that failed, where the chain says that its payee has no part in that. */
      readonly fault?: Fault
      /** What the transaction cost us, in the chain's native asset. */
      readonly cost: Amount
    }

/** What the chain asks at present for being mined soon, already capped by the connector's configured cap. */
export type FeeBid =
  | { readonly family: 'bitcoin'; readonly milliSatPerVb: bigint }
  | {
      readonly family: 'evm'
      readonly gasLimit: bigint
      readonly maxFeePerGasWei: bigint
      readonly maxPriorityFeePerGasWei: bigint
      /** With a token that leaves a deposit address: what bringing coin there would take. */
      readonly bringingGas?: bigint
    }
  | { readonly family: 'xrp'; readonly feeDrops: bigint; readonly lastLedgerSequence: number }
  | {
      readonly family: 'stellar'
      readonly feeStroops: bigint
      readonly maxTimeS: number
      /** The sequence of the reserve account that its nonces are counted from. */
      readonly sequenceBase: bigint
      readonly creates: boolean
    }
  | {
      readonly family: 'tron'
      /** What its energy costs as it is estimated, and what it may cost at most. 0 without a contract. */
      readonly energySun: bigint
      readonly feeLimitSun: bigint
      /** Everything beside energy: bandwidth, and the account that it makes. */
      readonly otherSun: bigint
      readonly reference: { readonly id: string; readonly timeMs: InstantMs }
      readonly expirationMs: InstantMs
    }
  | {
      /** No fee: who sends has CPU, NET and RAM of its own. */
      readonly family: 'eos'
      readonly reference: { readonly id: string; readonly timeMs: InstantMs }
      readonly expirationMs: InstantMs
    }
  | {
      readonly family: 'solana'
      /** Compute units that it may use, and what one of them costs. */
      readonly units: number
      readonly unitPriceMicroLamports: bigint
      /** Everything that the network takes, but for an account that it makes. */
      readonly feeLamports: bigint
      /** What such an account for a token costs whoever makes it. */
      readonly holdingRentLamports: bigint
      /** A final block: its slot, and its height, in which skipped slots do not count. */
      readonly reference: { readonly slot: number; readonly blockhash: string; readonly height: number }
    }

/** What a payout to somebody who never had any of the asset would come to at present. */
export type PayoutEstimate = {
  /** In the native asset, generous; for quotes. */
  readonly cost: Amount
  /** Its fee is above what the operator allows, so that `bid` or `draft` would refuse it by `fee_cap`. */
  readonly isAboveFeeCap: boolean
  /** What the account that pays has too little of, where that is no fee: `bid` refuses every payout until it has more. */
  readonly lacks?: string
  /** Coin model, left out by others: of which coins a payout of all that they are worth can be drafted at that fee. */
  readonly coins?: CoinsThatPay
}

/** The largest ones, so many at the most, for the fee of one transaction has a cap; each brings its amount less what spending it costs. */
export type CoinsThatPay = { readonly countMax: number; readonly costSatoshi: bigint }

/** What an attempt may use; given out by the engine in the transaction that stores the intent. */
export type Funds =
  | {
      readonly model: 'coins'
      readonly coins: readonly Coin[]
      readonly change: { address: string; key: KeyPath }
      /** With a filler, which spends all of `coins`: the attempts that it has to outbid, its own among them. */
      readonly outbids?: readonly BitcoinIntent[]
    }
  | {
      readonly model: 'account'
      readonly from: KeyPath
      readonly nonce: number
      /** With an outflow that says where it leaves from: the wei there, which have to pay for gas as well. */
      readonly heldWei?: bigint
      /** With a filler: the attempt of another outflow that it has to outbid, as far as the operator allows so much. */
      readonly outbids?: EvmIntent
    }
  | {
      /** Accounts without a nonce: `isOver` says when a further attempt may be drafted. */
      readonly model: 'timed'
      readonly from: KeyPath
      /** With an outflow that says where it leaves from: the native coin there, in the chain's units. */
      readonly held?: bigint
    }

/**
 * What kind of no: `funds` waits for reserves; `network` waits for the chain; `destination` will never be
 * accepted by this address (a contract that reverts, a token that blocks it) and needs a person.
 */
export type DraftRejection = {
  readonly code: 'funds' | 'network' | 'destination' | 'fee_cap'
  readonly message: string
  /** Of a `destination`: who is paid could not tell for whom it is. No ledger enforces that, and whatever is sent arrives all the same. */
  readonly wouldArrive?: true
}

/** The node does one such thing at a time, and is doing it for somebody else. It says nothing about the chain, and may take minutes. */
export class NodeBusy extends Error {
  override readonly name = 'NodeBusy'
}

export type Waiting = readonly Transfer[] & { readonly isPart?: boolean }

/**
 * Of several nodes behind one address one may be so far behind another: half a minute where a block takes three seconds. One that is
 * further behind has no place beside it.
 */
export const BALANCE_LAG_BLOCKS = 10

export type Chain = {
  readonly id: ChainId
  readonly family: AddressFamily
  /** `coins`: payouts spend unspent outputs; `account`: payouts leave from the reserve account. */
  readonly model: 'coins' | 'account'
  /** What can be received and paid here: the native coin, and the tokens whose contracts are configured. */
  readonly assets: readonly AssetId[]

  /** Canonical text of a valid address that we may pay to on this chain; pure. */
  parseAddress(text: string): Outcome<string>
  /**
   * Where many people share an account: address and tag of somebody that we may pay, the tag out of the address if it
   * is in there. Rejects with `tag_required` when there is none. Left out: tags mean nothing on this chain. Pure.
   */
  parseTagged?(text: string, tag: string | null): Outcome<{ readonly address: string; readonly tag: string }>
  /** There as well: the account that a canonical address is on, as its own canonical address. Pure. */
  accountOf?(address: string): string
  /** Rejects unless the node is the chain that was configured (genesis hash, chain id). */
  checkIdentity(): Promise<void>
  /**
   * The newest block that is told here. `timeMs` is that of the node's newest one, where it can be relied on to seconds: a node that is
   * catching up has an old one. Rejects while the node knows that it lacks blocks.
   */
  head(): Promise<BlockRef & { readonly timeMs?: number }>
  /**
   * The newest block that the network itself says is never taken back; height and hash of one answer, as another may be of another node.
   * However deep, nothing above it counts as final, and nothing on a branch that it is not of. Left out where depth alone decides, or
   * only what is final is told.
   */
  finalBlock?(): Promise<BlockRef>
  /** The hash of the block now at `height` on the best chain, or null when there is none yet. */
  blockHash(height: number): Promise<string | null>
  /** The block now at `height` on the best chain, or null when there is none yet. Every transfer to ours is in it. */
  readBlock(height: number, findOurs: FindOurs): Promise<Block | null>
  /**
   * Transfers to ours that wait to be mined and were not told before by this object, or are of a transaction in `again`. May repeat, may
   * miss; the block decides. Where a mempool is read whole, one that is longer than a look can read says so by `isPart`, and the next look
   * goes on where it ended.
   */
  readMempool(findOurs: FindOurs, again?: ReadonlySet<string>): Promise<Waiting>
  /**
   * Whether the node knows a transaction now. Rejects with NodeTrouble when it cannot tell; `absent` is a definite answer, where a node
   * tells what waits. Where it tells of blocks alone (Stellar), what waits is absent too, and is sent again as it is.
   * `attempt`, of a transaction of ours, says in which blocks it may be, for a node that cannot find it by its hash, and what it was to
   * move: that of a token no success of its transaction says.
   */
  lookup(txHash: string, attempt?: Intent): Promise<TxStatus>

  /** Rejects when the node does not say what the chain asks. A payee, of whom nothing is known yet, is somebody new. */
  estimatePayout(asset: AssetId): Promise<PayoutEstimate>
  /**
   * Asks the node whether this could be paid now and at what fee. Nothing is spent or reserved. Whether an address
   * that the outflow leaves `from` has the gas is not asked here: `draft` is told what it holds.
   */
  bid(outflow: Outflow): Promise<Outcome<FeeBid, DraftRejection>>
  /**
   * Pure: an exact transaction out of a bid and funds. Attempt 1. Out of a deposit address: native coin is all that is
   * held but the gas; a token bids at most what the coin there pays for, and `funds` says that it is too little.
   */
  draft(outflow: Outflow, bid: FeeBid, funds: Funds): Outcome<Intent, DraftRejection>
  /**
   * Pure: the next attempt, which excludes the earlier one on chain and pays enough more to replace it. What leaves a
   * deposit address pays that out of what it moves, or (a token) not at all: `funds`. `held` is the
   * native coin there now, in the chain's units: where that is less than it was, less is moved. Where attempts exclude each
   * other by time, `network` as long as the earlier one has some left, and no sweep is raised.
   */
  raise(previous: Intent, bid: FeeBid, held?: bigint): Outcome<Intent, DraftRejection>
  /** Left out where no transaction waits for another: whether no block takes an attempt at its price, and one at a higher price would be taken. */
  isPricedOut?(attempt: Intent): Promise<boolean>
  /**
   * There where attempts have neither a nonce nor a coin in common: whether this one is in no block and never will be,
   * because its time is over on the final chain, which does not have it. Final: true stays true. Rejects when the node
   * cannot tell. `txHash` is null when its bytes were never stored, and so never sent. It reads every block in which the attempt
   * could be, once, and calls `between` before each.
   */
  isOver?(intent: Intent, txHash: string | null, between?: () => Promise<void>): Promise<boolean>
  /**
   * Sends the bytes. `unknown` (a timeout, a cut line) means maybe sent. What the node has already, or a block, counts as accepted; that it
   * has seen it before does not, where it says so of what it rejected as well. `refused` speaks of this node and of now: another, or the
   * same one later, may still take it, so nothing ends because of it.
   */
  broadcast(tx: SignedTx): Promise<'accepted' | 'refused' | 'unknown'>

  /** What the chain says these addresses hold of an asset at `height` (for accounts) or now (for coins). Ledger units. May reject as NodeBusy. */
  balance(asset: AssetId, addresses: readonly string[], height?: number): Promise<bigint>
  /**
   * How many blocks older than the newest final one a balance may be that is asked for now: another node behind the same address may be
   * ahead, and has told what is final. On TRON, EOS and Stellar one of a height as well, because no node says what block its answer is of.
   * Left out where what is final is deeper than nodes are ever apart.
   */
  readonly balanceLagBlocks?: number
  /** Of what an address of ours holds of the native coin, what the chain never lets go, in ledger units; 0 if left out. */
  lockedUnits?(): Promise<bigint>
  /**
   * The next nonce (mined transactions only) by the chain's best block, or by the one at `height`, which makes no difference
   * where nothing mined is ever taken back. Rejects where there are none.
   */
  minedNonce(address: string, height?: number): Promise<number>
  /**
   * Coin model, left out by others: whether the best chain has this output now and nothing in it spends it. What only waits to be
   * mined has spent nothing.
   */
  isUnspent?(coin: Pick<Coin, 'txHash' | 'index'>): Promise<boolean>
  /**
   * Coin model, left out by others: whether it is proven that none of these can ever be mined. Each spends a coin that is in no block, because
   * what should have brought it needs an output that something else has spent, or a coin that is missing in the same way;
   * and what has spent it is as deep in the best chain as a deposit has to be. False as long as one of them may be mined
   * or was, when the node cannot tell, and when a coin of theirs was itself spent: only our keys can do that, so that it
   * may be a payment that we do not know of any more.
   */
  areExcluded?(attempts: readonly Intent[]): Promise<boolean>
}
