import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import { BITCOIN_INPUTS_MAX } from '../../domain/payouts/bitcoin_inputs.ts'
import type { BitcoinIntent, Coin, Outflow } from '../../domain/payouts/intent.ts'
import type { FeeBid, Funds } from '../chain.ts'
import type { OutputKind } from './addresses.ts'
import { changeMin } from './coin_selection.ts'
import { draft, raise } from './draft.ts'
import { estimateAt } from './fees.ts'
import { costOfInput, dustLimit, feeFor, vbytesOf } from './sizes.ts'

/** Satoshi per vbyte 300 at most, as an operator may have it; a whole transaction may cost more than any here does. */
const rules = {
  id: 'BTC',
  network: 'regtest',
  milliSatPerVbMax: 300_000n,
  feeSatoshiMax: 10_000_000n,
} as const
const ours = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const payees: Record<OutputKind, string> = {
  pkh: 'mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r',
  sh: '2N3vVYSK5XRgVSGWy21PnsRmBUywSQNdCsf',
  wpkh: ours,
  wsh: 'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry',
  tr: 'bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6',
}

function coin(satoshi: bigint, index: number): Coin {
  return { txHash: 'ab'.repeat(32), index, satoshi, address: ours, key: { purpose: 'reserve', index } }
}

function funds(sizes: readonly bigint[]): Funds {
  return {
    model: 'coins',
    coins: sizes.map(coin),
    change: { address: ours, key: { purpose: 'change', index: 7 } },
  }
}

function outflow(units: bigint, kind: OutputKind = 'wpkh'): Outflow {
  return { payoutId: 'CB1:1', kind: 'payout', asset: 'BTC:BTC', units, address: payees[kind], tag: null }
}

function bid(milliSatPerVb: bigint): FeeBid {
  return { family: 'bitcoin', milliSatPerVb }
}

function vbytes({ inputs, change }: BitcoinIntent, paidTo: OutputKind): bigint {
  return vbytesOf(inputs.length, change === null ? [paidTo] : [paidTo, 'wpkh'])
}

function total(intent: BitcoinIntent): bigint {
  return intent.inputs.reduce((sum, { satoshi }) => sum + satoshi, 0n)
}

const aCase = fc.record({
  sizes: fc.array(fc.oneof(fc.bigInt(300n, 5_000n), fc.bigInt(5_000n, 10_000_000n)), { maxLength: 40 }),
  units: fc.oneof(fc.bigInt(546n, 20_000n), fc.bigInt(20_000n, 50_000_000n)),
  paidTo: fc.constantFrom<OutputKind>('pkh', 'sh', 'wpkh', 'wsh', 'tr'),
  rate: fc.bigInt(1_000n, 300_000n),
  more: fc.bigInt(1_000n, 300_000n),
})

describe('draft', () => {
  test('inputs are payment, change and fee; the rate is as bid; change is never dust', () => {
    fc.assert(
      fc.property(aCase, ({ sizes, units, paidTo, rate }) => {
        const drafted = draft(rules, outflow(units, paidTo), bid(rate), funds(sizes))
        if (!drafted.ok) {
          expect(drafted.rejection.code).toBe('funds')
          return
        }
        const intent = drafted.value
        expect(total(intent)).toBe(units + (intent.change?.satoshi ?? 0n) + intent.feeSatoshi)
        expect(intent.payment).toEqual({ address: payees[paidTo], satoshi: units })
        expect(new Set(intent.inputs.map(({ index }) => index)).size).toBe(intent.inputs.length)
        const asked = feeFor(vbytes(intent, paidTo), rate)
        if (intent.change !== null) {
          expect(intent.feeSatoshi).toBe(asked)
          expect(intent.change.satoshi).toBeGreaterThanOrEqual(dustLimit('wpkh'))
          expect(intent.change.satoshi).toBeGreaterThanOrEqual(
            changeMin({ changeTo: 'wpkh', milliSatPerVb: rate }),
          )
        } else {
          const given = changeMin({ changeTo: 'wpkh', milliSatPerVb: rate }) + feeFor(32n, rate)
          expect(intent.feeSatoshi).toBeGreaterThanOrEqual(asked)
          expect(intent.feeSatoshi - asked).toBeLessThan(given)
        }
      }),
    )
  })

  test('it says "funds" only when no choice of coins would do', () => {
    fc.assert(
      fc.property(aCase, ({ sizes, units, paidTo, rate }) => {
        const drafted = draft(rules, outflow(units, paidTo), bid(rate), funds(sizes))
        const worth = sizes.filter((satoshi) => satoshi > costOfInput(rate))
        const all = worth.reduce((sum, satoshi) => sum + satoshi, 0n)
        const canPay = worth.length > 0 && all >= units + feeFor(vbytesOf(worth.length, [paidTo]), rate)
        expect(drafted.ok).toBe(canPay)
      }),
    )
  })

  test('the order in which coins are given does not matter', () => {
    fc.assert(
      fc.property(aCase, fc.infiniteStream(fc.nat()), ({ sizes, units, rate }, dice) => {
        const given = funds(sizes)
        if (given.model !== 'coins') throw new Error('bitcoin')
        const shuffled = given.coins
          .map((one) => ({ one, at: dice.next().value ?? 0 }))
          .sort((left, right) => left.at - right.at)
          .map(({ one }) => one)
        const first = draft(rules, outflow(units), bid(rate), given)
        expect(draft(rules, outflow(units), bid(rate), { ...given, coins: shuffled })).toEqual(first)
      }),
    )
  })

  test('one coin is taken where one will do, and the smallest that will', () => {
    const drafted = draft(
      rules,
      outflow(50_000n),
      bid(5_000n),
      funds([900_000n, 20_000n, 60_000n, 70_000n, 40_000n]),
    )
    expect(drafted.ok && drafted.value.inputs.map(({ satoshi }) => satoshi)).toEqual([60_000n])
  })

  test('a second coin is taken rather than a payout that could not be raised', () => {
    const exact = 50_000n + feeFor(vbytesOf(1, ['wpkh']), 5_000n)
    const alone = draft(rules, outflow(50_000n), bid(5_000n), funds([exact]))
    expect(alone.ok && alone.value.change).toBe(null)
    const both = draft(rules, outflow(50_000n), bid(5_000n), funds([exact, 10_000n]))
    expect(both.ok && both.value.inputs.length).toBe(2)
    expect(both.ok && both.value.change !== null).toBe(true)
  })

  test('no more inputs are used than the signer signs', () => {
    const many = Array.from({ length: 600 }, () => 1_000n)
    expect(draft(rules, outflow(550_000n), bid(1_000n), funds(many))).toMatchObject({
      rejection: { code: 'funds' },
    })
    const most = BigInt(BITCOIN_INPUTS_MAX) * 1_000n - feeFor(vbytesOf(BITCOIN_INPUTS_MAX, ['wpkh']), 1_000n)
    const all = draft(rules, outflow(most), bid(1_000n), funds(many))
    expect(all.ok && all.value.inputs.length).toBe(BITCOIN_INPUTS_MAX)
    expect(draft(rules, outflow(most + 1n), bid(1_000n), funds(many))).toMatchObject({
      rejection: { code: 'funds' },
    })
  })

  test.each([
    [1_000n, 294n],
    [10_000n, 680n],
    [300_000n, 680n],
  ])('at %i msat/vB change is made from %i satoshi on', (rate, least) => {
    const spent = 50_000n + feeFor(vbytesOf(1, ['wpkh', 'wpkh']), rate)
    const change = (rest: bigint) => {
      const drafted = draft(rules, outflow(50_000n), bid(rate), funds([spent + rest]))
      return drafted.ok && drafted.value.change
    }
    expect(change(least)).toMatchObject({ satoshi: least })
    expect(change(least - 1n)).toBe(null)
  })

  describe('where there are many coins', () => {
    const large = [900_000n, 800_000n, 700_000n]
    const small = Array.from({ length: 100 }, (_, index) => 20_000n + BigInt(index))
    const taken = (units: bigint, rate: bigint, sizes: readonly bigint[]) => {
      const drafted = draft(rules, outflow(units), bid(rate), funds(sizes))
      return drafted.ok && drafted.value.inputs.map(({ satoshi }) => satoshi)
    }

    test('the smallest go along with a payout that needs fewer than it is charged for', () => {
      expect(taken(600_000n, 5_000n, [...large, ...small])).toEqual([700_000n, 20_001n, 20_000n])
      expect(taken(1_500_000n, 5_000n, [...large, ...small]), 'it needs two').toEqual([
        900_000n,
        700_000n,
        20_000n,
      ])
      expect(taken(2_000_000n, 5_000n, [...large, ...small]), 'it needs three').toEqual(large)
    })

    test('none do while fees are high, where coins are few, or where one costs more than a tenth of itself', () => {
      expect(taken(600_000n, 10_001n, [...large, ...small])).toEqual([700_000n])
      expect(taken(600_000n, 5_000n, [...large, ...small.slice(3)])).toEqual([700_000n])
      const costly = costOfInput(5_000n) * 10n - 1n
      expect(taken(600_000n, 5_000n, [...large, ...small, costly])).toEqual([700_000n, 20_001n, 20_000n])
    })

    test('none do where they would take the fee above the cap', () => {
      const tight = { ...rules, feeSatoshiMax: feeFor(vbytesOf(1, ['wpkh', 'wpkh']), 5_000n) }
      const drafted = draft(tight, outflow(600_000n), bid(5_000n), funds([...large, ...small]))
      expect(drafted.ok && drafted.value.inputs.map(({ satoshi }) => satoshi)).toEqual([700_000n])
    })

    test('they make its change larger, which can still double the fee', () => {
      fc.assert(
        fc.property(aCase, fc.bigInt(1_000n, 10_000n), ({ units, paidTo, sizes }, rate) => {
          const few = draft(rules, outflow(units, paidTo), bid(rate), funds([60_000_000n, ...sizes]))
          const many = draft(
            rules,
            outflow(units, paidTo),
            bid(rate),
            funds([60_000_000n, ...small, ...sizes]),
          )
          if (!few.ok || !many.ok) throw new Error('there is enough')
          const { change, feeSatoshi } = many.value
          expect(many.value.inputs.length).toBeLessThanOrEqual(Math.max(3, few.value.inputs.length))
          expect(change?.satoshi).toBeGreaterThanOrEqual(
            changeMin({ changeTo: 'wpkh', milliSatPerVb: rate }) + feeSatoshi,
          )
          expect(total(many.value)).toBe(units + (change?.satoshi ?? 0n) + feeSatoshi)
        }),
      )
    })

    test('as many payouts as deposits leave no more of them than are kept', () => {
      let coins = Array.from({ length: 600 }, (_, index) => coin(50_000n + BigInt(index), index))
      for (let round = 0; round < 600; round += 1) {
        const { change } = funds([]) as Funds & { model: 'coins' }
        const drafted = draft(rules, outflow(45_000n), bid(3_000n), { model: 'coins', coins, change })
        if (!drafted.ok) throw new Error(drafted.rejection.message)
        const { inputs, change: back } = drafted.value
        coins = [
          ...coins.filter((one) => !inputs.includes(one)),
          ...(back === null ? [] : [coin(back.satoshi, 1_000 + 2 * round)]),
          coin(50_000n, 1_001 + 2 * round),
        ]
      }
      expect(coins.length).toBeLessThanOrEqual(101)
    })
  })

  test.each([
    ['fee_cap', outflow(50_000n), 300_001n, [1_000_000n]],
    ['destination', outflow(293n), 5_000n, [1_000_000n]],
    ['destination', outflow(545n, 'pkh'), 5_000n, [1_000_000n]],
    [
      'destination',
      { ...outflow(50_000n), address: '1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH' },
      5_000n,
      [1_000_000n],
    ],
    ['funds', outflow(50_000n), 5_000n, []],
    ['funds', outflow(50_000n), 5_000n, [50_000n]],
  ])('%s: it says why it cannot be', (code, wanted, rate, sizes) => {
    expect(draft(rules, wanted, bid(rate), funds(sizes))).toMatchObject({ ok: false, rejection: { code } })
  })

  test('a coin given twice, or one we have no key for, stops it', () => {
    const twice = funds([100_000n])
    if (twice.model !== 'coins') throw new Error('bitcoin')
    const doubled = { ...twice, coins: [...twice.coins, ...twice.coins] }
    expect(() => draft(rules, outflow(50_000n), bid(5_000n), doubled)).toThrow('once')
    const foreign = { ...twice, coins: [{ ...coin(100_000n, 0), address: payees.pkh }] }
    expect(() => draft(rules, outflow(50_000n), bid(5_000n), foreign)).toThrow('P2WPKH')
  })
})

describe('a filler', () => {
  const back: Outflow = { ...outflow(0n), payoutId: 'house-BTC-CB1-1:1', kind: 'filler' }
  const stuckIn = (sizes: readonly bigint[], rate: bigint) => {
    const drafted = draft(rules, outflow(50_000n), bid(rate), funds(sizes))
    if (!drafted.ok) throw new Error(drafted.rejection.message)
    return drafted.value
  }
  const fill = (coins: readonly Coin[], outbids: readonly BitcoinIntent[], rate: bigint) =>
    draft(rules, back, bid(rate), {
      model: 'coins',
      coins,
      change: { address: ours, key: { purpose: 'change', index: 7 } },
      outbids,
    })

  test('takes every coin back, and outbids what it excludes, however low the bid', () => {
    fc.assert(
      fc.property(fc.bigInt(1_000n, 200_000n), fc.bigInt(1_000n, 300_000n), (before, now) => {
        const stuck = stuckIn([40_000n, 90_000n, 70_000n], before)
        const filled = fill(stuck.inputs, [stuck], now)
        if (!filled.ok) {
          expect(filled.rejection.code).toBe('fee_cap')
          expect(stuck.feeSatoshi).toBeGreaterThan(20_000n)
          return
        }
        const { value } = filled
        const size = vbytesOf(stuck.inputs.length, ['wpkh'])
        expect(value).toMatchObject({
          attempt: 1,
          inputs: stuck.inputs,
          change: null,
          payoutId: back.payoutId,
        })
        expect(value.payment).toEqual({ address: ours, satoshi: total(stuck) - value.feeSatoshi })
        expect(value.feeSatoshi).toBeGreaterThanOrEqual(stuck.feeSatoshi + size)
        expect(value.feeSatoshi).toBeGreaterThanOrEqual(feeFor(size, now))
        expect(value.feeSatoshi * vbytes(stuck, 'wpkh')).toBeGreaterThan(stuck.feeSatoshi * size)
      }),
    )
  })

  test('its next attempt spends the same coins for more', () => {
    const stuck = stuckIn([100_000n], 5_000n)
    const first = fill(stuck.inputs, [stuck], 5_000n)
    if (!first.ok) throw new Error(first.rejection.message)
    const second = fill(stuck.inputs, [stuck, first.value], 5_000n)
    if (!second.ok) throw new Error(second.rejection.message)
    expect(second.value).toMatchObject({ attempt: 2, inputs: first.value.inputs })
    expect(second.value.payment.satoshi).toBeLessThan(first.value.payment.satoshi)
    expect(second.value.feeSatoshi).toBe(first.value.feeSatoshi + vbytesOf(1, ['wpkh']))
  })

  test('says why it cannot be: no coin in a block, dust, the cap', () => {
    const stuck = stuckIn([100_000n], 5_000n)
    expect(fill([], [stuck], 5_000n)).toMatchObject({ rejection: { code: 'funds' } })
    expect(fill([{ ...coin(1_000n, 0) }], [stuck], 5_000n)).toMatchObject({ rejection: { code: 'funds' } })
    expect(fill(stuck.inputs, [stuck], 300_001n)).toMatchObject({ rejection: { code: 'fee_cap' } })
  })

  test('without a coin of what it has to exclude is never made', () => {
    const stuck = stuckIn([100_000n], 5_000n)
    expect(() => fill([coin(100_000n, 99)], [stuck], 5_000n)).toThrow('shares a coin')
    expect(() => draft(rules, back, bid(5_000n), funds([100_000n]))).toThrow()
  })
})

describe('raise', () => {
  test('a raised attempt excludes the earlier one, pays the same, and pays enough more to replace it', () => {
    let raisedOnce = 0
    fc.assert(
      fc.property(aCase, ({ sizes, units, paidTo, rate, more }) => {
        const drafted = draft(rules, outflow(units, paidTo), bid(rate), funds(sizes))
        if (!drafted.ok) return
        const raised = raise(rules, drafted.value, bid(more))
        if (!raised.ok) {
          expect(raised.rejection.code).toBe('fee_cap')
          return
        }
        raisedOnce += 1
        const [before, after] = [drafted.value, raised.value]
        expect(after.attempt).toBe(before.attempt + 1)
        expect(after.inputs).toEqual(before.inputs)
        expect(after.payment).toEqual(before.payment)
        expect(total(after)).toBe(units + (after.change?.satoshi ?? 0n) + after.feeSatoshi)
        const size = vbytes(after, paidTo)
        // BIP-125 rules 3 and 4, and a higher rate than before.
        expect(after.feeSatoshi).toBeGreaterThanOrEqual(before.feeSatoshi + size)
        expect(after.feeSatoshi * vbytes(before, paidTo)).toBeGreaterThan(before.feeSatoshi * size)
        expect(after.feeSatoshi).toBeGreaterThanOrEqual(feeFor(size, more))
        expect(after.feeSatoshi).toBeLessThan(
          feeFor(size, rules.milliSatPerVbMax) + dustLimit('wpkh') + feeFor(32n, 300_000n),
        )
        if (after.change !== null) expect(after.change.satoshi).toBeGreaterThanOrEqual(dustLimit('wpkh'))
      }),
      { numRuns: 300 },
    )
    expect(raisedOnce, 'the property was not empty').toBeGreaterThan(50)
  })

  test('a raise can be raised until the change is spent, and then says so', () => {
    const drafted = draft(rules, outflow(50_000n), bid(5_000n), funds([60_000n]))
    if (!drafted.ok) throw new Error(drafted.rejection.message)
    let attempt: BitcoinIntent = drafted.value
    for (let rate = 10_000n; ; rate += 5_000n) {
      const next = raise(rules, attempt, bid(rate))
      if (!next.ok) {
        expect(next.rejection.code).toBe('fee_cap')
        break
      }
      expect(next.value.feeSatoshi).toBeGreaterThan(attempt.feeSatoshi)
      attempt = next.value
    }
    expect(attempt.attempt).toBeGreaterThan(5)
    expect(attempt.payment.satoshi).toBe(50_000n)
  })

  test('change is kept as long as it is not dust where it goes, and spent to the last satoshi', () => {
    const drafted = draft(rules, outflow(50_000n, 'pkh'), bid(5_000n), funds([60_000n]))
    if (!drafted.ok) throw new Error(drafted.rejection.message)
    const raiseTo = (feeSatoshi: bigint, outputs: readonly OutputKind[]) =>
      raise(rules, drafted.value, bid((feeSatoshi * 1_000n) / vbytesOf(1, outputs)))
    const least = dustLimit('wpkh')
    expect(raiseTo(10_000n - least, ['pkh', 'wpkh'])).toMatchObject({ value: { change: { satoshi: least } } })
    expect(raiseTo(10_001n - least, ['pkh', 'wpkh'])).toMatchObject({
      value: { change: null, feeSatoshi: 10_000n },
    })
    expect(raiseTo(10_000n, ['pkh'])).toMatchObject({ value: { change: null, feeSatoshi: 10_000n } })
    expect(raiseTo(10_001n, ['pkh'])).toMatchObject({ rejection: { code: 'fee_cap' } })
  })

  test('the step above the last attempt does not pass the cap', () => {
    const atCap = draft(rules, outflow(50_000n), bid(300_000n), funds([10_000_000n]))
    if (!atCap.ok) throw new Error(atCap.rejection.message)
    expect(raise(rules, atCap.value, bid(300_000n))).toMatchObject({
      ok: false,
      rejection: { code: 'fee_cap' },
    })
  })
})

describe('the cap on the fee of a whole transaction, above which the signer never signs', () => {
  const capped = { ...rules, feeSatoshiMax: 500_000n } as const
  const many = funds(Array.from({ length: 250 }, () => 500_000n))
  const payment = outflow(100_000_000n)

  test('many coins at a usual rate wait for lower fees, and are paid at the cap', () => {
    const refused = draft(capped, payment, bid(50_000n), many)
    expect(refused).toMatchObject({ ok: false, rejection: { code: 'fee_cap' } })
    expect(!refused.ok && refused.rejection.message).toContain('500000 satoshi')

    const cheaper = draft(capped, payment, bid(20_000n), many)
    if (!cheaper.ok) throw new Error(cheaper.rejection.message)
    const atCap = { ...rules, feeSatoshiMax: cheaper.value.feeSatoshi }
    expect(draft(atCap, payment, bid(20_000n), many)).toEqual(cheaper)
  })

  test('what the coins do not cover whatever the fee still waits for funds', () => {
    expect(draft(capped, outflow(126_000_000n), bid(50_000n), many)).toMatchObject({
      rejection: { code: 'funds' },
    })
  })

  test('room for a raise is given up where the coins for it would pass the cap', () => {
    const one = feeFor(vbytesOf(1, ['wpkh', 'wpkh']), 5_000n)
    const coins = funds([50_000n + one + changeMin({ changeTo: 'wpkh', milliSatPerVb: 5_000n }), 10_000n])
    const roomy = draft(rules, outflow(50_000n), bid(5_000n), coins)
    expect(roomy.ok && roomy.value.inputs.length).toBe(2)
    const tight = draft({ ...rules, feeSatoshiMax: one }, outflow(50_000n), bid(5_000n), coins)
    expect(tight).toMatchObject({ ok: true, value: { feeSatoshi: one } })
    expect(tight.ok && tight.value.inputs.length).toBe(1)
  })

  test.each([50_900n, 500_000n])(
    'a coin of %i that would pass it leaves the payment to a smaller one that does not',
    (large) => {
      const tight = { ...rules, feeSatoshiMax: 600n }
      const drafted = draft(tight, outflow(50_000n), bid(5_000n), funds([large, 50_560n]))
      expect(drafted).toMatchObject({ ok: true, value: { feeSatoshi: 560n, change: null } })
    },
  )

  test('a raise and a filler do not pass it either', () => {
    const low = draft(capped, payment, bid(20_000n), many)
    if (!low.ok) throw new Error(low.rejection.message)
    expect(raise(capped, low.value, bid(45_000n))).toMatchObject({ rejection: { code: 'fee_cap' } })

    const dear = draft(rules, payment, bid(50_000n), many)
    if (!dear.ok || many.model !== 'coins') throw new Error('it is drafted where the cap is higher')
    const back: Outflow = { ...outflow(0n), payoutId: 'house-BTC-CB1-1:1', kind: 'filler' }
    const { inputs: coins } = dear.value
    const filled = draft(capped, back, bid(5_000n), { ...many, coins, outbids: [dear.value] })
    expect(filled).toMatchObject({ rejection: { code: 'fee_cap' } })
  })

  test('a raise that takes all of the change counts all of it', () => {
    const drafted = draft(rules, outflow(50_000n), bid(5_000n), funds([52_000n]))
    if (!drafted.ok) throw new Error(drafted.rejection.message)
    const rate = bid(13_000n)
    expect(raise({ ...rules, feeSatoshiMax: 2_000n }, drafted.value, rate)).toMatchObject({
      value: { change: null, feeSatoshi: 2_000n },
    })
    expect(raise({ ...rules, feeSatoshiMax: 1_999n }, drafted.value, rate)).toMatchObject({
      rejection: { code: 'fee_cap' },
    })
  })

  test('no draft and no raise passes it', () => {
    const limit = fc.bigInt(1_000n, 100_000n)
    fc.assert(
      fc.property(aCase, limit, ({ sizes, units, paidTo, rate, more }, feeSatoshiMax) => {
        const tight = { ...rules, feeSatoshiMax }
        const drafted = draft(tight, outflow(units, paidTo), bid(rate), funds(sizes))
        if (!drafted.ok) return
        expect(drafted.value.feeSatoshi).toBeLessThanOrEqual(feeSatoshiMax)
        const raised = raise(tight, drafted.value, bid(more))
        expect(raised.ok ? raised.value.feeSatoshi : 0n).toBeLessThanOrEqual(feeSatoshiMax)
      }),
    )
  })
})

/** What may be promised of these coins at that rate, as the figures of the reserve are made. */
function promisable(
  sizes: readonly bigint[],
  milliSatPerVb: bigint,
  within: Parameters<typeof estimateAt>[1],
) {
  const { coins } = estimateAt(milliSatPerVb, within)
  assert(coins !== undefined, 'it pays with coins')
  const brought = sizes.map((satoshi) => satoshi - coins.costSatoshi).filter((satoshi) => satoshi > 0n)
  const largest = brought.toSorted((left, right) => Number(right - left)).slice(0, coins.countMax)
  return { count: largest.length, satoshi: largest.reduce((sum, satoshi) => sum + satoshi, 0n) }
}

test('of a reserve of many coins no more is promised than one transaction within its cap pays', () => {
  const within = { ...rules, feeSatoshiMax: 500_000n }
  const coins = Array<bigint>(500).fill(1_000_000n)
  const { count, satoshi } = promisable(coins, 100_000n, within)
  expect(count).toBe(72)
  expect(satoshi).toBe(72n * (1_000_000n - 6_800n))
  const fee = feeFor(vbytesOf(0, ['wsh', 'wpkh']), 100_000n)
  const most = draft(within, outflow(satoshi - fee, 'wsh'), bid(100_000n), funds(coins))
  expect(most).toMatchObject({ ok: true, value: { inputs: { length: 72 } } })
  const more = draft(within, outflow(satoshi + 1_000_000n, 'wsh'), bid(100_000n), funds(coins))
  expect(more).toMatchObject({ ok: false, rejection: { code: 'fee_cap' } })
})

test('whatever is promised of coins at a rate can be drafted at it, to whomever', () => {
  fc.assert(
    fc.property(
      aCase,
      fc.bigInt(2_000n, 1_000_000n),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (of, feeSatoshiMax, part) => {
        const within = { ...rules, feeSatoshiMax }
        const { satoshi } = promisable(of.sizes, of.rate, within)
        const most = satoshi - feeFor(vbytesOf(0, [of.paidTo, 'wpkh']), of.rate)
        const units = (most * BigInt(Math.round(part * 1_000))) / 1_000n
        fc.pre(units >= dustLimit(of.paidTo))
        expect(draft(within, outflow(units, of.paidTo), bid(of.rate), funds(of.sizes))).toMatchObject({
          ok: true,
        })
      },
    ),
  )
})

test('no coin counts whose rest may pass the cap where it is too little for change', () => {
  const [rate, sizes] = [100_000n, [100_000n, 100_000n, 100_000n]]
  const feeOfTwo = feeFor(vbytesOf(2, ['wsh', 'wpkh']), rate)
  const least = changeMin({ changeTo: 'wpkh', milliSatPerVb: rate })
  const outcome = (feeSatoshiMax: bigint) => {
    const within = { ...rules, feeSatoshiMax }
    const rest = draft(within, outflow(200_000n - feeOfTwo - least + 1n, 'wsh'), bid(rate), funds(sizes))
    return [promisable(sizes, rate, within).count, rest.ok]
  }
  expect(outcome(feeOfTwo + least - 2n)).toEqual([1, false])
  expect(outcome(feeOfTwo + least)).toEqual([2, true])
})
