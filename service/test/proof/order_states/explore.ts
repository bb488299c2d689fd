import { hash } from 'node:crypto'
import { assert } from '../../../src/domain/assert.ts'
import { type OrderStatus, received } from '../../../src/domain/orders/order.ts'
import { checkBooks, legalMoves } from '../../../src/domain/orders/testing/books.ts'
import type { RateType } from '../../../src/domain/quotes/quote.ts'
import {
  type Bounds,
  firstWorld,
  nameOf,
  type Size,
  type Step,
  stepsFrom,
  type World,
  wayOut,
} from './model.ts'

/** What is explored: orders of one type, with so much that may happen to them, in deposits of these sizes. */
export type Field = { readonly rateType: RateType; readonly bounds: Bounds; readonly sizes: readonly Size[] }

/** Of orders of one type: how many worlds and steps there are, and from which status orders moved to which. */
export type Explored = {
  readonly worlds: number
  readonly steps: number
  readonly moves: ReadonlySet<string>
}

/** Throws when a state is illegal, is booked wrongly or has no way out. */
export function explore({ rateType, bounds, sizes }: Field): Explored {
  const known = openNames()
  const ends = { moves: openNames(), 'is stuck': openNames() }
  const moves = new Set<string>()
  let steps = 0
  const isNew = (world: World) => known.isNew(nameOf(world))
  // The last one met goes first: so only the worlds on the way to it are kept.
  const waiting = [firstWorld(rateType, bounds, sizes)].filter(isNew)
  for (let world = waiting.pop(); world !== undefined; world = waiting.pop()) {
    checkWayOut(world, ends)
    for (const step of stepsFrom(world)) {
      steps += 1
      checkMove(world, step, moves)
      if (isNew(step.next)) waiting.push(step.next)
    }
  }
  return { worlds: known.size(), steps, moves }
}

/** Names that were met; as their hashes, which take less memory. */
type Names = { isNew(name: string): boolean; size(): number }

export function openNames(): Names {
  const hashes = new Set<string>()
  return {
    isNew: (name) => {
      const before = hashes.size
      hashes.add(hash('md5', name, 'base64'))
      return hashes.size > before
    },
    size: () => hashes.size,
  }
}

/** Every step, also those into a world that is known: another way may have booked it otherwise. */
export function checkMove(before: World, { name, next }: Step, moves: Set<string>): void {
  const [from, to] = [before.story.order, next.story.order]
  const what = `${from.state.status} → ${to.state.status}`
  try {
    checkBooks(next.story)
    if (from.state.status === to.state.status) return
    assert(legalMoves[from.state.status].includes(to.state.status), 'the move is legal')
    assert(to.sequence === from.sequence + 1, 'the move takes the next number')
    moves.add(what)
  } catch (error) {
    throw new Error(`${what}, because ${name}, from ${nameOf(before)}`, { cause: error })
  }
}

const ENDS: readonly OrderStatus[] = ['DONE', 'REFUNDED', 'EXPIRED']

/** Who has paid something gets out also while all else lies in a mempool for ever. */
export function checkWayOut(world: World, known: Readonly<Record<'moves' | 'is stuck', Names>>): void {
  checkEnd(world, endOf(world, 'moves', known.moves))
  if (!world.transactions.some(({ where }) => where === 'mempool')) return
  const stuck = endOf(world, 'is stuck', known['is stuck'])
  if (stuck !== null && received(stuck.story.order).units > 0n) checkEnd(world, stuck)
}

/** Where the way out ends, or goes round; null when it comes by a world of another's, whose end was looked at. */
function endOf(world: World, mempool: 'moves' | 'is stuck', known: Names): World | null {
  let end = world
  const own = new Set<string>()
  for (const { name, calm } of wayOut(world, mempool)) {
    if (own.has(name)) return calm
    if (!known.isNew(name)) return null
    own.add(name)
    end = calm
  }
  return end
}

function checkEnd(world: World, end: World | null): void {
  if (end === null) return
  const { order, books } = end.story
  const owed = Object.entries(books).filter(
    ([account, units]) => /(customer_deposits|_owed)$/.test(account) && units !== 0n,
  )
  assert(
    ENDS.includes(order.state.status) && owed.length === 0,
    `there is a way out of ${nameOf(world)}; it ends as ${order.state.status}, owed ${owed.join()}`,
  )
}
