import type { Chain } from '../../chains/chain.ts'
import type { Sql } from '../../db/database.ts'
import { NONE_KNOWN, readKnownDeposits } from '../../db/deposits.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import type { Log } from '../world.ts'
import { isCrumb, nameOf, sumOf } from './crumbs.ts'
import { isForOrder, type Move, type OrderMove } from './moves.ts'

/**
 * An order that knows so many deposits in blocks, or about to be in one, is full. All but two hundred of them, the most that may wait in a
 * mempool, are money that somebody gave: to keep another's payment from an order costs eight hundred times the least that counts.
 */
export const DEPOSITS_OF_AN_ORDER = 1_000

/**
 * A customer who pays his order in ten thousand parts is given them back, and all that it costs him is their gas, while everything that the
 * order does takes longer with each. What comes beyond the first thousand is no order's: it is booked as unclaimed, as a sum of the block
 * where an address holds it together, coin by coin where each is spent by itself. What the order knows already stays its own however many
 * these are: it may have been exchanged, before a reorganisation took its block, and given back as unclaimed it would be paid twice.
 * What lost its block and waits for another one keeps its place for the same reason: what was unclaimed is so again.
 */
export async function spareFullOrders(
  { db, log }: { readonly db: Sql; readonly log: Log },
  chain: Pick<Chain, 'id' | 'model'>,
  block: BlockRef,
  moves: readonly Move[],
): Promise<readonly Move[]> {
  const keyOf = ({ transfer }: Move) => `${chain.id}:${transfer.id}`
  const forOrders = moves.filter((move): move is OrderMove => isForOrder(chain, move))
  const byOrder = Map.groupBy(forOrders, ({ own }) => own.orderId)
  const known = await readKnownDeposits(db, [...byOrder.keys()], forOrders.map(keyOf))
  const beyond = new Set<Move>()
  for (const [orderId, ofOne] of byOrder) {
    const { present, presentOfValue, keys } = known.get(orderId) ?? NONE_KNOWN
    const fresh = ofOne.filter((move) => !keys.has(keyOf(move)))
    const ofValue = fresh.filter((move) => !isCrumb(move))
    for (const move of beyondRoom(ofValue, presentOfValue)) beyond.add(move)
    // Of crumbs that are no coins few are left by now.
    const dust = chain.model === 'coins' ? fresh.filter(isCrumb) : []
    for (const move of beyondRoom(dust, present)) beyond.add(move)
  }
  if (beyond.size === 0) return moves
  log.warn(
    { chain: chain.id, block, deposits: beyond.size },
    'an order has too many deposits: more are unclaimed',
  )
  if (chain.model === 'coins')
    return moves.map((move) => (beyond.has(move) ? { ...move, isBeyond: true } : move))
  const sums = [...Map.groupBy(beyond, nameOf).values()].flatMap((alike) =>
    alike.slice(0, 1).map((first) => sumOf(block, 'beyond', first, alike)),
  )
  return [...moves.filter((move) => !beyond.has(move)), ...sums]
}

function beyondRoom(moves: readonly Move[], known: number): readonly Move[] {
  return moves.slice(Math.max(0, DEPOSITS_OF_AN_ORDER - known))
}
