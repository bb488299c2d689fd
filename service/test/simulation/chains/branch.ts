import { createHash } from 'node:crypto'
import type { BlockRef } from '../../../src/chains/chain.ts'
import { assert } from '../../../src/domain/assert.ts'
import type { AssetId } from '../../../src/domain/catalog/assets.ts'

export type MinedBlock<Tx> = BlockRef & {
  readonly parentHash: string
  readonly timeMs: number
  readonly txs: readonly Tx[]
}

/** With what others than the house have paid in each. */
export function paidByOthers<Tx extends { readonly from: string | null }>(
  blocks: readonly MinedBlock<Tx>[],
): MinedBlock<Tx>[] {
  return blocks.map((block) => ({ ...block, txs: block.txs.filter(({ from }) => from === null) }))
}

/** The best chain of a simulated node: blocks whose hashes are never the same twice, also on another branch. */
export class Branch<Tx extends { readonly txHash: string }> {
  readonly #name: string
  readonly #prefix: string
  readonly #blocks: MinedBlock<Tx>[] = []
  readonly #homes = new Map<string, MinedBlock<Tx>>()
  /** Every block there ever was, each after the one below it. */
  readonly made: MinedBlock<Tx>[] = []
  /** Blocks that lost: how deep they were, and when that was. */
  readonly #lost = new Map<string, { readonly depth: number; readonly atMs: number }>()
  /** Which of them a transaction was in. */
  readonly #lostHomes = new Map<string, string[]>()

  /** `prefix` is how hashes of this chain begin: nothing, or 0x. */
  constructor(name: string, prefix: string) {
    this.#name = name
    this.#prefix = prefix
    this.append([], 0)
  }

  get head(): MinedBlock<Tx> {
    const head = this.#blocks.at(-1)
    assert(head !== undefined, 'a chain has a first block')
    return head
  }

  at(height: number): MinedBlock<Tx> | null {
    return this.#blocks[height] ?? null
  }

  /** All that are in blocks that stand, in their order. */
  txs(): readonly Tx[] {
    return this.#blocks.flatMap(({ txs }) => txs)
  }

  /** The block that a transaction is in. */
  homeOf(txHash: string): MinedBlock<Tx> | null {
    return this.#homes.get(txHash) ?? null
  }

  /** Of a block that stands; null for any other. */
  heightOf(hash: string): number | null {
    return this.#blocks.findLast((block) => block.hash === hash)?.height ?? null
  }

  append(txs: readonly Tx[], timeMs: number): MinedBlock<Tx> {
    const height = this.#blocks.length
    const parentHash = this.#blocks.at(-1)?.hash ?? this.hash('nothing')
    const hash = this.hash(`block ${height} ${parentHash} ${this.made.length + 1}`)
    const block = { height, hash, parentHash, timeMs, txs }
    this.#blocks.push(block)
    this.made.push(block)
    for (const { txHash } of txs) this.#homes.set(txHash, block)
    return block
  }

  /** Takes the newest blocks away; answers them, the oldest first. */
  cut(count: number, atMs: number): readonly MinedBlock<Tx>[] {
    const { height } = this.head
    assert(count <= height, 'the first block stays')
    const blocks = this.#blocks.splice(height + 1 - count)
    for (const { hash, height: at, txs } of blocks) {
      this.#lost.set(hash, { depth: height - at + 1, atMs })
      for (const { txHash } of txs) {
        this.#homes.delete(txHash)
        this.#lostHomes.set(txHash, [...(this.#lostHomes.get(txHash) ?? []), hash])
      }
    }
    return blocks
  }

  /** How deep a block is, or was at the most before it lost. */
  depthOf(hash: string): number {
    const stands = this.#blocks.find((block) => block.hash === hash)
    return stands === undefined ? (this.#lost.get(hash)?.depth ?? 0) : this.head.height - stands.height + 1
  }

  /** When a block lost; null for one that stands. */
  lostAtMs(hash: string): number | null {
    return this.#lost.get(hash)?.atMs ?? null
  }

  /** When a block lost last. */
  get lastLostAtMs(): number {
    return Math.max(0, ...[...this.#lost.values()].map(({ atMs }) => atMs))
  }

  /** How deep a transaction is, or was in a block that lost later than at this moment; 0 when it was in none. */
  deepestSince(txHash: string, sinceMs: number): number {
    const home = this.#homes.get(txHash)
    const lost = (this.#lostHomes.get(txHash) ?? []).map((hash) => this.#lost.get(hash))
    const depths = lost.flatMap((one) => (one !== undefined && one.atMs > sinceMs ? [one.depth] : []))
    return Math.max(0, ...depths, home === undefined ? 0 : this.depthOf(home.hash))
  }

  /** How many blocks there are from the newest one with anything in it. */
  get calmBlocks(): number {
    const busy = this.#blocks.findLastIndex(({ txs }) => txs.length > 0)
    return this.#blocks.length - Math.max(0, busy)
  }

  /** A hash in the chain's own spelling that nothing else here has. */
  hash(of: string): string {
    return this.#prefix + createHash('sha256').update(`${this.#name} ${of}`).digest('hex')
  }
}

/** Units are the chain's. */
export type Payment = { readonly to: string; readonly asset: AssetId; readonly units: bigint }

/** A transaction of somebody outside that waits. */
export type OutsidePayments = { readonly txHash: string; readonly payments: readonly Payment[] }

/** What becomes of a transaction whose block loses: it is in the other branch, waits again, or is nowhere. */
export type Fate = 'stays' | 'waits' | 'lost'

/** The newest `depth` blocks lose to a branch that is `longer` blocks longer. */
export type Reorg = {
  readonly depth: number
  readonly longer?: number
  readonly fate?: (txHash: string) => Fate
}
