import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decimalText } from './decimal.ts'

test.each([
  ['0.1', '0.1'],
  ['0.10000000', '0.10000000'],
  [0.1, '0.1'],
  [1e-7, '0.0000001'],
  [1.5e-7, '0.00000015'],
  [12.34e-9, '0.00000001234'],
  [1e21, '1000000000000000000000'],
  [1.5e21, '1500000000000000000000'],
  [250, '250'],
  [0, '0'],
])('%s goes out as %s', (given, text) => {
  expect(decimalText(given, 'amount')).toBe(text)
})

test.each([
  '',
  ' 1',
  '1e3',
  '-1',
  '+1',
  '.5',
  '5.',
  '01',
  '0x10',
  '1,5',
  '1}',
  Number.NaN,
  Infinity,
  -1,
  -1e-9,
])('%s is refused before anything is sent', (given) => {
  expect(() => decimalText(given, 'amount')).toThrow(/amount must be a plain decimal/)
})

test('every positive number reads back as itself from its plain digits', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(Number(decimalText(Math.abs(value), 'amount'))).toBe(Math.abs(value))
    }),
  )
})
