import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { areEnough, leftForOne } from './bitcoin_inputs.ts'

/** Of no coins, of one, of many: a hundred times 100 satoshi. */
const hundreds = (count: number) => Array.from({ length: count }, () => 100n)

describe('what one more payout can bring', () => {
  test('is what as many of the largest bring as it may spend', () => {
    expect(leftForOne([900n, 70n, 5n], 0n, 2)).toBe(970n)
    expect(leftForOne([900n, 70n, 5n], 0n, 3)).toBe(975n)
    expect(leftForOne([], 0n, 3)).toBe(0n)
  })

  test('begins behind the coins of others', () => {
    expect(leftForOne(hundreds(100), 3_000n, 20)).toBe(2_000n)
    expect(leftForOne(hundreds(100), 9_000n, 20)).toBe(1_000n)
  })

  test('has the change of the last one of others', () => {
    expect(leftForOne([900n, 70n, 5n], 100n, 1)).toBe(800n)
    expect(leftForOne([900n, 70n, 5n], 920n, 1)).toBe(50n)
    expect(leftForOne([900n, 70n, 5n], 890n, 1), 'unless the next coin brings more').toBe(70n)
  })

  test('is nothing, or what is missing, where others take all', () => {
    expect(leftForOne([900n, 70n], 970n, 2)).toBe(0n)
    expect(leftForOne([900n, 70n], 1_000n, 2)).toBe(-30n)
    expect(leftForOne([900n], 100n, 0)).toBe(0n)
  })

  test('is all that is left where it may spend every coin, and never more; the more others take, the less', () => {
    const coins = fc
      .array(fc.bigInt(1n, 1_000n), { maxLength: 20 })
      .map((brings) => brings.toSorted((one, other) => Number(other - one)))
    const taken = fc.bigInt(0n, 20_000n)
    fc.assert(
      fc.property(coins, taken, taken, fc.nat(20), (brings, one, other, countMax) => {
        const sum = brings.reduce((total, satoshi) => total + satoshi, 0n)
        expect(leftForOne(brings, one, brings.length)).toBe(sum - one)
        const left = leftForOne(brings, one, countMax)
        if (one <= sum) expect(left).toBeLessThanOrEqual(sum - one)
        else expect(left).toBe(sum - one)
        const [less, more] = one < other ? [one, other] : [other, one]
        expect(leftForOne(brings, more, countMax)).toBeLessThanOrEqual(leftForOne(brings, less, countMax))
        // As soon as they are enough, smaller ones change nothing.
        for (let known = 0; known <= brings.length; known += 1) {
          const largest = brings.slice(0, known)
          if (areEnough(largest, one, countMax)) expect(leftForOne(largest, one, countMax)).toBe(left)
        }
      }),
    )
  })

  test('is known when a coin more is left than it may spend', () => {
    expect(areEnough(hundreds(100), 3_000n, 69)).toBe(true)
    expect(areEnough(hundreds(100), 3_000n, 70)).toBe(false)
    expect(areEnough([900n], 1_000n, 0)).toBe(false)
    expect(areEnough([], 0n, 1)).toBe(false)
  })
})
