import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assets } from '../catalog/assets.ts'
import { amountOf } from './amount.ts'
import { formatDecimal, powerOfTen } from './decimal.ts'
import { convert, convertBack, parseRate, rateBetween, scaleOf, showRate } from './rate.ts'

const asset = fc.constantFrom(...assets)
const pair = fc.tuple(asset, asset)
/** Any decimal of at most 15 significant digits, from 10^-40 to 10^40. */
const decimal = fc
  .tuple(fc.bigInt({ min: 1n, max: 10n ** 15n - 1n }), fc.integer({ min: -25, max: 40 }))
  .map(([digits, scale]) => (scale >= 0 ? formatDecimal(digits, scale) : `${digits}${'0'.repeat(-scale)}`))

function asFraction(text: string): { above: bigint; below: bigint } {
  const [whole = '', fraction = ''] = text.split('.')
  return { above: BigInt(whole + fraction), below: powerOfTen(fraction.length) }
}

describe('the text of a rate', () => {
  test('what was stored is read again to the same text, however large or small', () => {
    fc.assert(
      fc.property(pair, decimal, ([{ id: base }, { id: quote }], text) => {
        expect(showRate(parseRate(base, quote, text))).toBe(text)
      }),
      { numRuns: 2_000 },
    )
  })

  test('a rate that was made to be shown is worth exactly what its text says', () => {
    const amount = fc.bigInt({ min: 1n, max: 10n ** 30n })
    fc.assert(
      fc.property(pair, amount, amount, ([{ id: base }, { id: quote }], from, to) => {
        const rate = rateBetween(amountOf(base, from), amountOf(quote, to), 'up')
        const again = parseRate(base, quote, showRate(rate))
        expect(again.numerator * rate.denominator).toBe(rate.numerator * again.denominator)
      }),
      { numRuns: 2_000 },
    )
  })

  test.each([
    '0.00000000001234',
    '0.000000000000000000000000000001',
    '12345678901234',
    '123456789012345000000',
    '1',
    '0.1',
  ])('%s stays itself', (text) => {
    expect(showRate(parseRate('BTC:BTC', 'USDT:ERC20', text))).toBe(text)
  })

  test.each([
    ['123456789012345', 0],
    ['20', 13],
    ['1', 14],
    ['0.5', 15],
    ['0.05', 16],
  ])('%s has %i decimals when it is shown with all its digits', (text, scale) => {
    expect(scaleOf(parseRate('BTC:BTC', 'USDT:ERC20', text))).toBe(scale)
  })

  test('a rate that was not made to be shown is cut, not raised', () => {
    expect(showRate({ base: 'BTC:BTC', quote: 'BTC:BTC', numerator: 2n, denominator: 3n })).toBe(
      '0.666666666666666',
    )
  })

  test('what is stored wrongly is not guessed at', () => {
    for (const text of ['', '1e-7', '-1', '.5', '0x1']) {
      expect(() => parseRate('BTC:BTC', 'ETH:ETH', text)).toThrow('a stored rate is a plain decimal')
    }
  })
})

describe('the rate between two amounts', () => {
  const amount = fc.bigInt({ min: 1n, max: 10n ** 30n })

  test('is the exact one cut or raised by less than one unit of the 15th digit', () => {
    fc.assert(
      fc.property(pair, amount, amount, ([base, quote], from, to) => {
        const between = (rounding: 'down' | 'up') =>
          asFraction(showRate(rateBetween(amountOf(base.id, from), amountOf(quote.id, to), rounding)))
        const [down, up] = [between('down'), between('up')]
        const exact = { above: to * powerOfTen(base.decimals), below: from * powerOfTen(quote.decimals) }
        expect(down.above * exact.below <= exact.above * down.below).toBe(true)
        expect(up.above * exact.below >= exact.above * up.below).toBe(true)
        // up − down ≤ exact / 10^14: one unit of the 15th digit is at most that.
        const gap = up.above * down.below - down.above * up.below
        expect(gap * powerOfTen(14) * exact.below <= exact.above * up.below * down.below).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  test('that carries into a new digit is still exact text', () => {
    const rate = rateBetween(
      amountOf('BTC:BTC', 3n * 10n ** 15n),
      amountOf('BTC:BTC', 3n * 10n ** 15n - 1n),
      'up',
    )
    expect(showRate(rate)).toBe('1')
    expect(
      showRate(
        rateBetween(amountOf('BTC:BTC', 3n * 10n ** 15n), amountOf('BTC:BTC', 3n * 10n ** 15n - 1n), 'down'),
      ),
    ).toBe('0.999999999999999')
  })

  test('has all 15 digits just below a power of ten', () => {
    const rate = rateBetween(amountOf('BTC:BTC', 10n ** 18n), amountOf('BTC:BTC', 10n ** 17n - 1n), 'down')
    expect(showRate(rate)).toBe('0.0999999999999999')
  })

  test('is the same wherever one begins to look for its first digit', () => {
    fc.assert(
      fc.property(
        pair,
        amount,
        amount,
        fc.integer({ min: -5, max: 60 }),
        ([base, quote], from, to, scale) => {
          for (const rounding of ['down', 'up'] as const) {
            const [sent, got] = [amountOf(base.id, from), amountOf(quote.id, to)]
            const rate = rateBetween(sent, got, rounding)
            expect(rateBetween(sent, got, rounding, scale)).toEqual(rate)
            expect(rateBetween(sent, got, rounding, scaleOf(rate))).toEqual(rate)
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test.each([
    ['raising gives a digit that is not there', 'BTC:BTC', 10n ** 15n, 10n ** 15n - 5n, 14],
    ['there would be one digit too many', 'BTC:BTC', 1n, 1n, 15],
    ['it is short of digits, but would not be the other way', 'ETH:ETH', 1n, 3n * 10n ** 7n + 1n, 3],
    ['the digits end before the point', 'ETH:ETH', 1n, 3n * 10n ** 9n + 1n, -5],
  ] as const)('is the same where %s', (_, base, from, to, scale) => {
    const [sent, got] = [amountOf(base, from), amountOf('BTC:BTC', to)]
    expect(rateBetween(sent, got, 'up', scale)).toEqual(rateBetween(sent, got, 'up'))
  })

  test('of something is needed', () => {
    expect(() => rateBetween(amountOf('BTC:BTC', 0n), amountOf('ETH:ETH', 1n), 'up')).toThrow(
      'a rate is of something',
    )
    expect(showRate(rateBetween(amountOf('BTC:BTC', 1n), amountOf('ETH:ETH', 0n), 'up'))).toBe('0')
  })
})

test('converting there and back, rounded down, never gains; rounded up, it never loses', () => {
  fc.assert(
    fc.property(pair, decimal, fc.bigInt({ min: 0n, max: 10n ** 30n }), ([base, quote], text, units) => {
      const rate = parseRate(base.id, quote.id, text)
      const from = amountOf(base.id, units)
      expect(convertBack(convert(from, rate, 'down'), rate, 'down').units <= units).toBe(true)
      expect(convertBack(convert(from, rate, 'up'), rate, 'up').units >= units).toBe(true)
    }),
  )
})

test('a rate converts only what it is for', () => {
  const rate = parseRate('BTC:BTC', 'ETH:ETH', '20')
  expect(() => convert(amountOf('ETH:ETH', 1n), rate, 'down')).toThrow()
  expect(() => convertBack(amountOf('BTC:BTC', 1n), rate, 'down')).toThrow()
  expect(convert(amountOf('BTC:BTC', 10n ** 8n), rate, 'down')).toEqual(amountOf('ETH:ETH', 20n * 10n ** 18n))
})
