import { findOwnAddresses, type OwnAddress } from '../../db/addresses.ts'
import { NONE_KNOWN, readKnownDeposits, readWholePayments, type WholePayments } from '../../db/deposits.ts'
import { assert } from '../../domain/assert.ts'
import { isCrumb } from './crumbs.ts'
import { DEPOSITS_OF_AN_ORDER } from './full_orders.ts'
import { type Look, mempoolMoment, stayAwake, type Untold } from './look.ts'
import { isForOrder, type OrderMove } from './moves.ts'
import { isTold } from './open_assets.ts'
import { withoutSweeps } from './own_sweeps.ts'
import { tellOrders } from './tell_orders.ts'

/**
 * Tells orders what waits to be mined for them, and what an earlier look heard and came to no end of. What is found counts from when the
 * mempool was asked, as an answer takes its time. Answers whether more waits than was read: what is found in the rest counts from when
 * that was begun, as it may have waited since.
 */
export async function readMempool(look: Look, height: number): Promise<boolean> {
  const { world, chain, untold, vanished } = look
  let ours = new Map<string, OwnAddress>()
  const again = await findReturning(look)
  const askedAtMs = world.clock.nowMs()
  stayAwake(look.awake, askedAtMs)
  const transfers = await chain.readMempool(async (addresses) => {
    ours = await findOwnAddresses(world.db, chain.family, addresses)
    return new Set(ours.keys())
  }, again)
  for (const txHash of again) vanished.set(txHash, null)
  const moves = transfers.flatMap((transfer): OrderMove[] => {
    const own = ours.get(transfer.to)
    const move = own && { transfer, own }
    // As long as it only waits a crumb costs nobody anything, and no order counts it: its block tells of it, if it is ever mined.
    return move && isForOrder(chain, move) && isTold(look, move) && !isCrumb(move) ? [move] : []
  })
  // Whoever slept meanwhile, or was put forward, may have been answered much later, and so may have begun the look much earlier.
  const wokeAtMs = stayAwake(look.awake, world.clock.nowMs())
  if (moves.length > 0) untold.push({ seenAtMs: Math.max(look.unreadSinceMs ?? askedAtMs, wokeAtMs), moves })
  for (const next of [...untold]) {
    await tellOfMempool(look, height, next)
    untold.shift()
  }
  return transfers.isPart === true
}

/** What vanished before the chain came to its present head. It may be there again, or have been all the time, and was told already. */
async function findReturning(look: Look): Promise<ReadonlySet<string>> {
  const { vanished } = look
  const waiting = [...vanished].filter(([, at]) => at !== null)
  if (waiting.length === 0) return new Set()
  const headHash = await mempoolMoment(look)
  return new Set(waiting.filter(([, at]) => at !== headHash).map(([txHash]) => txHash))
}

async function tellOfMempool(look: Look, height: number, { seenAtMs, moves }: Untold[number]): Promise<void> {
  const { world, chain } = look
  const transfers = new Set(
    await withoutSweeps(
      look,
      moves.map(({ transfer }) => transfer),
    ),
  )
  const told = await withinRoom(
    look,
    moves.filter(({ transfer }) => transfers.has(transfer)),
  )
  for (const { own, transfer } of told) {
    world.log.info(
      { chain: chain.id, order: own.orderId, tx: transfer.txHash, height },
      'a deposit is in the mempool',
    )
  }
  if (told.length === 0) return
  await tellOrders(look, told, `seen:${await mempoolMoment(look)}`, null, seenAtMs)
}

/**
 * An order that knows so many deposits that are in no block, and pay a part of it, hears of no more before they are in one; nor does one
 * that knows so many that pay it whole.
 */
const UNMINED_OF_AN_ORDER = 100

/**
 * Without those that their orders have no room for. A promise to whatever address costs nothing, and nothing makes its maker keep it: with
 * thousands of them everything that the order does would take minutes. What vanished is counted as well, as all of it stays with the order.
 * What a block brings is told however many these are, so that nobody loses a payment by the promises of others; but it is dated by its
 * block then. To keep a payment of all that is asked from being seen, others need as much money themselves.
 */
async function withinRoom(
  { world, chain }: Look,
  moves: readonly OrderMove[],
): Promise<readonly OrderMove[]> {
  if (moves.length === 0) return moves
  const keyOf = ({ transfer }: OrderMove) => `${chain.id}:${transfer.id}`
  const byOrder = Map.groupBy(moves, ({ own }) => own.orderId)
  const known = await readKnownDeposits(world.db, [...byOrder.keys()], moves.map(keyOf))
  const left = new Set<OrderMove>()
  const crowds: Crowd[] = []
  for (const [orderId, ofOne] of byOrder) {
    const { unmined, presentOfValue, keys } = known.get(orderId) ?? NONE_KNOWN
    const fresh = ofOne.filter((move) => !keys.has(keyOf(move)))
    // One that is full hears nothing of it from the block either.
    if (presentOfValue >= DEPOSITS_OF_AN_ORDER) for (const move of fresh) left.add(move)
    else if (fresh.length > roomBeside(unmined)) crowds.push({ orderId, fresh, unmined })
  }
  const whole = await readWholePayments(
    world.db,
    crowds.map(({ orderId }) => orderId),
  )
  for (const crowd of crowds) {
    for (const move of beyondRoom(crowd, whole.get(crowd.orderId))) left.add(move)
  }
  for (const [orderId, over] of Map.groupBy(left, ({ own }) => own.orderId)) {
    const facts = { chain: chain.id, order: orderId, transfers: over.length }
    world.log.warn(facts, 'an order has too many deposits: it hears of no more that are in no block')
  }
  return moves.filter((move) => !left.has(move))
}

/** More for an order than it has room for, whatever they pay. */
type Crowd = {
  readonly orderId: string
  readonly fresh: readonly OrderMove[]
  /** How many it knows that are in no block. */
  readonly unmined: number
}

function beyondRoom({ fresh, unmined }: Crowd, whole: WholePayments | undefined): readonly OrderMove[] {
  assert(whole !== undefined, 'whoever has a deposit address is an order')
  const isWhole = ({ transfer: { asset, units } }: OrderMove) =>
    asset === whole.least.asset && units >= whole.least.units
  const parts = fresh.filter((move) => !isWhole(move))
  return [
    ...parts.slice(roomBeside(unmined - whole.unmined)),
    ...fresh.filter(isWhole).slice(roomBeside(whole.unmined)),
  ]
}

function roomBeside(known: number): number {
  return Math.max(0, UNMINED_OF_AN_ORDER - known)
}
