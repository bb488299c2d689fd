import { expect, test } from 'vitest'
import { systemClock } from '../clock.ts'
import { HOUR_MS } from '../domain/time.ts'
import { openAlarm } from './alarms.ts'
import { startLoop } from './loop.ts'

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

test('rests grow with trouble, and when it is over they are as before', async () => {
  const rests: number[] = []
  const sleep = async (ms: number) => {
    rests.push(ms)
    await systemClock().sleep(0)
  }
  const over = Promise.withResolvers<void>()
  let count = 0
  const loop = startLoop({ clock: { ...systemClock(), sleep }, log }, 'troubled', 100, async () => {
    count += 1
    if (count === 5) over.resolve()
    if (count <= 2) throw new Error('not now')
    return false
  })
  await over.promise
  await loop.stop()
  const breath = 20
  expect(rests.slice(0, 8)).toEqual([breath, 180, breath, 380, breath, 80, breath, 80])
})

/** The steps, of those that fail, of which the log tells. Sleeping takes no time, and each step begins `stepMs` after the one before. */
async function toldOf(failing: readonly boolean[], stepMs: number): Promise<readonly number[]> {
  const told: number[] = []
  let count = 0
  const wallMs = () => 1_000_000 + count * stepMs
  const sleep = () => systemClock().sleep(0)
  const over = Promise.withResolvers<void>()
  const loop = startLoop(
    {
      clock: { ...systemClock(), wallMs, sleep },
      log: { ...log, warn: () => void told.push(count) },
    },
    'troubled',
    100,
    async () => {
      const fails = failing[count]
      count += 1
      if (fails === undefined) over.resolve()
      if (fails) throw new Error('not now')
      return false
    },
  )
  await over.promise
  await loop.stop()
  return told
}

test('trouble that comes and goes is told of once, and anew after a minute without', async () => {
  const comesAndGoes = Array.from({ length: 20 }, (_, step) => step % 2 === 0)
  expect(await toldOf(comesAndGoes, 1_000)).toEqual([1])
  const minute = Array<boolean>(60).fill(false)
  expect(await toldOf([true, ...minute.slice(2), true, ...minute, true], 1_000)).toEqual([1, 121])
})

test('of trouble that lasts the log tells at the first step, the tenth and every fiftieth, however far these are apart', async () => {
  const lasts = Array<boolean>(101).fill(true)
  expect(await toldOf(lasts, 120_000)).toEqual([1, 10, 50, 100])
  expect(await toldOf([true, false, ...lasts.slice(0, 20)], 1_000), 'it may be another').toEqual([1, 12])
})

test('a loop that rests for an hour stops at once', async () => {
  const loop = startLoop(parts, 'rests', HOUR_MS, async () => false)
  await loop.stop()
})

test('those who ring one after the other are heard together', async () => {
  const rests: { readonly durationMs: number; end(): void }[] = []
  const slept = Promise.withResolvers<void>()
  const clock = {
    ...systemClock(),
    sleep: (durationMs: number, signal?: AbortSignal) =>
      new Promise<void>((end) => {
        rests.push({ durationMs, end })
        signal?.addEventListener('abort', () => end())
        if (signal?.aborted) end()
        slept.resolve()
      }),
  }
  const alarm = openAlarm()
  let count = 0
  const again = Promise.withResolvers<void>()
  const step = async () => {
    count += 1
    if (count === 2) again.resolve()
    return false
  }
  const loop = startLoop({ clock, log }, 'rung often', HOUR_MS, step, alarm)
  await slept.promise
  for (let rings = 0; rings < 3; rings += 1) alarm.ring()
  expect(count, 'it draws breath first').toBe(1)
  rests[0]?.end()
  await again.promise
  await loop.stop()
  expect(count).toBe(2)
  expect(rests.map(({ durationMs }) => durationMs).slice(0, 2)).toEqual([20, HOUR_MS - 20])
})
