import { expect, test } from 'vitest'
import { DatabaseFailed, isExpected, ProcessDied } from './faults.ts'

/**
 * What: a step may fail with faults, and with nothing that is told beside them.
 * How: errors made by hand.
 */
const withCause = (cause: unknown) => new Error('it could not be done', { cause })

test('of several errors all are faults, or it is a defect', () => {
  const faults = [withCause(new DatabaseFailed('it is gone')), new ProcessDied()]
  expect(isExpected(new AggregateError(faults))).toBe(true)
  expect(isExpected(new AggregateError([...faults, withCause(new TypeError('it is not there'))]))).toBe(false)
  expect(isExpected(withCause(new AggregateError(faults)))).toBe(true)
})
