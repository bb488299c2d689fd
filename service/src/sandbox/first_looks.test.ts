import { expect, test } from 'vitest'
import type { Chain } from '../chains/chain.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { databaseTelling } from '../engine/testing/told_tables.ts'
import { awaitLooks } from './first_looks.ts'
import type { Waiting } from './wait_saying.ts'

const STARTED_MS = 1_000

/** A chain whose first look failed; `after` is told how long the wait has taken before each further look at the tables. */
function inTrouble(after: (head: Record<string, unknown>, waitedMs: number) => void) {
  const head = { chain: 'SOL', height: 1, hash: 'h', node_height: 1, looked_at_ms: 0, looked_wall_ms: 0 }
  const told: Record<string, unknown> = { ...head, trouble: 'no reserve address yet', trouble_since_ms: 1 }
  let waitedMs = 0
  const sleep = async (durationMs: number) => {
    waitedMs += durationMs
    after(told, waitedMs)
  }
  const chains = new Map<ChainId, Chain>([['SOL', {} as Chain]])
  const world = { db: databaseTelling({ chain_heads: [told] }), chains }
  const said: string[] = []
  const signal = new AbortController().signal
  const waiting: Waiting = { clock: { sleep }, signal, say: (line) => said.push(line) }
  return { world, told, waiting, said, waitedMs: () => waitedMs }
}

test('a chain whose first look failed is waited for until a look ends its trouble', async () => {
  const { world, told, waiting, said } = inTrouble((head, waitedMs) => {
    if (waitedMs >= 3_000)
      Object.assign(head, { looked_wall_ms: STARTED_MS, trouble: null, trouble_since_ms: null })
  })
  await awaitLooks(world, STARTED_MS, waiting)
  expect(told.trouble).toBeNull()
  expect(said).toEqual([])
})

test('a chain that stays in trouble keeps nobody waiting for ever', async () => {
  const { world, told, waiting, waitedMs } = inTrouble(() => {})
  await awaitLooks(world, STARTED_MS, waiting)
  expect(told.trouble).not.toBeNull()
  expect(waitedMs()).toBe(15_000)
})

test('who waits for long for a chain that nobody looks at is told for which', async () => {
  const { world, waiting, said } = inTrouble((head, waitedMs) => {
    Object.assign(head, { trouble: null, trouble_since_ms: null })
    if (waitedMs > 60_000) Object.assign(head, { looked_wall_ms: STARTED_MS })
  })
  await awaitLooks(world, STARTED_MS, waiting)
  expect(said).toEqual(['still waiting for a look at SOL', 'still waiting for a look at SOL'])
})
