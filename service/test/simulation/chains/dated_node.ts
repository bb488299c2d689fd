import type { Block, BlockRef, Transfer, TxStatus } from '../../../src/chains/chain.ts'
import { assert } from '../../../src/domain/assert.ts'
import { type AssetId, nativeAsset } from '../../../src/domain/catalog/assets.ts'
import { fromChainUnits } from '../../../src/domain/money/amount.ts'
import { AccountState } from './account_state.ts'
import {
  Branch,
  type MinedBlock,
  type OutsidePayments,
  type Payment,
  paidByOthers,
  type Reorg,
} from './branch.ts'

/** A transaction of ours, which no block takes any more when its time is over. */
export type DatedTx = {
  readonly txHash: string
  readonly from: string
  /** Null where accounts have none, and nothing but time keeps two transactions apart. */
  readonly sequence: number | null
  /** Null: it only uses up its sequence. `creates`, where that has to be said: whether it makes the account. */
  readonly payment: (Paid & { readonly to: string; readonly creates?: boolean }) | null
  readonly fee: bigint
  readonly isInTime: (block: NextBlock) => boolean
}

/** In chain units; `tag` says who of those that share the account is paid, in the words of the chain, and null: nobody does. */
export type Paid = { readonly tag: string | null; readonly units: bigint }

/** The block that would take a transaction. */
export type NextBlock = {
  readonly height: number
  readonly timeMs: number
  readonly parentTimeMs: number
  /** Of an earlier block; null for a hash that none has. */
  heightOf(hash: string): number | null
}

/** Somebody outside pays: their accounts never run dry. */
type OutsideTx = { readonly txHash: string; readonly from: null; readonly payments: readonly Payment[] }
type Tx = DatedTx | OutsideTx
type Executed = { readonly end: End; readonly fee: bigint; readonly transfers: readonly Transfer[] }
/** overtaken: it was to make an account that somebody else had made. */
type End = 'success' | 'failure' | 'overtaken'

export type DatedId = 'XRP' | 'XLM' | 'TRX' | 'EOS' | 'SOL'

export type DatedRules = {
  readonly id: DatedId
  /** So many of the newest blocks may leave again. */
  reversible(): number
  /** Whether these are told of as well, and what waits for one; otherwise a block is told when it is solid. */
  readonly tellsReversible: boolean
  /** Whether a transaction that waits can be told from one that is nowhere. */
  readonly tellsWaiting: boolean
  /** An account has one transaction waiting; of another one nobody says what becomes of it. */
  readonly queuesOne: boolean
  /** Whether who bids less than is asked is not let in. */
  readonly asksFee: boolean
  /** What an account holds at the least, unless it is emptied. */
  readonly leastLeft: bigint
  /** Who holds what is sent to an address: where tags are part of it, the account. */
  holderOf(address: string): string
  /** The transaction in these bytes; null when there is none that this chain knows. */
  read(bytes: string): DatedTx | null
}

const USUAL_FEE = 1_000n

/**
 * A node in memory of a chain whose transactions have an end: with sequences as the XRP Ledger and Stellar have them, or
 * without as TRON, EOS and Solana, where it executes every transaction that it has not executed before.
 */
export class DatedNode {
  readonly #rules: DatedRules
  readonly #native: AssetId
  readonly #nowMs: () => number
  readonly #branch: Branch<Tx>
  readonly #state = new AccountState()
  readonly #mempool = new Map<string, Tx>()
  readonly #executed = new Map<string, Executed>()
  readonly #failures = new Map<string, bigint>()
  #outsideMade = 0

  /** What is asked of a transaction now, and the least that is let in. */
  fee = USUAL_FEE
  /** Accounts that cannot be paid. */
  readonly reverting = new Set<string>()
  /** Accounts that are there although they never held anything. */
  readonly opened = new Set<string>()
  /** Whose account was there before we made it. */
  readonly overtaken = new Set<string>()

  constructor(rules: DatedRules, nowMs: () => number) {
    this.#rules = rules
    this.#native = nativeAsset(rules.id).id
    this.#nowMs = nowMs
    this.#branch = new Branch<Tx>(rules.id, '')
  }

  /** The newest block that is told. */
  head(): BlockRef & { readonly timeMs: number } {
    return this.#rules.tellsReversible ? this.newest() : this.solid()
  }

  newest(): BlockRef & { readonly timeMs: number } {
    return refOf(this.#branch.head)
  }

  /** The newest block that no reorganisation undoes. */
  solid(): BlockRef & { readonly timeMs: number } {
    const block = this.#branch.at(Math.max(0, this.newest().height - this.#rules.reversible()))
    assert(block !== null, 'there is a first block')
    return refOf(block)
  }

  blockHash(height: number): string | null {
    return this.#toldAt(height)?.hash ?? null
  }

  /** With every transfer in it, to whomever. */
  block(height: number): Block | null {
    const block = this.#toldAt(height)
    return block && this.#withTransfers(block)
  }

  /**
   * Every block there ever was, each after the one below it, with what others than the house have paid in it; also those that are not
   * told yet.
   */
  history(): Block[] {
    return paidByOthers(this.#branch.made).map((block) => this.#withTransfers(block))
  }

  #withTransfers({ height, hash, parentHash, timeMs, txs }: MinedBlock<Tx>): Block {
    const transfers = txs.flatMap(({ txHash }) => this.#executed.get(txHash)?.transfers ?? [])
    return { height, hash, parentHash, timeMs, transfers }
  }

  /** What payments to an address that were executed and failed have cost, in any block there ever was. */
  failedCost(to: string): bigint {
    return this.#failures.get(to) ?? 0n
  }

  waiting(): Transfer[] {
    const tells = this.#rules.tellsReversible && this.#rules.reversible() > 0
    return tells ? [...this.#mempool.values()].flatMap((tx) => this.#transfersOf(tx)) : []
  }

  lookup(txHash: string): TxStatus {
    const home = this.#branch.homeOf(txHash)
    const executed = this.#executed.get(txHash)
    if (home !== null && executed !== undefined) {
      const { height, hash } = home
      if (height > this.head().height) return { where: 'mempool' }
      const cost = fromChainUnits(this.#native, executed.fee)
      const found = {
        where: 'block',
        block: { height, hash },
        succeeded: executed.end === 'success',
        cost,
      } as const
      return executed.end === 'overtaken' ? { ...found, fault: 'nobodys' } : found
    }
    return this.#rules.tellsWaiting && this.#mempool.has(txHash) ? { where: 'mempool' } : { where: 'absent' }
  }

  askedFee(): bigint {
    return this.fee
  }

  /** Chain units, all holders together; at a height, or as far as is told. */
  holds(asset: AssetId, addresses: readonly string[], height = this.head().height): bigint {
    const holders = new Set(addresses.map(this.#rules.holderOf))
    return [...holders].reduce((sum, holder) => sum + this.#state.read(`${asset} ${holder}`, height), 0n)
  }

  /** Who holds what is sent there, whatever tag stands in the address. */
  holderOf(address: string): string {
    return this.#rules.holderOf(address)
  }

  /** What we have paid to whoever shares this account, in the blocks that stand, the newest included. */
  paidTo(address: string): Paid[] {
    const holder = this.holderOf(address)
    return this.#branch.txs().flatMap(({ txHash, ...tx }) => {
      if (!('payment' in tx) || tx.payment === null || this.#executed.get(txHash)?.end !== 'success')
        return []
      const { to, tag, units } = tx.payment
      return this.holderOf(to) === holder ? [{ tag, units }] : []
    })
  }

  /** Whether there is such an account, by the newest block. */
  isThere(address: string): boolean {
    return this.opened.has(this.#rules.holderOf(address)) || this.#held(address) > 0n
  }

  minedNonce(address: string): number {
    return Number.parseInt(this.#state.read(`nonce ${this.#rules.holderOf(address)}`).toString(), 10)
  }

  isPayable(address: string): boolean {
    return !this.reverting.has(this.holderOf(address))
  }

  send(bytes: string): 'accepted' | 'refused' | 'unknown' {
    const tx = this.#rules.read(bytes)
    if (tx === null) return 'refused'
    if (this.#mempool.has(tx.txHash) || this.#branch.homeOf(tx.txHash) !== null) return 'accepted'
    const isPast = tx.sequence !== null && tx.sequence < this.minedNonce(tx.from)
    if (isPast || !this.#isWorthIt(tx)) return 'refused'
    if (this.#rules.queuesOne) return this.#queueAlone(tx)
    if (!tx.isInTime(this.#next())) return 'refused'
    const rival = this.#rivalOf(tx)
    if (rival !== undefined) {
      // A queue wants a quarter more: https://xrpl.org/docs/concepts/transactions/transaction-queue
      if (tx.fee * 4n < rival.fee * 5n) return 'refused'
      this.#mempool.delete(rival.txHash)
    }
    this.#mempool.set(tx.txHash, tx)
    return 'accepted'
  }

  /** Whether it pays what is asked, and its account what it wants. */
  #isWorthIt({ from, fee, payment }: DatedTx): boolean {
    if (this.#rules.asksFee && fee < this.fee) return false
    const left = this.#held(from) - fee - (payment?.units ?? 0n)
    return left === 0n || (left > 0n && left >= this.#rules.leastLeft)
  }

  /**
   * Who knows no ledger that is too late, or has used the sequence, cannot tell what becomes of it elsewhere:
   * src/chains/stellar/broadcast.ts says so of what Horizon refuses.
   */
  #queueAlone(tx: DatedTx): 'accepted' | 'refused' | 'unknown' {
    const { timeMs } = this.newest()
    if (!tx.isInTime(this.#next())) return tx.isInTime({ ...this.#next(), timeMs }) ? 'unknown' : 'refused'
    const isNext = tx.sequence === null || tx.sequence === this.minedNonce(tx.from)
    const isAlone = ![...this.#mempool.values()].some(({ from }) => from === tx.from)
    if (!isNext || !isAlone) return 'unknown'
    this.#mempool.set(tx.txHash, tx)
    return 'accepted'
  }

  /** Whether a transaction has paid or may yet, whoever sends it: its sequence is not used, and its time is not over. */
  mayPay(bytes: string): boolean {
    const tx = this.#rules.read(bytes)
    if (tx === null) return false
    if (this.#branch.homeOf(tx.txHash) !== null) return this.#executed.get(tx.txHash)?.end === 'success'
    return !this.#isOutdated(tx)
  }

  pay(payments: readonly Payment[]): string {
    this.#outsideMade += 1
    const txHash = this.#branch.hash(`payment ${this.#outsideMade}`)
    this.#mempool.set(txHash, { txHash, from: null, payments })
    return txHash
  }

  /** What waits of people outside and could be made anew: nothing, for nothing here takes another's place. */
  outsiders(): OutsidePayments[] {
    return []
  }

  replaceOutside(txHash: string): void {
    assert(!this.#mempool.has(txHash), 'nobody is told that it could be replaced')
  }

  /** Mines what is in time and its account's next into the first of the blocks; `takes` may leave some out. */
  mine(blocks = 1, takes: (txHash: string) => boolean = () => true): void {
    for (let made = 0; made < blocks; made += 1) {
      const taken = made === 0 ? this.#executeReady(this.#next(), takes) : []
      this.#branch.append(taken, this.#nowMs())
      this.#dropOutdated()
    }
  }

  reorg({ depth, longer = 1, fate = () => 'waits' }: Reorg): void {
    assert(depth <= this.#rules.reversible(), 'solid blocks stay')
    const blocks = this.#branch.cut(depth, this.#nowMs())
    for (const { height } of blocks.toReversed()) this.#state.forget(height)
    const left = blocks.flatMap(({ txs }) => txs)
    const before = [...this.#mempool.values()]
    this.#mempool.clear()
    for (const tx of [...left.filter(({ txHash }) => fate(txHash) !== 'lost'), ...before])
      this.#mempool.set(tx.txHash, tx)
    const isStaying = new Set(left.map(({ txHash }) => txHash).filter((txHash) => fate(txHash) === 'stays'))
    this.mine(depth + longer, (txHash) => isStaying.has(txHash))
  }

  /** The node drops a waiting transaction. */
  forget(txHash: string): void {
    this.#mempool.delete(txHash)
  }

  /** Fees as at the beginning. */
  calm(): void {
    this.fee = USUAL_FEE
  }

  /** How deep a block is below the newest that is told, or was at the most before it lost. */
  depthOf(hash: string): number {
    return this.#branch.depthOf(hash) - (this.newest().height - this.head().height)
  }

  /** How deep a transaction is below the newest block that is told, or was in one that lost later than at this moment. */
  deepestSince(txHash: string, sinceMs: number): number {
    return this.#branch.deepestSince(txHash, sinceMs) - (this.newest().height - this.head().height)
  }

  /** When a block lost; null for one that stands. */
  lostAtMs(hash: string): number | null {
    return this.#branch.lostAtMs(hash)
  }

  /** When a block lost last. */
  lastLostAtMs(): number {
    return this.#branch.lastLostAtMs
  }

  /** How deep the newest transaction is. */
  depth(): number {
    return this.#branch.calmBlocks
  }

  /** Hashes that wait. */
  mempool(): string[] {
    return [...this.#mempool.keys()]
  }

  /** Accounts that what waits would make. */
  awaited(): string[] {
    return [...this.#mempool.values()].flatMap((tx) =>
      tx.from !== null && tx.payment?.creates === true ? [tx.payment.to] : [],
    )
  }

  /** Whether something waits that has a time. */
  hasDated(): boolean {
    return [...this.#mempool.values()].some(({ from }) => from !== null)
  }

  #rivalOf({ from, sequence }: DatedTx): DatedTx | undefined {
    if (sequence === null) return undefined
    const waiting = [...this.#mempool.values()].filter((tx): tx is DatedTx => tx.from !== null)
    return waiting.find((tx) => tx.from === from && tx.sequence === sequence)
  }

  /** In the order of arrival, again and again, because one that waited for a sequence may be ready now. */
  #executeReady(block: NextBlock, takes: (txHash: string) => boolean): Tx[] {
    const taken: Tx[] = []
    for (let before = -1; before < taken.length; ) {
      before = taken.length
      for (const tx of this.#mempool.values()) {
        if (!takes(tx.txHash) || !this.#isReady(tx, block)) continue
        this.#mempool.delete(tx.txHash)
        this.#execute(tx, block.height)
        taken.push(tx)
      }
    }
    return taken
  }

  #isReady(tx: Tx, block: NextBlock): boolean {
    if (tx.from === null) return true
    const isNext = tx.sequence === null || tx.sequence === this.minedNonce(tx.from)
    return isNext && tx.isInTime(block) && this.#held(tx.from) >= tx.fee
  }

  #next(): NextBlock {
    const { height, timeMs: parentTimeMs } = this.newest()
    const heightOf = (hash: string) => this.#branch.heightOf(hash)
    return { height: height + 1, timeMs: this.#nowMs(), parentTimeMs, heightOf }
  }

  #toldAt(height: number): MinedBlock<Tx> | null {
    return height > this.head().height ? null : this.#branch.at(height)
  }

  /** By the newest block, whether it is told or not. */
  #held(address: string): bigint {
    return this.#state.read(`${this.#native} ${this.#rules.holderOf(address)}`)
  }

  #execute(tx: Tx, height: number): void {
    const fee = tx.from === null ? 0n : tx.fee
    const end = tx.from === null ? 'success' : this.#takeFrom(tx, height)
    const isSuccess = end === 'success'
    const payments = isSuccess ? this.#paymentsOf(tx) : []
    for (const { to, units } of payments)
      this.#state.add(`${this.#native} ${this.#rules.holderOf(to)}`, height, units)
    this.#executed.set(tx.txHash, { end, fee, transfers: isSuccess ? this.#transfersOf(tx) : [] })
    if (isSuccess || tx.from === null || tx.payment === null) return
    if (end === 'overtaken') this.overtaken.add(tx.payment.to)
    this.#failures.set(tx.payment.to, this.failedCost(tx.payment.to) + fee)
  }

  /** The fee in any case; a failure when what is to be paid is not there, or nobody takes it. */
  #takeFrom({ from, sequence, payment, fee }: DatedTx, height: number): End {
    this.#state.add(`${this.#native} ${from}`, height, -fee)
    if (sequence !== null) this.#state.add(`nonce ${from}`, height, 1n)
    if (payment === null) return 'success'
    if (!this.isPayable(payment.to) || this.#held(from) < payment.units) return 'failure'
    if (payment.creates !== undefined && payment.creates === this.isThere(payment.to))
      return payment.creates ? 'overtaken' : 'failure'
    this.#state.add(`${this.#native} ${from}`, height, -payment.units)
    return 'success'
  }

  #paymentsOf(tx: Tx): readonly { readonly to: string; readonly units: bigint }[] {
    if (tx.from === null) return tx.payments
    return tx.payment === null ? [] : [tx.payment]
  }

  #transfersOf(tx: Tx): Transfer[] {
    const { txHash } = tx
    return this.#paymentsOf(tx).map(({ to, units }, index): Transfer => {
      const asset = this.#native
      return { id: `${txHash}:${index}`, txHash, to, asset, units: fromChainUnits(asset, units).units }
    })
  }

  /** What is too late, or whose sequence was used by another, is never taken. */
  #dropOutdated(): void {
    for (const tx of this.#mempool.values()) {
      if (tx.from !== null && this.#isOutdated(tx)) this.#mempool.delete(tx.txHash)
    }
  }

  #isOutdated(tx: DatedTx): boolean {
    const isPast = tx.sequence !== null && tx.sequence < this.minedNonce(tx.from)
    return isPast || !tx.isInTime(this.#next())
  }
}

function refOf({ height, hash, timeMs }: MinedBlock<Tx>): BlockRef & { readonly timeMs: number } {
  return { height, hash, timeMs }
}
