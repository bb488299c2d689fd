import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { assert } from '../../src/domain/assert.ts'
import { type OrderStatus, received } from '../../src/domain/orders/order.ts'
import { checkBooks, legalMoves } from '../../src/domain/orders/testing/books.ts'
import type { RateType } from '../../src/domain/quotes/quote.ts'
import { type Bounds, firstWorld, nameOf, type Step, stepsFrom, type World, wayOut } from './order_model.ts'
import { prove } from './prove.ts'

/**
 * What: every state that an order can reach is legal, is booked exactly, and has a way out.
 * How: not by chance but all of them: from a new order every step that the world allows is taken, from every world
 * that was not met before, up to so many deposits, reorganisations, actions and failed outflows.
 */
type Explored = { readonly worlds: number; readonly steps: number; readonly moves: ReadonlySet<string> }

prove('every reachable state of an order is legal and has a way out', async ({ size, figure }) => {
  const bounds: Bounds =
    size === 'long'
      ? { deposits: 3, reorgs: 2, actions: 2, failures: 1 }
      : { deposits: 2, reorgs: 1, actions: 1, failures: 1 }
  figure(
    'at most',
    Object.entries(bounds)
      .map(([what, most]) => `${most} ${what}`)
      .join(', '),
  )
  const moves = new Set<string>()
  for (const rateType of ['fixed', 'float'] as const) {
    const explored = explore(rateType, bounds)
    figure(`states, ${rateType}`, explored.worlds)
    figure(`steps, ${rateType}`, explored.steps)
    for (const move of explored.moves) moves.add(move)
  }
  figure('kinds of moves', moves.size)
  const legal = Object.entries(legalMoves).flatMap(([from, to]) => to.map((one) => `${from} → ${one}`))
  expect([...moves].toSorted()).toEqual(legal.toSorted())
})

function explore(rateType: RateType, bounds: Bounds): Explored {
  const known = openNames()
  const ends = { moves: openNames(), 'is stuck': openNames() }
  const moves = new Set<string>()
  let steps = 0
  const isNew = (world: World) => known.isNew(nameOf(world))
  // The last one met goes first: so only the worlds on the way to it are kept.
  const waiting = [firstWorld(rateType, bounds)].filter(isNew)
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

function openNames(): Names {
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
function checkMove(before: World, { name, next }: Step, moves: Set<string>): void {
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
function checkWayOut(world: World, known: Readonly<Record<'moves' | 'is stuck', Names>>): void {
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

describe('the exploration can fail', () => {
  test('a world that owes money for ever has no way out', () => {
    const world = firstWorld('fixed', { deposits: 0, reorgs: 0, actions: 0, failures: 0 })
    const owing = { ...world, story: { ...world.story, books: { 'ETH:ETH customer_deposits': -1n } } }
    expect(() => checkWayOut(owing, { moves: openNames(), 'is stuck': openNames() })).toThrow(
      /there is a way out/,
    )
  })

  test('books that do not fit the state stop it', () => {
    const world = firstWorld('fixed', { deposits: 1, reorgs: 0, actions: 0, failures: 0 })
    const [step] = stepsFrom(world)
    assert(step !== undefined, 'something may happen')
    const wrong = {
      ...step,
      next: { ...step.next, story: { ...step.next.story, books: { 'BTC:BTC wallet': 1n } } },
    }
    expect(() => checkMove(world, wrong, new Set())).toThrow(/because deposit 0/)
  })
})
