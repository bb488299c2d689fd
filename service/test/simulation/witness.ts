import type { AssetId } from '../../src/domain/catalog/assets.ts'
import { type ChainId, chainFacts } from '../../src/domain/catalog/networks.ts'
import type { SimulatedNodes } from './chains/simulated_chains.ts'
import type { Ground } from './ground.ts'
import type { RequiredDepth } from './required_depth.ts'
import type { Task } from './scheduler.ts'

/** A look in which an outflow of an order was planned: when it began, and when that was written down. */
export type Planned = {
  readonly kind: 'payout' | 'refund'
  /** Of all outflows of the order. */
  readonly number: number
  readonly begunAtMs: number
  readonly atMs: number
  /** How far each chain was known at the least. Empty unless a client's choice settled it: what others are paid for is older. */
  readonly lookedHeights: ReadonlyMap<ChainId, number>
}

/** What an outflow is made from. */
type Source = {
  readonly deposit_key: string
  readonly chain: ChainId
  readonly asset: AssetId
  readonly tx_hash: string
  readonly block_hash: string | null
  readonly state: string
  /** A number of any length is told as text here. */
  readonly units: string
}

/** It was told that a deposit is in no block; `wasConfirmed`: until then it counted. */
type Unmined = { readonly depositKey: string; readonly atMs: number; readonly wasConfirmed: boolean }

/**
 * Looks at what nobody can tell afterwards, in the moment that it happens: how deep a block was when a deposit in it was
 * credited, or a payout taken for final, and whether the money was still there when more of it was about to leave.
 */
export class Witness {
  readonly #rows: Ground['rows']
  readonly #nodes: () => SimulatedNodes
  /** Of the block that a fact names, when the fact was stored last. */
  readonly depths = new Map<string, number>()
  readonly problems: string[] = []
  /** By the order; also what was rolled back, and is told again then. */
  readonly #unmined = new Map<string, Unmined[]>()
  /** By their order; also what was rolled back, and planned again then. */
  readonly planned = new Map<string, Planned[]>()
  /** How far each chain had been looked at whole, from these moments on. */
  readonly #looked = new Map<ChainId, { readonly atMs: number; readonly height: number }[]>()
  readonly #nowMs: () => number
  readonly requiredDepth: RequiredDepth

  constructor(
    rows: Ground['rows'],
    nodes: () => SimulatedNodes,
    nowMs: () => number,
    requiredDepth: RequiredDepth,
  ) {
    this.#rows = rows
    this.#nodes = nodes
    this.#nowMs = nowMs
    this.requiredDepth = requiredDepth
  }

  async see(task: Task, what: string, values: readonly unknown[], answered: number): Promise<void> {
    if (what.startsWith('INSERT INTO facts')) {
      this.#seeFact(String(values[2]))
      await this.#seeUnmined(String(values[1]), String(values[2]))
      const [, payoutId] = /^(CB\d+:\d+):confirmed$/.exec(String(values[2])) ?? []
      if (payoutId !== undefined) await this.#seePaid(task, payoutId)
    }
    // Of nothing, by who has lost the lease on the chain.
    if (what.startsWith('UPDATE chain_heads SET node_height') && answered > 0) this.#seeLooked(values)
    if (what.startsWith('UPDATE chain_heads SET leaving_above_height')) this.#seeLeft(values)
    if (what.startsWith('UPDATE outflows SET state = $4') && values[3] === 'failed' && answered > 0)
      await this.#seeOver(task, String(values[1]))
    if (what.startsWith('INSERT INTO outflows')) this.#seePlan(task, values)
    if (what.startsWith('INSERT INTO attempts') && values[2] === 1)
      await this.#seeDraft(task, String(values[1]))
    // By the signer's own record: what it has signed and nobody heard of is only written down later.
    if (what.startsWith('INSERT INTO signer.signed_transactions'))
      await this.#seeLeaving(task, String(values[0]), 'signed')
  }

  async seeSent(task: Task, bytes: string): Promise<void> {
    const [sent] = await this.#rows<{ payout_id: string }>(
      'SELECT payout_id FROM attempts WHERE bytes = $1',
      [bytes],
    )
    if (sent !== undefined) await this.#seeLeaving(task, sent.payout_id, 'sent')
  }

  /** A node has said that it has some of it: from then on it is followed, whatever becomes of what it pays for. */
  async #hasLeft(payoutId: string): Promise<boolean> {
    const left = await this.#rows(
      `SELECT FROM outflows o WHERE payout_id = $1 AND (state = 'orphaned' OR EXISTS (
         SELECT FROM attempts a WHERE (a.bucket, a.payout_id) = (o.bucket, o.payout_id) AND answer = 'accepted'))`,
      [payoutId],
    )
    return left.length > 0
  }

  /** Of what is planned the kind and the moment are noted, and no amount: that is what is to be worked out. */
  #seePlan({ name, begunAtMs }: Task, [, orderId, payoutId, kind]: readonly unknown[]): void {
    if (kind !== 'payout' && kind !== 'refund') return
    const number = Number.parseInt(String(payoutId).split(':')[1] ?? '', 10)
    const before = this.planned.get(String(orderId)) ?? []
    const isByChoice = name.includes(String(orderId))
    const chains = isByChoice ? [...this.#looked.keys()] : []
    const lookedHeights = new Map(chains.map((chain) => [chain, this.#lookedSince(chain, begunAtMs)]))
    const planned = { kind, number, begunAtMs, atMs: this.#nowMs(), lookedHeights } as const
    this.planned.set(String(orderId), [...before, planned])
  }

  #seeLooked([chain, height]: readonly unknown[]): void {
    const looked = { atMs: this.#nowMs(), height: Number(height) }
    this.#looked.set(chain as ChainId, [...(this.#looked.get(chain as ChainId) ?? []), looked])
  }

  /** What is above the height is being taken back, one by one. */
  #seeLeft([chain, height]: readonly unknown[]): void {
    const before = this.#looked.get(chain as ChainId)?.at(-1)?.height ?? 0
    this.#seeLooked([chain, Math.min(before, Number(height))])
  }

  /** The least that it was from this moment on. */
  #lookedSince(chain: ChainId, sinceMs: number): number {
    const looked = this.#looked.get(chain) ?? []
    const first = looked.findLastIndex(({ atMs }) => atMs < sinceMs)
    return first === -1 ? 0 : Math.min(...looked.slice(first).map(({ height }) => height))
  }

  #seeFact(key: string): void {
    const [, chain, hash] = /^(\w+):.*:confirmed:(\w+)@/.exec(key) ?? []
    if (hash !== undefined) this.depths.set(key, this.#nodes()[chain as ChainId].depthOf(hash))
  }

  /** Others do not see yet what is written down together with the fact. */
  async #seeUnmined(orderId: string, key: string): Promise<void> {
    const [depositKey = '', block] = key.split(':unmined:')
    if (block === undefined) return
    const confirmed = await this.#rows(
      `SELECT FROM deposits WHERE order_id = $1 AND deposit_key = $2 AND state = 'confirmed'`,
      [orderId, depositKey],
    )
    const unmined = { depositKey, atMs: this.#nowMs(), wasConfirmed: confirmed.length > 0 }
    this.#unmined.set(orderId, [...(this.#unmined.get(orderId) ?? []), unmined])
  }

  /** Of all attempts the one that is in a block; a block may be lost between the look at it and the fact. */
  async #seePaid({ begunAtMs }: Task, payoutId: string): Promise<void> {
    const attempts = await this.#rows<{ chain: ChainId; tx_hash: string }>(
      `SELECT chain, tx_hash FROM attempts JOIN outflows USING (bucket, payout_id)
       WHERE payout_id = $1 AND tx_hash IS NOT NULL`,
      [payoutId],
    )
    const depths = attempts.map(({ chain, tx_hash }) => this.#nodes()[chain].deepestSince(tx_hash, begunAtMs))
    const [{ chain } = { chain: null }] = attempts
    const required = chain === null ? 1 : chainFacts[chain].confirmations
    const depth = Math.max(0, ...depths)
    if (depth < required)
      this.problems.push(`nothing is final before it is deep: ${payoutId}, ${depth} of ${required} deep`)
  }

  /**
   * What failed never happens: whatever was signed of it is mined without success, or is kept out by what is final. Where a block was lost
   * since the look began, or since its chain was looked at before, it may have been so.
   */
  async #seeOver({ begunAtMs }: Task, payoutId: string): Promise<void> {
    const signed = await this.#rows<{ chain: ChainId; bytes: string }>(
      'SELECT chain, bytes FROM outflows JOIN signer.signed_transactions USING (payout_id) WHERE payout_id = $1',
      [payoutId],
    )
    for (const { chain, bytes } of signed) {
      const node = this.#nodes()[chain]
      const lookedAtMs = this.#looked.get(chain)?.findLast(({ atMs }) => atMs < begunAtMs)?.atMs ?? 0
      if (node.lastLostAtMs() >= lookedAtMs) continue
      if (await node.mayPay(bytes, chainFacts[chain].confirmations))
        this.problems.push(`nothing is over that may yet be mined: ${payoutId} on ${chain}`)
    }
  }

  async #seeDraft({ begunAtMs }: Task, payoutId: string): Promise<void> {
    const deposits = await this.#sourcesOf(payoutId)
    this.#judgeBlocks(deposits, payoutId, begunAtMs, 'leaves')
    this.#judgeDepth(deposits, payoutId, begunAtMs)
  }

  #sourcesOf(payoutId: string): Promise<Source[]> {
    return this.#rows<Source>(
      `SELECT d.deposit_key, d.chain, d.asset, d.tx_hash, d.block_hash, d.state, d.units FROM outflows o
       JOIN deposits d USING (bucket, order_id)
       WHERE o.payout_id = $1 AND o.kind IN ('payout', 'refund') AND d.role = 'counted'`,
      [payoutId],
    )
  }

  /** A block may be lost between the look at it and what follows from it, but not before the look began; whatever is told of it. */
  #judgeBlocks(deposits: readonly Source[], payoutId: string, sinceMs: number, what: string): void {
    for (const { deposit_key, chain, block_hash } of deposits) {
      const lostAtMs = block_hash === null ? null : this.#nodes()[chain].lostAtMs(block_hash)
      if (lostAtMs !== null && lostAtMs <= sinceMs)
        this.problems.push(`nothing ${what} for a deposit that is gone: ${payoutId} for ${deposit_key}`)
    }
  }

  /** What came may be more than was asked for, and then it has to be as deep as so much. */
  #judgeDepth(deposits: readonly Source[], payoutId: string, sinceMs: number): void {
    const used = deposits.filter(({ state }) => state === 'confirmed')
    const units = sumOf(used)
    for (const { deposit_key, chain, asset, tx_hash } of used) {
      const required = this.requiredDepth(asset, units)
      const depth = this.#nodes()[chain].deepestSince(tx_hash, sinceMs)
      if (depth < required)
        this.problems.push(
          `nothing leaves before all of it is deep: ${payoutId} for ${deposit_key}, ${depth} of ${required} deep`,
        )
    }
  }

  /**
   * Between a draft, its signature and its being sent lie hours without a signer, or without a process. What left its block meanwhile
   * is gone, whether anybody has told of it or not; and what was told of before the look began has to be as deep again as a deposit has
   * to be. It may leave once more after the look.
   */
  async #seeLeaving({ begunAtMs }: Task, payoutId: string, what: 'signed' | 'sent'): Promise<void> {
    if (await this.#hasLeft(payoutId)) return
    const deposits = await this.#sourcesOf(payoutId)
    this.#judgeBlocks(deposits, payoutId, begunAtMs, `is ${what}`)
    const [order] = await this.#rows<{ order_id: string; units: string | null }>(
      `SELECT order_id, coalesce(refund_units + refund_network_fee, settled_received) AS units FROM orders
       WHERE (bucket, order_id) IN (
         SELECT bucket, order_id FROM outflows WHERE payout_id = $1 AND kind IN ('payout', 'refund'))`,
      [payoutId],
    )
    if (order === undefined) return
    const { order_id, units } = order
    if (units === null) {
      this.problems.push(`nothing is ${what} for nothing: ${payoutId}`)
      return
    }
    const told = this.#unmined.get(order_id) ?? []
    if (!told.some(({ atMs }) => atMs < begunAtMs)) return
    const left = told.filter(({ atMs, wasConfirmed }) => atMs >= begunAtMs && wasConfirmed)
    const stood = deposits.filter(
      ({ deposit_key, state }) =>
        state === 'confirmed' || left.some(({ depositKey }) => depositKey === deposit_key),
    )
    if (sumOf(stood) < BigInt(units))
      this.problems.push(`nothing is ${what} for a deposit that is gone, or not deep again: ${payoutId}`)
    else this.#judgeDepth(deposits, payoutId, begunAtMs)
  }
}

function sumOf(deposits: readonly Source[]): bigint {
  return deposits.reduce((sum, { units }) => sum + BigInt(units), 0n)
}
