import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AgreementRules, agree, isWithin, medianOf, type Vote } from './consensus.ts'

const rules: AgreementRules = { quorum: 3, ageMsMax: 60_000, bandPercentMax: 3 }
const NOW_MS = 1_000_000

function votesOf(prices: readonly bigint[]): Vote[] {
  return prices.map((usd, index) => ({
    source: `venue ${index}`,
    usd,
    atMs: NOW_MS,
    readAtMs: NOW_MS,
    round: 1,
  }))
}

function agreed(prices: readonly bigint[]): bigint | null {
  return agree(votesOf(prices), rules, NOW_MS).usd
}

describe('the median', () => {
  test('is the middle one of an odd number and the exact mean of the middle two of an even number', () => {
    expect(medianOf([3n, 1n, 2n])).toBe(2n)
    expect(medianOf([10n, 2n, 4n, 1n])).toBe(3n)
    expect(medianOf([10n ** 40n + 1n, 10n ** 40n + 3n])).toBe(10n ** 40n + 2n)
  })
})

describe('the distance', () => {
  test('is a share of the reference, whether the price lies above it or below, to 0.01 %', () => {
    const isIn = (price: bigint, percent: number) => isWithin(price, 10_000n, percent)
    expect([isIn(9_000n, 10), isIn(8_999n, 10), isIn(11_000n, 10), isIn(11_001n, 10)]).toEqual([
      true,
      false,
      true,
      false,
    ])
    expect([isIn(10_025n, 0.25), isIn(10_026n, 0.25)]).toEqual([true, false])
  })
})

describe('the agreement', () => {
  test('of an even number is the mean of the middle two', () => {
    expect(agreed([1000n, 1002n, 1004n, 1010n])).toBe(1003n)
  })

  test('is not moved by a venue a thousand times off', () => {
    expect(agreed([1000n, 1002n, 1004n, 1_003_000n])).toBe(1002n)
    expect(agreed([1000n, 1002n, 1004n, 1n])).toBe(1002n)
    expect(agreed([1000n, 1002n, 1004n, 1006n, 1_003_000n])).toBe(1003n)
  })

  test('needs a quorum after the outliers are gone', () => {
    expect(agree(votesOf([1000n, 1002n, 1_000_000n]), rules, NOW_MS)).toMatchObject({
      usd: null,
      because: 'no_quorum',
    })
    expect(agreed([1000n, 1002n])).toBeNull()
    expect(agreed([])).toBeNull()
  })

  test('needs a majority: two camps are no price', () => {
    expect(agreed([1000n, 1000n, 1000n, 2000n, 2000n, 2000n])).toBeNull()
    expect(agree(votesOf([900n, 950n, 990n, 1000n, 1010n, 1100n, 1200n]), rules, NOW_MS)).toMatchObject({
      usd: null,
      because: 'no_majority',
    })
    // Half of them lie in the band, and half is none.
    expect(agree(votesOf([900n, 990n, 1000n, 1010n, 1100n, 1200n]), rules, NOW_MS)).toMatchObject({
      usd: null,
      because: 'no_majority',
    })
  })

  test('is as old as the source says or as old as the reading, whichever is older', () => {
    const [first, second, third] = votesOf([1000n, 1001n, 1002n])
    if (!first || !second || !third) throw new Error('there are three')
    const limit = NOW_MS - rules.ageMsMax
    expect(agree([first, second, { ...third, atMs: limit }], rules, NOW_MS).usd).toBe(1001n)
    for (const old of [{ atMs: limit - 1 }, { readAtMs: limit - 1 }]) {
      const vote = { ...third, ...old }
      const agreement = agree([first, second, vote], rules, NOW_MS)
      expect(agreement.usd).toBeNull()
      expect(agreement.verdicts.get(vote)).toBe('too_old')
    }
  })

  test('does not count what is told from the far future', () => {
    const [first, second, third] = votesOf([1000n, 1001n, 1002n])
    if (!first || !second || !third) throw new Error('there are three')
    const vote = { ...third, atMs: NOW_MS + rules.ageMsMax + 1 }
    const agreement = agree([first, second, vote], rules, NOW_MS)
    expect([agreement.usd, agreement.verdicts.get(vote)]).toEqual([null, 'from_the_future'])
  })
})

describe('properties', () => {
  const price = fc.bigInt({ min: 1n, max: 10n ** 24n })
  /** Honest venues agree to within the band; that is what the band is for. */
  const honest = (min: number) =>
    fc
      .bigInt({ min: 10_000n, max: 10n ** 20n })
      .chain((low) =>
        fc.array(fc.bigInt({ min: low, max: low + (low * 3n) / 100n }), { minLength: min, maxLength: 9 }),
      )

  test('the order of the sources never matters', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(price, fc.bigInt({ min: 1000n, max: 1100n })), { maxLength: 9 }),
        fc.func(fc.nat()),
        (prices, key) => {
          const shuffled = prices.toSorted((left, right) => key(left) - key(right))
          expect(agreed(shuffled)).toBe(agreed(prices))
        },
      ),
    )
  })

  test('a price lies within what the accepted sources said, which all lie in the band', () => {
    let prices = 0
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: 1000n, max: 1060n }), { maxLength: 9 }), (said) => {
        const { usd, accepted } = agree(votesOf(said), rules, NOW_MS)
        if (usd === null) return
        prices += 1
        const values = accepted.map((vote) => vote.usd)
        expect(accepted.length).toBeGreaterThanOrEqual(rules.quorum)
        expect(values.some((value) => value <= usd) && values.some((value) => value >= usd)).toBe(true)
        for (const value of values) expect(isWithin(value, medianOf(said), rules.bandPercentMax)).toBe(true)
      }),
      { numRuns: 500 },
    )
    expect(prices).toBeGreaterThan(100)
  })

  test('fewer liars than honest sources never move the price out of the honest range, whatever they say', () => {
    let prices = 0
    const scene = honest(3).chain((told) =>
      fc.record({
        told: fc.constant(told),
        lies: fc.array(
          fc.oneof(
            price,
            // The worst lie is one that is almost true.
            fc.integer({ min: 9_000, max: 11_000 }).map((part) => ((told[0] ?? 1n) * BigInt(part)) / 10_000n),
          ),
          { maxLength: told.length - 1 },
        ),
        liesFirst: fc.boolean(),
      }),
    )
    fc.assert(
      fc.property(scene, ({ told, lies, liesFirst }) => {
        const usd = agreed(liesFirst ? [...lies, ...told] : [...told, ...lies])
        if (usd === null) return
        prices += 1
        const sorted = told.toSorted((left, right) => (left < right ? -1 : left > right ? 1 : 0))
        expect(usd).toBeGreaterThanOrEqual(sorted[0] ?? 0n)
        expect(usd).toBeLessThanOrEqual(sorted.at(-1) ?? 0n)
      }),
      { numRuns: 2_000 },
    )
    expect(prices, 'honest majorities are believed').toBeGreaterThan(1_500)
  })
})
