import type { Block, BlockRef, Transfer, TxStatus } from '../../../src/chains/chain.ts'
import { assert } from '../../../src/domain/assert.ts'
import { type AssetId, nativeAsset } from '../../../src/domain/catalog/assets.ts'
import type { ChainId } from '../../../src/domain/catalog/networks.ts'
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
import { type AccountTx, readAccountTx } from './read_account_tx.ts'

/** Somebody outside pays: their accounts never run dry. Several payments are made by one contract. */
type OutsideTx = {
  readonly txHash: string
  readonly from: null
  readonly payments: readonly Payment[]
  readonly feeWei: bigint
}
type Tx = AccountTx | OutsideTx
type Executed = {
  readonly gasUsed: bigint
  readonly isSuccess: boolean
  readonly transfers: readonly Transfer[]
}

export const COIN_GAS = 21_000n
export const TOKEN_GAS = 60_000n

/**
 * A node of an account chain in memory. It reads the real bytes and takes the sender from their signature. What happens
 * to the chain happens by `pay`, `replace`, `mine`, `reorg` and `forget`; the rest are the questions of a connector.
 */
export class AccountNode {
  readonly id: ChainId
  readonly #native: AssetId
  readonly #tokens: Readonly<Record<string, AssetId>>
  readonly #nowMs: () => number
  readonly #branch: Branch<Tx>
  readonly #state = new AccountState()
  readonly #mempool = new Map<string, Tx>()
  /** Who waits with a sender's nonce. */
  readonly #byNonce = new Map<string, AccountTx>()
  readonly #executed = new Map<string, Executed & { readonly priceWei: bigint }>()
  readonly #failures = new Map<string, bigint>()
  #outsideMade = 0

  baseWei = 10n ** 9n
  tipWei = 10n ** 9n
  /** Less is not let into the mempool. */
  relayWei = 1n
  /** Cannot be paid: contracts that revert. */
  readonly reverting = new Set<string>()

  /** `tokens`: listed assets by their contract. */
  constructor(id: ChainId, tokens: Readonly<Record<string, AssetId>>, nowMs: () => number) {
    this.id = id
    this.#native = nativeAsset(id).id
    this.#tokens = tokens
    this.#nowMs = nowMs
    this.#branch = new Branch<Tx>(id, '0x')
  }

  head(): BlockRef {
    const { height, hash } = this.#branch.head
    return { height, hash }
  }

  blockHash(height: number): string | null {
    return this.#branch.at(height)?.hash ?? null
  }

  /** With every transfer in it, to whomever. */
  block(height: number): Block | null {
    const block = this.#branch.at(height)
    return block && this.#withTransfers(block)
  }

  /** Every block there ever was, each after the one below it, with what others than the house have paid in it. */
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

  /** What plain transactions would bring; what a contract will do nobody knows before. */
  waiting(): Transfer[] {
    const isPlain = (tx: Tx) => tx.from !== null || tx.payments.length === 1
    return [...this.#mempool.values()].filter(isPlain).flatMap((tx) => this.#transfersOf(tx))
  }

  lookup(txHash: string): TxStatus {
    const home = this.#branch.homeOf(txHash)
    const executed = this.#executed.get(txHash)
    if (home !== null && executed !== undefined) {
      const { gasUsed, priceWei, isSuccess } = executed
      const { height, hash } = home
      const cost = fromChainUnits(this.#native, gasUsed * priceWei)
      return { where: 'block', block: { height, hash }, succeeded: isSuccess, cost }
    }
    return this.#mempool.has(txHash) ? { where: 'mempool' } : { where: 'absent' }
  }

  askedFees(): { readonly baseWei: bigint; readonly tipWei: bigint } {
    return { baseWei: this.baseWei, tipWei: this.tipWei }
  }

  /** Chain units, all addresses together. */
  holds(asset: AssetId, addresses: readonly string[], height?: number): bigint {
    return [...new Set(addresses)].reduce((sum, one) => sum + this.#state.read(`${asset} ${one}`, height), 0n)
  }

  minedNonce(address: string, height?: number): number {
    return Number.parseInt(this.#state.read(`nonce ${address}`, height).toString(), 10)
  }

  isPayable(address: string): boolean {
    return !this.reverting.has(address)
  }

  async send(bytes: string): Promise<'accepted' | 'refused'> {
    const tx = await readAccountTx(bytes, this.#tokens, this.#native)
    if (tx === null) return 'refused'
    if (this.#mempool.has(tx.txHash) || this.#branch.homeOf(tx.txHash) !== null) return 'accepted'
    if (tx.nonce < this.minedNonce(tx.from) || tx.maxFeeWei < this.relayWei) return 'refused'
    if (this.holds(this.#native, [tx.from]) < this.#neededWei(tx)) return 'refused'
    const rival = this.#byNonce.get(`${tx.from} ${tx.nonce}`)
    if (rival !== undefined) {
      // Nodes want 10 % more on both fees (geth's txpool.pricebump).
      const isDearer = tx.maxFeeWei * 10n >= rival.maxFeeWei * 11n && tx.tipWei * 10n >= rival.tipWei * 11n
      if (!isDearer) return 'refused'
      this.#drop(rival)
    }
    this.#keep(tx)
    return 'accepted'
  }

  /** Whether a transaction has paid or may yet, whoever sends it: its nonce was not used so deep. */
  async mayPay(bytes: string, confirmations: number): Promise<boolean> {
    const tx = await readAccountTx(bytes, this.#tokens, this.#native)
    if (tx === null) return false
    if (this.#branch.homeOf(tx.txHash) !== null) return this.#executed.get(tx.txHash)?.isSuccess === true
    return tx.nonce >= this.minedNonce(tx.from, this.#branch.head.height + 1 - confirmations)
  }

  pay(payments: readonly Payment[], feeWei = this.baseWei + this.tipWei): string {
    this.#outsideMade += 1
    const txHash = this.#branch.hash(`payment ${this.#outsideMade}`)
    this.#keep({ txHash, from: null, payments, feeWei })
    return txHash
  }

  /** A waiting payment from outside is made anew for more, to whomever; null when it no longer waits. */
  replace(txHash: string, payments: readonly Payment[]): string | null {
    const old = this.#mempool.get(txHash)
    if (old === undefined) return null
    assert(old.from === null, 'only people outside replace what they sent')
    this.#drop(old)
    return this.pay(payments, old.feeWei * 2n)
  }

  /** What waits of people outside. */
  outsiders(): OutsidePayments[] {
    return [...this.#mempool.values()].filter((tx) => tx.from === null)
  }

  /** `replace`, in the words of every node. */
  replaceOutside(txHash: string, payments: readonly Payment[]): void {
    this.replace(txHash, payments)
  }

  /** Mines what pays enough and is its account's next into the first of the blocks; `takes` may leave some out. */
  mine(blocks = 1, takes: (txHash: string) => boolean = () => true): void {
    for (let made = 0; made < blocks; made += 1) {
      const height = this.#branch.head.height + 1
      const taken = made === 0 ? this.#executeReady(height, takes) : []
      this.#branch.append(taken, this.#nowMs())
      this.#dropOutdated()
    }
  }

  reorg({ depth, longer = 1, fate = () => 'waits' }: Reorg): void {
    const blocks = this.#branch.cut(depth, this.#nowMs())
    for (const { height } of blocks.toReversed()) this.#state.forget(height)
    const left = blocks.flatMap(({ txs }) => txs)
    const before = [...this.#mempool.values()]
    for (const tx of before) this.#drop(tx)
    for (const tx of [...left.filter(({ txHash }) => fate(txHash) !== 'lost'), ...before]) {
      this.#keep(tx)
    }
    this.#dropOutdated()
    const isStaying = new Set(left.map(({ txHash }) => txHash).filter((txHash) => fate(txHash) === 'stays'))
    this.mine(depth + longer, (txHash) => isStaying.has(txHash))
  }

  /** The node drops a waiting transaction. */
  forget(txHash: string): void {
    const tx = this.#mempool.get(txHash)
    if (tx !== undefined) this.#drop(tx)
  }

  /** Fees as at the beginning. */
  calm(): void {
    this.baseWei = 10n ** 9n
    this.tipWei = 10n ** 9n
    this.relayWei = 1n
  }

  /** How deep a block is, or was at the most before it lost. */
  depthOf(hash: string): number {
    return this.#branch.depthOf(hash)
  }

  /** How deep a transaction is, or was in a block that lost later than at this moment. */
  deepestSince(txHash: string, sinceMs: number): number {
    return this.#branch.deepestSince(txHash, sinceMs)
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

  /** In the order of arrival, again and again, because one that waited for a nonce may be ready now. */
  #executeReady(height: number, takes: (txHash: string) => boolean): Tx[] {
    const taken: Tx[] = []
    for (let before = -1; before < taken.length; ) {
      before = taken.length
      for (const tx of this.#mempool.values()) {
        if (!takes(tx.txHash) || !this.#isReady(tx)) continue
        this.#drop(tx)
        this.#execute(tx, height)
        taken.push(tx)
      }
    }
    return taken
  }

  #keep(tx: Tx): void {
    this.#mempool.set(tx.txHash, tx)
    if (tx.from !== null) this.#byNonce.set(`${tx.from} ${tx.nonce}`, tx)
  }

  #drop(tx: Tx): void {
    this.#mempool.delete(tx.txHash)
    if (tx.from !== null) this.#byNonce.delete(`${tx.from} ${tx.nonce}`)
  }

  #isReady(tx: Tx): boolean {
    if (tx.from === null) return tx.feeWei >= this.baseWei
    const isNext = tx.nonce === this.minedNonce(tx.from) && tx.maxFeeWei >= this.baseWei
    return isNext && this.holds(this.#native, [tx.from]) >= this.#neededWei(tx)
  }

  #neededWei(tx: AccountTx): bigint {
    return tx.gasLimit * tx.maxFeeWei + (tx.asset === this.#native ? tx.units : 0n)
  }

  #execute(tx: Tx, height: number): void {
    if (tx.from === null) {
      this.#executed.set(
        tx.txHash,
        this.#settle(tx, height, { gasUsed: COIN_GAS, isSuccess: true, priceWei: 0n }),
      )
      return
    }
    const roomWei = tx.maxFeeWei - this.baseWei
    const priceWei = this.baseWei + (tx.tipWei < roomWei ? tx.tipWei : roomWei)
    const gas = tx.asset === this.#native ? COIN_GAS : TOKEN_GAS
    const gasUsed = tx.gasLimit < gas ? tx.gasLimit : gas
    this.#state.add(`nonce ${tx.from}`, height, 1n)
    this.#state.add(`${this.#native} ${tx.from}`, height, -gasUsed * priceWei)
    const isSuccess =
      tx.gasLimit >= gas && this.isPayable(tx.to) && this.holds(tx.asset, [tx.from]) >= tx.units
    this.#executed.set(tx.txHash, this.#settle(tx, height, { gasUsed, isSuccess, priceWei }))
    if (!isSuccess) this.#failures.set(tx.to, this.failedCost(tx.to) + gasUsed * priceWei)
  }

  #settle(tx: Tx, height: number, ran: { gasUsed: bigint; isSuccess: boolean; priceWei: bigint }) {
    const payments = tx.from === null ? tx.payments : [tx]
    for (const { to, asset, units } of ran.isSuccess ? payments : []) {
      if (tx.from !== null) this.#state.add(`${asset} ${tx.from}`, height, -units)
      this.#state.add(`${asset} ${to}`, height, units)
    }
    return { ...ran, transfers: ran.isSuccess ? this.#transfersOf(tx) : [] }
  }

  #transfersOf(tx: Tx): Transfer[] {
    const payments = tx.from === null ? tx.payments : [tx]
    const { txHash } = tx
    return payments.map(({ to, asset, units }, index): Transfer => {
      const path = payments.length === 1 ? '0' : `0.${index}`
      const id = asset === this.#native ? `${txHash}:call:${path}` : `${txHash}:log:${index}`
      return { id, txHash, to, asset, units: fromChainUnits(asset, units).units }
    })
  }

  /** A nonce that was used by another transaction is never used again. */
  #dropOutdated(): void {
    for (const tx of this.#mempool.values()) {
      if (tx.from !== null && tx.nonce < this.minedNonce(tx.from)) this.#drop(tx)
    }
  }
}
