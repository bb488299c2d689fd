import type { Chain, Transfer } from '../../chains/chain.ts'
import type { Sql } from '../../db/database.ts'
import { readTold } from '../../db/deposits.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { type BlockRef, isDust } from '../../domain/orders/order.ts'
import type { Log } from '../world.ts'
import { isForOrder, type Move } from './moves.ts'

/** So many crumbs of one asset to one address are told one by one in a block, */
const APART_AT_AN_ADDRESS = 20
/** so many of all that are listed, to all addresses, as anybody may have many of ours, */
const APART_IN_A_BLOCK = 200
/** and so many of tokens that are not. */
const UNLISTED_IN_A_BLOCK = 20
/** An order that knows so many deposits hears of no more crumbs: everything that it does takes longer with each. */
const APART_OF_AN_ORDER = 100

/**
 * For the price of a coffee anybody can make thousands of crumbs in one block, and look after look would be spent on them
 * while orders wait. What there is beyond a few is told as one arrival of the block, which no order counts and the books
 * know to the unit; of tokens that are not listed nothing is booked, and the rest of them is left out.
 */
export async function gatherCrumbs(
  { db, log }: { readonly db: Sql; readonly log: Log },
  chain: Pick<Chain, 'id' | 'model'>,
  block: BlockRef,
  moves: readonly Move[],
): Promise<readonly Move[]> {
  // A coin is spent by itself, and has to be known by itself.
  const crumbs = chain.model === 'coins' ? [] : moves.filter(isCrumb)
  if (crumbs.length === 0) return moves
  const orders = new Set(crumbs.filter((move) => isForOrder(chain, move)).map(({ own }) => own.orderId ?? ''))
  const told = await readTold(db, [...orders], block.hash)
  const gathered = new Set<Move>()
  for (const move of crumbs.filter(isUnlisted).slice(UNLISTED_IN_A_BLOCK)) gathered.add(move)
  const sums: Move[] = []
  let apartLeft = APART_IN_A_BLOCK
  const listed = crumbs.filter((move) => !isUnlisted(move))
  for (const alike of Map.groupBy(listed, nameOf).values()) {
    const [first] = alike
    if (first === undefined) continue
    const { elsewhere, kept } = told.get(first.own.orderId ?? '') ?? { elsewhere: 0, kept: new Set() }
    const apart = elsewhere < APART_OF_AN_ORDER ? Math.min(APART_AT_AN_ADDRESS, apartLeft) : 0
    apartLeft -= Math.min(apart, alike.length)
    // Whoever died in the middle of this block may have told some of it: those stay what they are, as does what counts and was mined before.
    const rest = alike.filter(
      ({ transfer }, index) => index >= apart && !kept.has(`${chain.id}:${transfer.id}`),
    )
    for (const move of rest) gathered.add(move)
    if (rest.length > 0) sums.push(sumOf(block, 'crumbs', first, rest))
  }
  if (gathered.size === 0) return moves
  log.warn({ chain: chain.id, block, crumbs: gathered.size }, 'crumbs of a block are told together')
  return [...moves.filter((move) => !gathered.has(move)), ...sums]
}

export function isCrumb({ transfer: { asset, units } }: Move): boolean {
  return typeof asset !== 'string' || isDust(amountOf(asset, units))
}

function isUnlisted({ transfer: { asset } }: Move): boolean {
  return typeof asset !== 'string'
}

/** What is alike is of one asset, to one address. */
export function nameOf({ transfer: { asset, to } }: Move): string {
  return `${asset}:${to}`
}

/** As one arrival of the block, which no order hears of. `what` is among its names, as there may be several. */
export function sumOf(block: BlockRef, what: string, alike: Move, rest: readonly Move[]): Move {
  const { asset, to } = alike.transfer
  const transfer: Transfer = {
    id: `${block.hash}:${what}:${nameOf(alike)}`,
    txHash: block.hash,
    to,
    asset,
    units: rest.reduce((sum, { transfer: { units } }) => sum + units, 0n),
    isOfBlock: true,
  }
  return { transfer, own: alike.own }
}
