import { setTimeout as pause } from 'node:timers/promises'
import type { Devnet } from '@cambist/devnet'
import { type ChainId, chainFacts, chainIds } from '../../../src/domain/catalog/networks.ts'
import { blocksToBeTold } from '../../../src/sandbox/mine.ts'
import type { Inspected } from '../../harness/invariants.ts'
import type { Board, Customer } from './customers.ts'

/** Asks the tables how the open orders stand, for everybody together; silent while PostgreSQL is away. */
export function openBoard(
  { rows }: Inspected,
  openOrders: () => readonly string[],
  onFailure: (error: unknown) => void,
) {
  const statuses = new Map<string, string>()
  const look = async () => {
    const found = await rows<{ order_id: string; status: string }>(
      'SELECT order_id, status FROM orders WHERE order_id = ANY($1)',
      [openOrders()],
    ).catch(() => [])
    for (const { order_id, status } of found) statuses.set(order_id, status)
  }
  const board: Board = { statusOf: (orderId) => statuses.get(orderId) }
  return { ...board, ...repeat(look, 100, onFailure) }
}

/**
 * A block on each chain whenever the watchers have seen all but the last one before it. When somebody wants a
 * reorganisation, Bitcoin's last block is replaced as soon as a deposit stands in it; its transactions wait to be mined
 * again.
 */
export function openMine(
  devnet: Devnet,
  { rows, chains }: Inspected,
  takeReorgWish: () => boolean,
): () => Promise<void> {
  const BLOCKS_UNSEEN_MAX = 2
  let isReorgWanted = false
  const look = async () => {
    isReorgWanted ||= takeReorgWish()
    const heads = await rows<{ chain: ChainId; height: number; deposits: number }>(
      `SELECT chain, height, (SELECT count(*)::int FROM deposits d
         WHERE d.chain = h.chain AND d.state = 'mined' AND d.block_hash = h.hash) AS deposits
       FROM chain_heads h`,
    ).catch(() => [])
    for (const { chain, height, deposits } of heads) {
      const tip = await chains.get(chain)?.head()
      if (tip === undefined) continue
      if (isReorgWanted && chain === 'BTC' && deposits > 0 && tip.height === height) {
        isReorgWanted = false
        await devnet.reorg('BTC', 1)
      } else if (tip.height - height < BLOCKS_UNSEEN_MAX) await devnet.mine(chain, 1)
    }
  }
  return look
}

/**
 * The wallets of customers send again what stands in no block, however far the order has come without it: a node that
 * goes from one branch to another forgets some of what it had, and it may be the second of two parts.
 */
export function openWallets(devnet: Devnet, open: () => readonly Customer[]): () => Promise<void> {
  const look = async () => {
    for (const { from, paid } of open()) {
      if (from !== 'BTC:BTC') continue
      for (const { txHash } of paid) await sendAgain(devnet, txHash)
    }
  }
  return look
}

async function sendAgain({ bitcoin }: Devnet, txHash: string): Promise<void> {
  const { hex, confirmations } = await bitcoin.rpc<{ hex: string; confirmations: number }>('gettransaction', [
    txHash,
  ])
  if (confirmations > 0) return
  // What it spends may have been forgotten too, and is sent by the next look.
  await bitcoin.rpc('sendrawtransaction', [hex]).catch(() => {})
}

/** Buries what the watchers have come to: a node that runs away from them forgets the state that they ask for. */
export async function buryFollowed(devnet: Devnet, { rows, chains }: Inspected): Promise<void> {
  const heads = await rows<{ chain: ChainId; height: number }>('SELECT chain, height FROM chain_heads')
  for (const { chain, height } of heads) {
    const { confirmations } = chainFacts[chain]
    const tip = await chains.get(chain)?.head()
    if (tip !== undefined && tip.height - height < confirmations) await devnet.mine(chain, confirmations)
  }
}

/** Buries everything that is there now. */
export async function bury(devnet: Devnet): Promise<void> {
  for (const chain of chainIds.filter((id) => id in devnet.networks))
    await devnet.mine(chain, chainFacts[chain].confirmations - 1 + blocksToBeTold(devnet, chain))
}

export type Repeated = { stop(): Promise<void> }

/** A node may leave a question open now and then; one that answers nothing any more is gone. */
const UNANSWERED_MAX = 5

/** Looks again where a node did not answer; what the look then gives. */
export async function untilAnswered<Value>(look: () => Promise<Value>, restMs: number): Promise<Value> {
  for (let unanswered = 1; ; unanswered += 1) {
    try {
      return await look()
    } catch (error) {
      const isOpen = error instanceof Error && error.constructor.name === 'NoAnswer'
      if (!isOpen || unanswered === UNANSWERED_MAX) throw error
    }
    await pause(restMs)
  }
}

/** Looks again and again until stopped; what a look throws is told once, and ends it. */
export function repeat(
  look: () => Promise<void>,
  restMs: number,
  onFailure: (error: unknown) => void,
): Repeated {
  let isStopped = false
  const run = async () => {
    while (!isStopped) {
      await untilAnswered(look, restMs)
      await pause(restMs)
    }
  }
  const ended = run().catch(onFailure)
  return {
    stop: async () => {
      isStopped = true
      await ended
    },
  }
}
