import type { Sql } from '../../db/database.ts'
import { requireLease } from '../../db/leases.ts'
import { assert } from '../../domain/assert.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Fact } from '../../domain/orders/facts.ts'
import type { BlockRef, Order } from '../../domain/orders/order.ts'
import { applyInTurn } from '../apply.ts'
import { atOnce } from '../at_once.ts'
import { keepLease, type Look } from './look.ts'
import type { OrderMove } from './moves.ts'

/** `where` is how the place is named in the keys of the facts. */
export async function tellOrders(
  look: Look,
  moves: readonly OrderMove[],
  where: string,
  block: BlockRef | null,
  seenAtMs: number,
): Promise<void> {
  const news = moves.map(({ transfer, own }): News => {
    assert(typeof transfer.asset === 'string', 'an order hears only of assets we know')
    const key = `${look.chain.id}:${transfer.id}`
    const amount = amountOf(transfer.asset, transfer.units)
    const fact: Fact = { kind: 'DepositSeen', key, txHash: transfer.txHash, amount, seenAtMs, block }
    return { orderId: own.orderId, what: `${key}:${where}`, fact }
  })
  await tellOrderByOrder(look, news)
}

/** `what` names the event in the outside world. */
export type News = {
  readonly orderId: string
  readonly what: string
  readonly fact: Fact
  readonly alongside?: (tx: Sql, order: Order) => Promise<void>
}

/** Nobody else who has something for the order waits longer than these take. */
const FACTS_AT_ONCE = 10

/**
 * Several orders at the same time; what one order hears, it hears in the order given. Nothing is told by a watcher that
 * has lost its lease, nor twice on the same branch.
 */
export async function tellOrderByOrder(look: Look, news: readonly News[]): Promise<void> {
  const { world, lease, branch } = look
  const byOrder = [...Map.groupBy(news, ({ orderId }) => orderId)]
  await atOnce(world.policy.atOnce, byOrder, async ([orderId, ofOne]) => {
    for (let at = 0; at < ofOne.length; at += FACTS_AT_ONCE) {
      const told = ofOne.slice(at, at + FACTS_AT_ONCE).map(({ what, fact, alongside }) => ({
        factKey: `${what}@${branch}`,
        fact,
        alongside: async (tx: Sql, order: Order) => {
          await requireLease(tx, lease)
          await alongside?.(tx, order)
        },
      }))
      await keepLease(look)
      await applyInTurn(world, orderId, told)
    }
  })
}
