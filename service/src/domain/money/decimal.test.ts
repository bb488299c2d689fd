import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { divide, formatDecimal, parseDecimal, powerOfTen } from './decimal.ts'

const decimals = fc.integer({ min: 0, max: 30 })
const units = fc.bigInt({ min: 0n, max: 10n ** 40n })

describe('text', () => {
  test('what is written is read again', () => {
    fc.assert(
      fc.property(units, decimals, (value, scale) => {
        expect(parseDecimal(formatDecimal(value, scale), scale)).toEqual({ ok: true, value })
      }),
    )
  })

  test('what is written is the shortest text, without exponent', () => {
    fc.assert(
      fc.property(units, decimals, (value, scale) => {
        expect(formatDecimal(value, scale)).toMatch(/^(0|[1-9]\d*)(\.\d*[1-9])?$/)
      }),
    )
  })

  test.each([
    ['0', 0, 0n],
    ['0', 8, 0n],
    ['0.00000001', 8, 1n],
    ['1', 18, 10n ** 18n],
    ['1.50', 2, 150n],
    ['1.500', 3, 1_500n],
    ['007', 0, 7n],
    ['9007199254740993', 0, 9_007_199_254_740_993n],
  ])('%s with %i decimals', (text, scale, value) => {
    expect(parseDecimal(text, scale)).toEqual({ ok: true, value })
  })

  test('a negative balance keeps its sign', () => {
    expect(formatDecimal(-1n, 8)).toBe('-0.00000001')
    expect(formatDecimal(-150n, 2)).toBe('-1.5')
    expect(formatDecimal(-3n, 0)).toBe('-3')
  })

  test.each(
    [
      '',
      ' ',
      '.',
      '.5',
      '5.',
      '-1',
      '+1',
      '1e3',
      '1E3',
      '0x10',
      '0b1',
      '1n',
      ' 1',
      '1 ',
      '1\n',
      '1,5',
      '1_000',
      '1.2.3',
    ]
      .concat(['NaN', 'Infinity', '１', '١', '1'.repeat(61), `0.${'1'.repeat(61)}`])
      .map((text) => [text]),
  )('%j is not a decimal', (text) => {
    expect(parseDecimal(text, 70)).toMatchObject({ ok: false, rejection: { code: 'decimal_malformed' } })
  })

  test('a refusal says what to write instead', () => {
    const messageOf = (text: string) => {
      const parsed = parseDecimal(text, 2)
      return parsed.ok ? null : parsed.rejection.message
    }
    expect(messageOf('1,5')).toBe('must be a plain decimal number such as 0.05')
    expect(messageOf('1.234')).toBe('must have at most 2 decimals')
  })

  test('more decimals than there are places for is a rejection, even if they are zeros', () => {
    for (const text of ['0.123', '0.120', '1.000']) {
      expect(parseDecimal(text, 2)).toMatchObject({ ok: false, rejection: { code: 'decimal_too_fine' } })
    }
    expect(parseDecimal('1.0', 0)).toMatchObject({ ok: false })
  })
})

test('powers of ten go on beyond those that are worked out beforehand', () => {
  for (const exponent of [0, 1, 99, 100, 250]) {
    expect(powerOfTen(exponent).toString()).toBe(`1${'0'.repeat(exponent)}`)
  }
})

describe('rounding', () => {
  test('down and up enclose the exact quotient, and are equal where it is whole', () => {
    fc.assert(
      fc.property(units, fc.bigInt({ min: 1n, max: 10n ** 30n }), (above, below) => {
        const down = divide(above, below, 'down')
        const up = divide(above, below, 'up')
        expect(down * below <= above && up * below >= above).toBe(true)
        expect(up - down).toBe(above % below === 0n ? 0n : 1n)
      }),
    )
  })

  test('money is not divided by nothing, and debts are not rounded', () => {
    for (const [above, below] of [
      [1n, 0n],
      [1n, -1n],
      [-1n, 2n],
    ] as const) {
      expect(() => divide(above, below, 'up')).toThrow('non-negative by positive')
    }
  })
})
