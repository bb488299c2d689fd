import { expect, test } from 'vitest'
import { nextAttemptInMs } from './schedule.ts'

const every = (chance: number) =>
  Array.from({ length: 12 }, (_, failures) => nextAttemptInMs(failures, chance))

test('ten attempts in a little more than three days, and then none', () => {
  const hour = 3_600_000
  const waits = [0, 5_000, 300_000, hour / 2, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour]
  expect(every(0)).toEqual([...waits, null, null])
})

test('chance makes a wait longer by at most a tenth, and never shorter', () => {
  expect(every(1)).toEqual(every(0).map((wait) => (wait === null ? null : Math.round(wait * 1.1))))
})
