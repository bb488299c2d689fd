import { describe, expect, test } from 'vitest'
import { assert } from '../../src/domain/assert.ts'
import { legalMoves } from '../../src/domain/orders/testing/books.ts'
import type { RateType } from '../../src/domain/quotes/quote.ts'
import { checkMove, checkWayOut, openNames } from './order_states/explore.ts'
import { exploreAside } from './order_states/explore_aside.ts'
import {
  type Bounds,
  firstWorld,
  type Size,
  sizesWithDustLeft,
  stepsFrom,
  usualSizes,
} from './order_states/model.ts'
import { prove } from './prove.ts'

/**
 * What: every state that an order can reach is legal, is booked exactly, and has a way out.
 * How: not by chance but all of them: from a new order every step that the world allows is taken, from every world
 * that was not met before, up to so many deposits, reorganisations, actions and failed outflows.
 */
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
  // Dust and another asset are booked alike, and count as little.
  const sizes = size === 'long' ? usualSizes : (['all', 'half', 'foreign'] as const)
  const exploreAll = (rateType: RateType, of: readonly Size[]) =>
    exploreAside({ rateType, bounds, sizes: of })
  const [fixed, float, fixedDust, floatDust] = await Promise.all([
    exploreAll('fixed', sizes),
    exploreAll('float', sizes),
    exploreAll('fixed', sizesWithDustLeft),
    exploreAll('float', sizesWithDustLeft),
  ])
  const explored = { fixed, float, 'fixed, dust left': fixedDust, 'float, dust left': floatDust }
  for (const [which, { worlds, steps }] of Object.entries(explored)) {
    figure(`states, ${which}`, worlds)
    figure(`steps, ${which}`, steps)
  }
  const moves = new Set(Object.values(explored).flatMap((one) => [...one.moves]))
  figure('kinds of moves', moves.size)
  const legal = Object.entries(legalMoves).flatMap(([from, to]) => to.map((one) => `${from} → ${one}`))
  expect([...moves].toSorted()).toEqual(legal.toSorted())
})

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
