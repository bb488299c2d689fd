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
  readonly block_hash: string
  readonly state: string
  /** A number of any length is told as text here. */
  readonly units: string
}

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
  /** When it was told last that a deposit of an order is in no block, by the order. */
  readonly #unminedAtMs = new Map<string, number>()
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
      if (String(values[2]).includes(':unmined:')) this.#unminedAtMs.set(String(values[1]), this.#nowMs())
      const [, payoutId] = /^(CB\d+:\d+):confirmed$/.exec(String(values[2])) ?? []
      if (payoutId !== undefined) await this.#seePaid(task, payoutId)
    }
    // Of nothing, by who has lost the lease on the chain.
    if (what.startsWith('UPDATE chain_heads SET node_height') && answered > 0) this.#seeLooked(values)
    if (what.startsWith('UPDATE chain_heads SET leaving_above_height')) this.#seeLeft(values)
    if (what.startsWith('INSERT INTO outflows')) this.#seePlan(task, values)
    if (what.startsWith('INSERT INTO attempts') && values[2] === 1)
      await this.#seeDraft(task, String(values[1]))
    // By the signer's own record: what it has signed and nobody heard of is only written down later.
    if (what.startsWith('INSERT INTO signer.signed_transactions') && values[1] === 1)
      await this.#seeLeaving(task, String(values[0]), 'signed')
  }

  /** As long as no node has said that it has any of it. */
  async seeSent(task: Task, bytes: string): Promise<void> {
    const [sent] = await this.#rows<{ payout_id: string }>(
      `SELECT payout_id FROM attempts JOIN outflows USING (bucket, payout_id)
       WHERE bytes = $1 AND state <> 'orphaned' AND NOT EXISTS (
         SELECT FROM attempts AS other WHERE (other.bucket, other.payout_id) = (attempts.bucket, attempts.payout_id)
           AND other.answer = 'accepted')`,
      [bytes],
    )
    if (sent !== undefined) await this.#seeLeaving(task, sent.payout_id, 'sent')
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

  /** A block may be lost between the look at it and the draft, but not before the look began. */
  async #seeDraft({ begunAtMs }: Task, payoutId: string): Promise<void> {
    const deposits = await this.#sourcesOf(payoutId)
    for (const { deposit_key, chain, block_hash } of deposits) {
      const lostAtMs = this.#nodes()[chain].lostAtMs(block_hash)
      if (lostAtMs !== null && lostAtMs <= begunAtMs)
        this.problems.push(`nothing leaves for a deposit that is gone: ${payoutId} for ${deposit_key}`)
    }
    this.#judgeDepth(deposits, payoutId, begunAtMs)
  }

  #sourcesOf(payoutId: string): Promise<Source[]> {
    return this.#rows<Source>(
      `SELECT d.deposit_key, d.chain, d.asset, d.tx_hash, d.block_hash, d.state, d.units FROM outflows o
       JOIN deposits d USING (bucket, order_id)
       WHERE o.payout_id = $1 AND o.kind IN ('payout', 'refund') AND d.role = 'counted' AND d.block_hash IS NOT NULL`,
      [payoutId],
    )
  }

  /** What came may be more than was asked for, and then it has to be as deep as so much. */
  #judgeDepth(deposits: readonly Source[], payoutId: string, sinceMs: number): void {
    const used = deposits.filter(({ state }) => state === 'confirmed')
    const units = used.reduce((sum, one) => sum + BigInt(one.units), 0n)
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
   * Between a draft, its signature and its being sent lie hours without a signer, or without a process. What left its block meanwhile,
   * and was told of before the look began, has to be as deep again as a deposit has to be.
   */
  async #seeLeaving({ begunAtMs }: Task, payoutId: string, what: 'signed' | 'sent'): Promise<void> {
    const [order] = await this.#rows<{ order_id: string; units: string; confirmed: string }>(
      `SELECT order_id, coalesce(refund_units + refund_network_fee, settled_received) AS units,
         (SELECT coalesce(sum(d.units), 0) FROM deposits d
          WHERE (d.bucket, d.order_id) = (orders.bucket, orders.order_id) AND role = 'counted' AND state = 'confirmed') AS confirmed
       FROM orders WHERE (bucket, order_id) IN (
         SELECT bucket, order_id FROM outflows WHERE payout_id = $1 AND kind IN ('payout', 'refund'))`,
      [payoutId],
    )
    const unminedAtMs = order === undefined ? undefined : this.#unminedAtMs.get(order.order_id)
    if (order === undefined || unminedAtMs === undefined || unminedAtMs >= begunAtMs) return
    if (BigInt(order.confirmed) < BigInt(order.units))
      this.problems.push(`nothing is ${what} for a deposit that is gone, or not deep again: ${payoutId}`)
    else this.#judgeDepth(await this.#sourcesOf(payoutId), payoutId, begunAtMs)
  }
}
