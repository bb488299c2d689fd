import { expect, test } from 'vitest'
import { amountTextProblem, significantDigits } from './number_text.ts'

test.each(['1', '0.1', '10', '0.000000000000000001', '123456789012345', '1000000000000000000', '0.50'])(
  '%s is an amount',
  (text) => {
    expect(amountTextProblem(text)).toBeNull()
  },
)

test.each([
  '',
  '-1',
  '+1',
  '1e5',
  '1E5',
  '01',
  '.5',
  '5.',
  '1,5',
  ' 1',
  '1 ',
  '0x10',
  'NaN',
  'Infinity',
  '１',
  '1_000',
])('%j is not a plain decimal', (text) => {
  expect(amountTextProblem(text)).toMatch(/^must be a plain decimal number/)
})

test.each(['0', '0.0', '0.00000000'])('%s is not greater than zero', (text) => {
  expect(amountTextProblem(text)).toBe('must be greater than zero')
})

test.each(['9007199254740993', '1234567890.123456', '0.1234567890123456'])(
  '%s has too many digits',
  (text) => {
    expect(amountTextProblem(text)).toBe('must have at most 15 significant digits')
  },
)

test('an amount of a megabyte is refused by its length', () => {
  expect(amountTextProblem('1'.repeat(1_000_000))).toBe('must have at most 60 characters')
})

test('significant digits leave out the zeros around them', () => {
  expect(['0.0012', '1200', '12.00', '102', '0'].map(significantDigits)).toEqual([2, 2, 2, 3, 0])
})
