import { NodeTrouble } from '../../chains/chain.ts'
import { BLOCKS_KEPT, blockHashAt } from '../../db/chain_heads.ts'
import { findWaitingDeposits } from '../../db/deposits.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import type { InstantMs } from '../../domain/time.ts'
import { keepLease, type Look, mempoolMoment, type Turn, type Vanished } from './look.ts'
import { type News, tellOrderByOrder } from './tell_orders.ts'

/** Each costs a question to the node, and may wait for long: between blocks they are asked for every other second. */
const WAITING_REST_MS = 2_000

export function isWaitingDue({ askedAtMs }: Turn, nowMs: InstantMs): boolean {
  return Math.abs(nowMs - askedAtMs) >= WAITING_REST_MS
}

/** How many transactions a look asks for: anybody can make many wait, and confirmations are not to wait for them. */
const WAITING_A_LOOK = 50

/**
 * Deposits that no block has brought yet: still in a mempool, or gone for good? Also gone is what a mempool promised and
 * its block then did not do. A node that cannot tell makes no difference, but that the others have their turn at the next
 * look: where it gives no answer, each would take long. Transactions take turns, and each is asked for once however many of
 * its outputs are ours.
 */
export async function checkWaiting(look: Look, height: number): Promise<void> {
  const { world, chain, waitingTurn, vanished } = look
  const waiting = await findWaitingDeposits(world.db, chain.id, waitingTurn.lastTxHash, WAITING_A_LOOK)
  for (const [txHash, deposits] of Map.groupBy(waiting, (deposit) => deposit.txHash)) {
    // Before the question: one that the node fails at keeps no other from its turn.
    waitingTurn.lastTxHash = txHash
    const status = await askNode(look, txHash, () => look.chain.lookup(txHash))
    await keepLease(look)
    if (status === null) break
    if (status.where === 'mempool') continue
    if (status.where === 'block' && !(await wasReadWhole(look, txHash, status.block, height))) continue
    const headHash = await mempoolMoment(look)
    const moment = `${height}:${headHash}`
    const news = deposits.map(({ orderId, key }): News => {
      return { orderId, what: `${key}:vanished:${moment}`, fact: { kind: 'DepositVanished', key } }
    })
    noteVanished(vanished, txHash, headHash)
    await tellOrderByOrder(look, news)
  }
  waitingTurn.askedAtMs = world.clock.nowMs()
}

/** More than wait at once, and few enough to be kept for as long as the process runs. */
const VANISHED_MAX = 10_000

function noteVanished(vanished: Vanished, txHash: string, headHash: string): void {
  if (vanished.has(txHash)) return
  vanished.set(txHash, headHash)
  const [oldest] = vanished.keys()
  if (vanished.size > VANISHED_MAX && oldest !== undefined) vanished.delete(oldest)
}

/** Null: the node cannot tell now. What else the look asks shows whether it answers at all. */
async function askNode<Answer>(
  { world, chain }: Look,
  txHash: string,
  question: () => Promise<Answer>,
): Promise<Answer | null> {
  try {
    return await question()
  } catch (error) {
    if (!(error instanceof NodeTrouble)) throw error
    world.log.warn(
      { chain: chain.id, tx: txHash, err: error },
      'the node cannot tell whether a deposit still waits: it is asked again',
    )
    return null
  }
}

/**
 * Whatever it brought us was told: a deposit that still waits was not in it. Of a block that is so old that our list has forgotten it
 * the node says whether it is on the best chain; all blocks of that were read, as no order is older than the first look at its chain.
 */
async function wasReadWhole(look: Look, txHash: string, block: BlockRef, height: number): Promise<boolean> {
  const { world, chain } = look
  if (block.height > height) return false
  const known = await blockHashAt(world.db, chain.id, block.height)
  if (known !== null || block.height > height - BLOCKS_KEPT) return known === block.hash
  const hash = await askNode(look, txHash, () => chain.blockHash(block.height))
  await keepLease(look)
  return hash === block.hash
}
