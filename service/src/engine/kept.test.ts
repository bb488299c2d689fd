import { beforeEach, expect, test } from 'vitest'
import { keptFor } from './kept.ts'

/**
 * What: a reading is shared by all who ask while it is under way or fresh, and a failure only by the former.
 * How: a clock that the test moves, readings that end when the test says so.
 */
let wallMs = 0
let readings: PromiseWithResolvers<string>[] = []
const clock = { wallMs: () => wallMs }

function readAnew(): Promise<string> {
  const reading = Promise.withResolvers<string>()
  readings.push(reading)
  return reading.promise
}

beforeEach(() => {
  wallMs = 0
  readings = []
})

test('a reading is shared however long it takes, and then for its time', async () => {
  const ask = keptFor({ clock, keepMs: 1_000, keepMsMax: 60_000, restsPerReading: 0 }, readAnew)
  const asked = [ask()]
  wallMs = 5_000
  asked.push(ask())
  readings[0]?.resolve('first')
  expect(await Promise.all(asked)).toEqual(['first', 'first'])
  const second = ask()
  readings[1]?.resolve('second')
  await second
  wallMs = 5_999
  expect(await ask()).toBe('second')
  wallMs = 6_000
  void ask()
  expect(readings).toHaveLength(3)
})

test('what took long is kept for longer', async () => {
  const ask = keptFor({ clock, keepMs: 1_000, keepMsMax: 60_000, restsPerReading: 100 }, readAnew)
  const first = ask()
  wallMs = 50
  readings[0]?.resolve('first')
  await first
  wallMs = 4_999
  expect(await ask()).toBe('first')
  wallMs = 5_000
  void ask()
  expect(readings).toHaveLength(2)
})

test('a failure is not kept', async () => {
  const ask = keptFor({ clock, keepMs: 1_000, keepMsMax: 60_000, restsPerReading: 0 }, readAnew)
  const failing = [ask(), ask()]
  readings[0]?.reject(new Error('away'))
  for (const one of failing) await expect(one).rejects.toThrow('away')
  const next = ask()
  readings[1]?.resolve('back')
  expect(await next).toBe('back')
})

/** After one reading that took so long by the clock. */
async function readOnce(tookMs: number) {
  const ask = keptFor({ clock, keepMs: 1_000, keepMsMax: 60_000, restsPerReading: 100 }, readAnew)
  const first = ask()
  wallMs += tookMs
  readings[0]?.resolve('first')
  await first
  return ask
}

test('nothing is kept for longer than the most, however long it took and wherever the clock was set meanwhile', async () => {
  const ask = await readOnce(20_000)
  wallMs = 59_999
  expect(await ask()).toBe('first')
  wallMs = 60_000
  void ask()
  expect(readings).toHaveLength(2)
})

test.each([0, -3_600_000])(
  'a clock that is set back keeps nothing alive (%s ms while it was read)',
  async (tookMs) => {
    wallMs = 7_200_000
    const ask = await readOnce(tookMs)
    expect(await ask()).toBe('first')
    wallMs -= tookMs === 0 ? 3_600_000 : -1_000
    void ask()
    expect(readings).toHaveLength(2)
  },
)
