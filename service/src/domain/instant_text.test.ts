import fc from 'fast-check'
import { expect, test } from 'vitest'
import { instantOf, secondText } from './instant_text.ts'

/** Every line is the same moment to the millisecond. */
test.each([
  '2026-01-31T12:00:00.250Z',
  '2026-01-31T12:00:00.25Z',
  '2026-01-31t12:00:00.250z',
  '2026-01-31T12:00:00.250999999Z',
  '2026-01-31T12:00:00.250+00:00',
  // RFC 3339 §4.3: the time is known, the offset of where it was noted is not.
  '2026-01-31T12:00:00.250-00:00',
  '2026-01-31T13:00:00.250+01:00',
  '2026-01-31T06:30:00.250-05:30',
  '2026-02-01T11:59:00.250+23:59',
  '2026-01-30T12:01:00.250-23:59',
])('%s is a time of RFC 3339', (text) => {
  expect(instantOf(text)).toBe(1_769_860_800_250)
})

test.each([
  '2026-01-31',
  '2026-01-31T12:00Z',
  '2026-01-31T12:00:00',
  '2026-01-31 12:00:00Z',
  '2026-02-30T12:00:00Z',
  '2026-01-31T24:00:00Z',
  '2026-01-31T12:60:00Z',
  // A leap second, on the day of the last one.
  '2016-12-31T23:59:60Z',
  '2026-01-31T12:00:00.Z',
  '2026-01-31T12:00:00.2509999999Z',
  '2026-01-31T12:00:00+1:00',
  '2026-01-31T12:00:00+0100',
  '2026-01-31T12:00:00+24:00',
  '2026-01-31T12:00:00+01:60',
  '+002026-01-31T12:00:00Z',
  '2026-01-31T12:00:00Z ',
  '1769860800',
  '',
])('%j is none', (text) => {
  expect(instantOf(text)).toBeNull()
})

test('what we write we read, and with any offset it is the same', () => {
  const days = fc.date({
    min: new Date('0001-01-01'),
    max: new Date('9998-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  })
  const offsets = fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 })
  fc.assert(
    fc.property(days, offsets, (day, minutes) => {
      const shifted = new Date(day.getTime() + minutes * 60_000).toISOString().replace('Z', '')
      const size = Math.abs(minutes)
      const [hours, rest] = [Math.floor(size / 60), size % 60].map((part) => String(part).padStart(2, '0'))
      expect(instantOf(day.toISOString())).toBe(day.getTime())
      expect(instantOf(`${shifted}${minutes < 0 ? '-' : '+'}${hours}:${rest}`)).toBe(day.getTime())
    }),
  )
})

test('to the second, what is finer is cut off', () => {
  expect(secondText(1_769_860_805_999)).toBe('2026-01-31 12:00:05')
})
