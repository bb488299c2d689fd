import { expect, test } from 'vitest'
import { systemClock } from '../clock.ts'
import { HOUR_MS } from '../domain/time.ts'
import { openAlarm, startLoop } from './loop.ts'

/**
 * What: an alarm ends the rest of the loops that listen to it, also when it rings while they look, and a loop that rests
 * for an hour stops at once.
 */
const log = { info: () => {}, warn: () => {}, error: () => {} }
const parts = { clock: systemClock(), log }

test('an alarm ends the rest of every loop that listens', async () => {
  const alarm = openAlarm()
  const looked = { one: Promise.withResolvers<void>(), other: Promise.withResolvers<void>() }
  const counts = { one: 0, other: 0 }
  const loops = (['one', 'other'] as const).map((name) =>
    startLoop(
      parts,
      name,
      HOUR_MS,
      async () => {
        counts[name] += 1
        if (counts[name] === 2) looked[name].resolve()
        return false
      },
      alarm,
    ),
  )
  await systemClock().sleep(1)
  alarm.ring()
  await Promise.all([looked.one.promise, looked.other.promise])
  await Promise.all(loops.map((loop) => loop.stop()))
})

test('what rings while a loop is looking is not missed', async () => {
  const alarm = openAlarm()
  const again = Promise.withResolvers<void>()
  let count = 0
  const loop = startLoop(
    parts,
    'rung',
    HOUR_MS,
    async () => {
      count += 1
      if (count === 1) alarm.ring()
      else again.resolve()
      return false
    },
    alarm,
  )
  await again.promise
  await loop.stop()
  expect(count).toBe(2)
})

test('a loop that rests for an hour stops at once', async () => {
  const loop = startLoop(parts, 'rests', HOUR_MS, async () => false)
  await loop.stop()
})
