import { feeFor } from '../../../src/chains/bitcoin/sizes.ts'
import type { Block, BlockRef, Transfer, TxStatus } from '../../../src/chains/chain.ts'
import { assert } from '../../../src/domain/assert.ts'
import { amountOf } from '../../../src/domain/money/amount.ts'
import { Branch, type MinedBlock, type OutsidePayments, type Payment, type Reorg } from './branch.ts'
import { type CoinsTx, readCoinsTx } from './read_coins_tx.ts'

type Coin = { readonly address: string; readonly satoshi: bigint }
type CoinsBlock = MinedBlock<CoinsTx>

const OUTSIDE_VBYTES = 141n
/** A replacement pays for its own relay on top (BIP-125 rule 4). */
const INCREMENTAL_MILLI_SAT_PER_VB = 1_000n
/** More than is ever asked for. */
const MINED_AT_ONCE_MILLI_SAT_PER_VB = 1_000_000n

/**
 * A node of a coin chain in memory, with full replace-by-fee. It reads the real bytes and believes nobody about coins;
 * signatures it does not check. What happens to the chain happens by `pay`, `replace`, `mine`, `reorg` and `forget`;
 * the rest are the questions of a connector.
 */
export class CoinsNode {
  readonly #branch = new Branch<CoinsTx>('coins', '')
  readonly #nowMs: () => number
  readonly #mempool = new Map<string, CoinsTx>()
  /** Who waits with an outpoint. */
  readonly #spenders = new Map<string, CoinsTx>()
  /** Mined and unspent, by outpoint. */
  readonly #coins = new Map<string, Coin>()
  readonly #held = new Map<string, Set<string>>()
  /** What a block spent, so that it can be given back. */
  readonly #undo = new Map<string, Map<string, Coin>>()
  /** Coins of people outside: there without end, each spent once. */
  readonly #outsideSpent = new Set<string>()
  /** Every transaction that anybody has seen. */
  readonly #known = new Map<string, CoinsTx>()
  /** How high the block is that spends an outpoint. */
  readonly #spentAt = new Map<string, number>()
  #outsideMade = 0

  /** What is asked for being mined soon. */
  milliSatPerVb = 5_000n
  /** Less is not let into the mempool. */
  relayMilliSatPerVb = 1_000n
  /** Less is not mined. */
  mineMilliSatPerVb = 1_000n

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
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
    return block && withTransfers(block)
  }

  /** Every block there ever was, each after the one below it. */
  history(): Block[] {
    return this.#branch.made.map(withTransfers)
  }

  waiting(): Transfer[] {
    return [...this.#mempool.values()].flatMap(transfersOf)
  }

  /** Whether it is mined and no block spends it. */
  isUnspent(outpoint: string): boolean {
    return this.#coins.has(outpoint)
  }

  lookup(txHash: string): TxStatus {
    const home = this.#branch.homeOf(txHash)
    const tx = home?.txs.find((one) => one.txHash === txHash)
    if (home !== null && tx !== undefined) {
      const { height, hash } = home
      const cost = amountOf('BTC:BTC', tx.feeSatoshi)
      return { where: 'block', block: { height, hash }, succeeded: true, cost }
    }
    return this.#mempool.has(txHash) ? { where: 'mempool' } : { where: 'absent' }
  }

  askedMilliSatPerVb(): bigint {
    return this.milliSatPerVb > this.relayMilliSatPerVb ? this.milliSatPerVb : this.relayMilliSatPerVb
  }

  /** Satoshi in mined coins of these addresses. */
  holds(addresses: readonly string[]): bigint {
    let sum = 0n
    for (const address of new Set(addresses)) {
      for (const outpoint of this.#held.get(address) ?? []) sum += this.#coins.get(outpoint)?.satoshi ?? 0n
    }
    return sum
  }

  send(bytes: string): 'accepted' | 'refused' {
    const read = readCoinsTx(bytes)
    if (read === null) return 'refused'
    const { txHash } = read
    if (this.#mempool.has(txHash) || this.#branch.homeOf(txHash) !== null) return 'accepted'
    const coins = read.spends.map((outpoint) => this.#find(outpoint))
    const held = coins.reduce((sum, coin) => sum + (coin?.satoshi ?? 0n), 0n)
    const paid = read.outputs.reduce((sum, { satoshi }) => sum + satoshi, 0n)
    if (coins.includes(null) || paid > held) return 'refused'
    return this.#admit({ ...read, feeSatoshi: held - paid }) ? 'accepted' : 'refused'
  }

  /**
   * Of transactions by what they spend: whether none can ever be mined, because each needs what would have come from
   * something that another one has spent, as deep as `confirmations`. False also when they or others have spent it itself.
   */
  excludes(txs: readonly (readonly string[])[], confirmations: number): boolean {
    const deepest = this.#branch.head.height + 1 - confirmations
    if (txs.some((spends) => spends.some((outpoint) => this.#spentAt.has(outpoint)))) return false
    return txs.every((spends) => this.#isDead(spends, deepest))
  }

  /** Whether a transaction is in a block or may yet be, whoever sends it: nothing so deep has spent what it spends. */
  mayPay(bytes: string, confirmations: number): boolean {
    const tx = readCoinsTx(bytes)
    const isMined = tx !== null && this.#branch.homeOf(tx.txHash) !== null
    return isMined || (tx !== null && !this.#isDead(tx.spends, this.#branch.head.height + 1 - confirmations))
  }

  /** Whether something that is at least so deep has spent one of them, or what it would have to come from. */
  #isDead(spends: readonly string[], deepest: number): boolean {
    return spends.some((outpoint) => {
      const spentAt = this.#spentAt.get(outpoint)
      if (spentAt !== undefined) return spentAt <= deepest
      const origin = this.#known.get(txOf(outpoint))
      const isLost = this.lookup(txOf(outpoint)).where === 'absent'
      return isLost && origin !== undefined && this.#isDead(origin.spends, deepest)
    })
  }

  /** Somebody outside pays; the transaction waits. */
  pay(outputs: CoinsTx['outputs'], milliSatPerVb = this.askedMilliSatPerVb()): string {
    this.#outsideMade += 1
    const txHash = this.#payFrom([`outside:${this.#outsideMade}`], outputs, milliSatPerVb)
    assert(txHash !== null, 'people outside pay enough')
    return txHash
  }

  /** A waiting payment from outside is made anew for more, to whomever; null when that is not possible any more. */
  replace(txHash: string, outputs: CoinsTx['outputs']): string | null {
    const old = this.#mempool.get(txHash)
    if (old === undefined) return null
    assert(old.spends.every(isOutside), 'only people outside replace what they sent')
    const dearer = ((old.feeSatoshi + OUTSIDE_VBYTES) * 2_000n) / OUTSIDE_VBYTES
    return this.#payFrom(old.spends, outputs, dearer)
  }

  #payFrom(spends: readonly string[], outputs: CoinsTx['outputs'], milliSatPerVb: bigint): string | null {
    this.#outsideMade += 1
    const txHash = this.#branch.hash(`payment ${this.#outsideMade}`)
    const feeSatoshi = feeFor(OUTSIDE_VBYTES, milliSatPerVb)
    return this.#admit({ txHash, spends, outputs, feeSatoshi, vbytes: OUTSIDE_VBYTES }) ? txHash : null
  }

  /** What waits of people outside. */
  outsiders(): OutsidePayments[] {
    const outside = [...this.#mempool.values()].filter(({ spends }) => spends.every(isOutside))
    return outside.map((tx) => ({ txHash: tx.txHash, payments: transfersOf(tx).map(toPayment) }))
  }

  /** Mined payments of people outside that have been spent since, by what waits or is mined, and how deep they are. */
  sources(): { readonly txHash: string; readonly depth: number }[] {
    const spent = [...this.#spenders.keys(), ...this.#spentAt.keys()].map(txOf)
    return [...new Set(spent)].flatMap((txHash) => {
      const home = this.#branch.homeOf(txHash)
      const isOutsiders = this.#known.get(txHash)?.spends.every(isOutside) === true
      return home !== null && isOutsiders ? [{ txHash, depth: this.depthOf(home.hash) }] : []
    })
  }

  /** `replace`, in the words of every node. */
  replaceOutside(txHash: string, payments: readonly Payment[]): void {
    this.replace(
      txHash,
      payments.map(({ to, units }) => ({ address: to, satoshi: units })),
    )
  }

  /** Mines what pays enough into the first of the blocks; `takes` may leave some of it out. */
  mine(blocks = 1, takes: (txHash: string) => boolean = () => true): void {
    for (let made = 0; made < blocks; made += 1) {
      const taken = new Map<string, CoinsTx>()
      for (const tx of made === 0 ? this.#mempool.values() : []) {
        const isReady = tx.spends.every((outpoint) => this.#isMined(outpoint) || taken.has(txOf(outpoint)))
        const isPaid = tx.feeSatoshi >= feeFor(tx.vbytes, this.mineMilliSatPerVb)
        if (isReady && isPaid && takes(tx.txHash)) taken.set(tx.txHash, tx)
      }
      this.#connect([...taken.values()])
    }
  }

  reorg({ depth, longer = 1, fate = () => 'waits' }: Reorg): void {
    const blocks = this.#branch.cut(depth, this.#nowMs())
    for (const block of blocks.toReversed()) this.#disconnect(block)
    const left = blocks.flatMap(({ txs }) => txs)
    const before = [...this.#mempool.values()]
    for (const tx of before) this.#drop(tx)
    // What people outside lose they have spent otherwise; what we lose is only forgotten.
    const lost = left.filter(({ txHash, spends }) => fate(txHash) === 'lost' && spends.every(isOutside))
    const stays = [
      ...lost.map((tx) => this.#rivalOf(tx)),
      ...left.filter(({ txHash }) => fate(txHash) === 'stays'),
    ]
    const waits = left.filter(({ txHash }) => fate(txHash) === 'waits')
    for (const tx of [...stays, ...waits, ...before]) if (this.#isPossible(tx)) this.#keep(tx)
    const isStaying = new Set(stays.map(({ txHash }) => txHash))
    this.mine(depth + longer, (txHash) => isStaying.has(txHash))
  }

  #rivalOf({ txHash, spends }: CoinsTx): CoinsTx {
    const feeSatoshi = feeFor(OUTSIDE_VBYTES, MINED_AT_ONCE_MILLI_SAT_PER_VB)
    const outputs = [{ address: 'nobody', satoshi: 1_000n }]
    return {
      txHash: this.#branch.hash(`instead of ${txHash}`),
      spends,
      outputs,
      feeSatoshi,
      vbytes: OUTSIDE_VBYTES,
    }
  }

  /** The node drops a waiting transaction, and what spends of it. */
  forget(txHash: string): void {
    const tx = this.#mempool.get(txHash)
    if (tx !== undefined) this.#evict([tx])
  }

  /** What somebody has seen, and nobody has now, although it may be mined still. */
  #forgotten(): CoinsTx[] {
    const absent = [...this.#known.values()].filter(({ txHash }) => this.lookup(txHash).where === 'absent')
    return absent.filter((tx) => this.#isPossible(tx))
  }

  hasForgotten(): boolean {
    return this.#forgotten().length > 0
  }

  /** Somebody sends it again, and then what comes from it. */
  recall(): void {
    for (let found = this.#forgotten(); found.length > 0; found = this.#forgotten()) {
      for (const tx of found) if (this.#isPossible(tx)) this.#keep(tx)
    }
  }

  /** Fees as at the beginning. */
  calm(): void {
    this.milliSatPerVb = 5_000n
    this.relayMilliSatPerVb = 1_000n
    this.mineMilliSatPerVb = 1_000n
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

  /** A coin that may be spent in a new transaction; another one that waits may spend it already, and be replaced. */
  #find(outpoint: string): Coin | null {
    const mined = this.#coins.get(outpoint)
    if (mined !== undefined) return mined
    const index = Number.parseInt(outpoint.slice(outpoint.indexOf(':') + 1), 10)
    return this.#mempool.get(txOf(outpoint))?.outputs[index] ?? null
  }

  #isMined(outpoint: string): boolean {
    return isOutside(outpoint) ? !this.#outsideSpent.has(outpoint) : this.#coins.has(outpoint)
  }

  #isPossible(tx: CoinsTx): boolean {
    const rivals = this.#rivalsOf(tx)
    return (
      rivals.length === 0 &&
      tx.spends.every((outpoint) => this.#isMined(outpoint) || this.#find(outpoint) !== null)
    )
  }

  #rivalsOf(tx: CoinsTx): CoinsTx[] {
    const rivals = tx.spends.map((outpoint) => this.#spenders.get(outpoint))
    return [...new Set(rivals)].filter((rival) => rival !== undefined)
  }

  #admit(tx: CoinsTx): boolean {
    if (tx.spends.some((outpoint) => isOutside(outpoint) && this.#outsideSpent.has(outpoint))) return false
    if (tx.feeSatoshi < feeFor(tx.vbytes, this.relayMilliSatPerVb)) return false
    const rivals = this.#rivalsOf(tx)
    const evicted = this.#withDescendants(rivals)
    // What it spends may not be made by what it throws out.
    if (tx.spends.some((outpoint) => evicted.has(txOf(outpoint)))) return false
    const theirs = [...evicted.values()].reduce((sum, { feeSatoshi }) => sum + feeSatoshi, 0n)
    const least = rivals.length === 0 ? 0n : theirs + feeFor(tx.vbytes, INCREMENTAL_MILLI_SAT_PER_VB)
    if (tx.feeSatoshi < least) return false
    if (rivals.some((rival) => tx.feeSatoshi * rival.vbytes <= rival.feeSatoshi * tx.vbytes)) return false
    this.#evict(rivals)
    this.#keep(tx)
    return true
  }

  #keep(tx: CoinsTx): void {
    this.#known.set(tx.txHash, tx)
    this.#mempool.set(tx.txHash, tx)
    for (const outpoint of tx.spends) this.#spenders.set(outpoint, tx)
  }

  #drop(tx: CoinsTx): void {
    this.#mempool.delete(tx.txHash)
    for (const outpoint of tx.spends) this.#spenders.delete(outpoint)
  }

  #evict(txs: readonly CoinsTx[]): void {
    for (const tx of this.#withDescendants(txs).values()) this.#drop(tx)
  }

  #withDescendants(txs: readonly CoinsTx[]): Map<string, CoinsTx> {
    const found = new Map(txs.map((tx) => [tx.txHash, tx]))
    // Parents come before their children.
    if (found.size > 0) {
      for (const tx of this.#mempool.values())
        if (tx.spends.some((outpoint) => found.has(txOf(outpoint)))) found.set(tx.txHash, tx)
    }
    return found
  }

  #connect(txs: readonly CoinsTx[]): void {
    const spent = new Map<string, Coin>()
    for (const tx of txs) {
      this.#drop(tx)
      for (const outpoint of tx.spends) {
        assert(this.#isMined(outpoint), `${outpoint} is spent once`)
        const coin = this.#coins.get(outpoint)
        if (coin === undefined) this.#outsideSpent.add(outpoint)
        else {
          spent.set(outpoint, coin)
          this.#take(outpoint)
        }
      }
      for (const [index, output] of tx.outputs.entries()) this.#give(`${tx.txHash}:${index}`, output)
    }
    const { hash, height } = this.#branch.append(txs, this.#nowMs())
    for (const outpoint of txs.flatMap(({ spends }) => spends)) this.#spentAt.set(outpoint, height)
    if (spent.size > 0) this.#undo.set(hash, spent)
  }

  #disconnect(block: CoinsBlock): void {
    for (const tx of block.txs) {
      for (const index of tx.outputs.keys()) this.#take(`${tx.txHash}:${index}`)
      for (const outpoint of tx.spends) {
        this.#outsideSpent.delete(outpoint)
        this.#spentAt.delete(outpoint)
      }
    }
    const made = new Set(block.txs.map(({ txHash }) => txHash))
    for (const [outpoint, coin] of this.#undo.get(block.hash) ?? [])
      if (!made.has(txOf(outpoint))) this.#give(outpoint, coin)
    this.#undo.delete(block.hash)
  }

  #give(outpoint: string, coin: Coin): void {
    this.#coins.set(outpoint, coin)
    const held = this.#held.get(coin.address) ?? new Set()
    this.#held.set(coin.address, held.add(outpoint))
  }

  #take(outpoint: string): void {
    const coin = this.#coins.get(outpoint)
    if (coin === undefined) return
    this.#coins.delete(outpoint)
    this.#held.get(coin.address)?.delete(outpoint)
  }
}

function withTransfers({ height, hash, parentHash, timeMs, txs }: CoinsBlock): Block {
  return { height, hash, parentHash, timeMs, transfers: txs.flatMap(transfersOf) }
}

function toPayment({ to, units }: Transfer): Payment {
  return { to, asset: 'BTC:BTC', units }
}

function isOutside(outpoint: string): boolean {
  return outpoint.startsWith('outside:')
}

function txOf(outpoint: string): string {
  return outpoint.slice(0, outpoint.indexOf(':'))
}

function transfersOf({ txHash, outputs }: CoinsTx): Transfer[] {
  return outputs.map(({ address, satoshi }, index) => ({
    id: `${txHash}:${index}`,
    txHash,
    to: address,
    asset: 'BTC:BTC',
    units: satoshi,
  }))
}
