import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assert } from '../assert.ts'
import { type Asset, type AssetId, assetOf, assets } from '../catalog/assets.ts'
import { type Amount, amountOf, parseAmount, showAmount } from '../money/amount.ts'
import { parseDecimal, powerOfTen } from '../money/decimal.ts'
import { showRate } from '../money/rate.ts'
import {
  costIn,
  depositFor,
  type Market,
  midRate,
  payoutFor,
  type Quote,
  quote,
  quoteAtRate,
  quoteLess,
  quoteReceived,
  type Range,
  sourceRange,
} from './quote.ts'

/**
 * What: a quote never gives away a unit, never keeps one too many, and shows numbers that add up.
 * How: markets of every pair at human and at odd prices; results are compared with exact fractions worked out here.
 */

const PRICE_DECIMALS = 8
/** Dollars between which each price is tried, in hundredths. */
const PRICE_CENTS: Readonly<Record<string, readonly [number, number]>> = {
  BTC: [500_000, 50_000_000],
  ETH: [5_000, 5_000_000],
  BNB: [2_000, 1_000_000],
  USDT: [95, 105],
  USDC: [95, 105],
  XRP: [10, 2_000],
  // Cheaper, the largest of the others would be 10 million and more, which with 7 decimals has as many digits as a rate.
  XLM: [110, 500],
  TRX: [5, 200],
  EOS: [10, 2_000],
  SOL: [1_000, 100_000],
}

/** Whole cents, as people and sandboxes set them, or every digit, as a median of venues comes. */
function priceOf({ currency }: Asset): fc.Arbitrary<bigint> {
  const [least, most] = PRICE_CENTS[currency] ?? [1, 1]
  const cents = fc.integer({ min: least, max: most })
  const odd = fc
    .tuple(cents, fc.nat(999_999))
    .map(([whole, rest]) => BigInt(whole) * 1_000_000n + BigInt(rest))
  return fc.oneof(
    cents.map((whole) => BigInt(whole) * 1_000_000n),
    odd,
  )
}

/** A cost of up to some dollars, in the interface's precision, or nothing. */
function networkFeeOf(to: Asset, toPrice: bigint): fc.Arbitrary<Amount> {
  const most = (10n * powerOfTen(PRICE_DECIMALS + to.precision)) / toPrice
  const unit = powerOfTen(to.decimals - to.precision)
  return fc
    .oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: most }))
    .map((shown) => amountOf(to.id, shown * unit))
}

const fee = fc.oneof(fc.constantFrom(0n, 50n, 100n), fc.bigInt({ min: 0n, max: 500n }))

const market: fc.Arbitrary<Market> = fc
  .tuple(fc.constantFrom(...assets), fc.constantFrom(...assets))
  .filter(([from, to]) => from.id !== to.id)
  .chain(([from, to]) =>
    fc
      .tuple(priceOf(from), priceOf(to), fee, fc.bigInt({ min: 0n, max: powerOfTen(9) }))
      .chain(([fromPrice, toPrice, feeShare, reserve]) =>
        networkFeeOf(to, toPrice).map((networkFee) => ({
          from,
          to,
          mid: midRate(from, to, fromPrice, toPrice),
          fee: feeShare,
          networkFee,
          reserve: amountOf(to.id, (reserve * powerOfTen(PRICE_DECIMALS + to.decimals)) / toPrice / 100n),
        })),
      ),
  )

/** Two decimals, as people type them, or all that the interface takes. */
function amountIn(asset: Asset): fc.Arbitrary<Amount> {
  const unit = powerOfTen(asset.decimals - asset.precision)
  const any = fc.bigInt({ min: 1n, max: asset.maxAmount / unit }).map((shown) => shown * unit)
  const cent = powerOfTen(asset.decimals - 2)
  const round = fc.bigInt({ min: 1n, max: asset.maxAmount / cent }).map((cents) => cents * cent)
  return fc.oneof(any, round).map((units) => amountOf(asset.id, units))
}

const marketAndAmount = market.chain((one) => amountIn(one.from).map((from) => ({ market: one, from })))

const oneShown = (asset: Asset): bigint => powerOfTen(asset.decimals - asset.precision)

/** The market there and the market back, with the same prices and fee. */
function back({ from, to, mid, fee: share }: Market): Market {
  return {
    from: to,
    to: from,
    mid: { base: mid.quote, quote: mid.base, numerator: mid.denominator, denominator: mid.numerator },
    fee: share,
    networkFee: amountOf(from.id, 0n),
    reserve: amountOf(from.id, powerOfTen(60)),
  }
}

const RUNS = { numRuns: 3_000 }

describe('rounding', () => {
  test('a payout is never more than the exact amount, and less by less than one unit of precision', () => {
    fc.assert(
      fc.property(marketAndAmount, ({ market: one, from }) => {
        const { mid, networkFee, to } = one
        const paid = payoutFor(one, from).units
        // exact = (from × mid − networkFee) × 10000 / (10000 + fee), as a fraction.
        const above = (from.units * mid.numerator - networkFee.units * mid.denominator) * 10_000n
        const below = mid.denominator * (10_000n + one.fee)
        if (above <= 0n) {
          expect(paid).toBe(0n)
          return
        }
        expect(paid * below <= above).toBe(true)
        expect((paid + oneShown(to)) * below > above).toBe(true)
        expect(paid % oneShown(to)).toBe(0n)
      }),
      RUNS,
    )
  })

  test('the deposit asked for is the least that pays the amount: one unit less would not', () => {
    const asked = market.chain((one) => amountIn(one.to).map((to) => ({ market: one, to })))
    fc.assert(
      fc.property(asked, ({ market: one, to }) => {
        const deposit = depositFor(one, to)
        expect(payoutFor(one, deposit).units >= to.units).toBe(true)
        const less = amountOf(one.from.id, deposit.units - oneShown(one.from))
        expect(payoutFor(one, less).units < to.units).toBe(true)
        expect(deposit.units % oneShown(one.from)).toBe(0n)
      }),
      RUNS,
    )
  })

  test('the fee is its share of what is paid, raised to the precision by less than one unit', () => {
    fc.assert(
      fc.property(marketAndAmount, ({ market: one, from }) => {
        const made = quoteReceived(one, from)
        if (made === null) return
        const exact = made.to.units * one.fee
        const shown = made.fee.units * 10_000n
        expect(shown >= exact && shown < exact + oneShown(one.to) * 10_000n).toBe(true)
        expect(made.fee.units % oneShown(one.to)).toBe(0n)
      }),
      RUNS,
    )
  })

  test('a cost told in another currency is never less than it is, and more by less than one unit', () => {
    fc.assert(
      fc.property(
        market,
        fc.bigInt({ min: 0n, max: 10n ** 17n }),
        fc.bigInt({ min: 1n, max: 10n ** 13n }),
        (one, cost, price) => {
          const native = assetOf('ETH:ETH')
          const { to } = one
          const told = costIn(to, amountOf(native.id, cost), price, 123_456_789n)
          const above = cost * price * powerOfTen(to.decimals)
          const below = 123_456_789n * powerOfTen(native.decimals)
          expect(told.units * below >= above && (told.units - oneShown(to)) * below < above).toBe(true)
        },
      ),
      RUNS,
    )
  })
})

describe('there and back', () => {
  test('nobody gains by exchanging there and back, whatever fee and side the amount is given for', () => {
    fc.assert(
      fc.property(marketAndAmount, ({ market: one, from }) => {
        const there = payoutFor(one, from)
        expect(payoutFor(back(one), there).units <= from.units).toBe(true)
        // Asking for an amount: what has to be sent for it buys no more than was sent.
        expect(depositFor(back(one), from).units >= there.units).toBe(true)
        const asked = depositFor(one, there)
        expect(payoutFor(back(one), there).units <= asked.units).toBe(true)
      }),
      RUNS,
    )
  })
})

/** A quote within the limits, in either direction. */
function quoted(one: Market, direction: 'from' | 'to', amount: Amount): Quote | null {
  const made = quote(one, direction, amount)
  return made.ok ? made.value : null
}

const wholeRate = (made: Quote): { above: bigint; below: bigint } => {
  const [whole = '', fraction = ''] = showRate(made.rate).split('.')
  return { above: BigInt(whole + fraction), below: powerOfTen(fraction.length) }
}

/** Digits from the first that is not zero to the last that is not zero. */
function significantDigits(text: string): number {
  return text.replace('.', '').replace(/^0+/, '').replace(/0+$/, '').length
}

describe('what is shown', () => {
  const made = market
    .map((one) => ({ ...one, reserve: amountOf(one.to.id, powerOfTen(60)) }))
    .chain((one) =>
      fc
        .constantFrom('from' as const, 'to' as const)
        .chain((direction) =>
          amountIn(one[direction]).map((amount) => ({ market: one, quote: quoted(one, direction, amount) })),
        ),
    )
    .filter(
      (sample): sample is { market: Market & { reserve: Amount }; quote: Quote } => sample.quote !== null,
    )

  test('to_amount is from_amount × rate, cut to the precision, digit by digit as shown', () => {
    fc.assert(
      fc.property(made, ({ market: one, quote: shown }) => {
        const { above, below } = wholeRate(shown)
        const sent = shown.from.units / oneShown(one.from)
        // In the destination's precision: from / 10^fromPrecision × rate × 10^toPrecision.
        const product =
          (sent * above * powerOfTen(one.to.precision)) / (below * powerOfTen(one.from.precision))
        expect(product).toBe(shown.to.units / oneShown(one.to))
      }),
      RUNS,
    )
  })

  test('no number has more than 15 significant digits or more decimals than its currency', () => {
    fc.assert(
      fc.property(made, ({ quote: shown }) => {
        const amounts = [shown.from, shown.to, shown.fee, shown.networkFee]
        for (const amount of amounts) {
          expect(showAmount(amount, 'down')).toBe(showAmount(amount, 'up'))
          expect(significantDigits(showAmount(amount, 'down'))).toBeLessThanOrEqual(15)
        }
        expect(significantDigits(showRate(shown.rate))).toBeLessThanOrEqual(15)
      }),
      RUNS,
    )
  })

  /** What an order holds of a quote. */
  const lockOf = (one: Market, { from: asks, rate, networkFee }: Quote) => ({
    ...{ asks, rate, networkFee },
    feeShare: one.fee,
  })

  test('the promised rate on the amount asked gives the promise again', () => {
    fc.assert(
      fc.property(made, ({ market: one, quote: shown }) => {
        expect(quoteAtRate(lockOf(one, shown), shown.from)).toEqual(shown)
      }),
      RUNS,
    )
  })

  test('the promised rate on less pays less, and never more than its share', () => {
    const part = fc.tuple(made, fc.bigInt({ min: 1n, max: 9_999n }))
    fc.assert(
      fc.property(part, ([{ market: one, quote: shown }, share]) => {
        const received = amountOf(shown.from.asset, (shown.from.units * share) / 10_000n)
        const less = quoteAtRate(lockOf(one, shown), received)
        if (less === null) return
        expect(less.to.units <= shown.to.units).toBe(true)
        expect(less.to.units * shown.from.units <= (shown.to.units + oneShown(one.to)) * received.units).toBe(
          true,
        )
      }),
      RUNS,
    )
  })

  test("the promised rate on another amount charges that amount's part of the network cost, raised by less than one unit", () => {
    const part = fc.tuple(made, fc.bigInt({ min: 1n, max: 100_000n }))
    fc.assert(
      fc.property(part, ([{ market: one, quote: shown }, share]) => {
        const received = amountOf(shown.from.asset, (shown.from.units * share) / 10_000n)
        const other = quoteAtRate(lockOf(one, shown), received)
        if (other === null) return
        const exact = shown.networkFee.units * received.units
        const { units } = other.networkFee
        expect(units * shown.from.units >= exact).toBe(true)
        expect((units - oneShown(one.to)) * shown.from.units < exact).toBe(true)
        expect(units % oneShown(one.to)).toBe(0n)
      }),
      RUNS,
    )
  })
})

describe('limits', () => {
  const HUGE = powerOfTen(70)

  function rangeOf(one: Market, direction: 'from' | 'to'): Range {
    const refused = quote(one, direction, amountOf(one[direction].id, HUGE))
    assert(!refused.ok, 'nobody has so much')
    expect(refused.rejection.code).toBe('amount_out_of_range')
    return refused.rejection.range
  }

  test.each(['from', 'to'] as const)(
    'both ends are accepted and a unit beyond is refused: direction %s',
    (direction) => {
      let open = 0
      fc.assert(
        fc.property(market, (one) => {
          const { min, max } = rangeOf(one, direction)
          const unit = oneShown(one[direction])
          const accepts = (units: bigint) => quote(one, direction, amountOf(one[direction].id, units)).ok
          expect(min.units % unit).toBe(0n)
          expect(max.units % unit).toBe(0n)
          expect(accepts(min.units - unit)).toBe(false)
          expect(accepts(max.units + unit)).toBe(false)
          if (min.units > max.units) return
          open += 1
          expect(accepts(min.units)).toBe(true)
          expect(accepts(max.units)).toBe(true)
        }),
        RUNS,
      )
      expect(open).toBeGreaterThan(1_000)
    },
  )

  test('what the ends of one direction come to lies within the limits of the other', () => {
    fc.assert(
      fc.property(market, (one) => {
        const source = sourceRange(one)
        const { min, max } = rangeOf(one, 'to')
        if (min.units > max.units || source.min.units > source.max.units) return
        for (const asked of [min, max]) {
          const made = quoted(one, 'to', asked)
          assert(made !== null, 'both ends are accepted')
          expect(made.from.units >= source.min.units && made.from.units <= source.max.units).toBe(true)
          expect(quoted(one, 'from', made.from)).not.toBeNull()
        }
        // What the least deposit brings can be asked for, unless a smaller one would bring it too.
        const least = payoutFor(one, source.min)
        const isForLess = depositFor(one, least).units < source.min.units
        expect(quoted(one, 'to', least) === null).toBe(isForLess)
      }),
      RUNS,
    )
  })

  test('within the limits a payout is worth making and the reserve covers it', () => {
    fc.assert(
      fc.property(market, (one) => {
        const { min, max } = sourceRange(one)
        if (min.units > max.units) return
        expect(payoutFor(one, min).units >= one.to.minPayout).toBe(true)
        expect(payoutFor(one, max).units <= one.reserve.units).toBe(true)
        expect(min.units >= one.from.minAmount && max.units <= one.from.maxAmount).toBe(true)
      }),
      RUNS,
    )
  })

  test('without a reserve nothing is accepted, in either direction', () => {
    fc.assert(
      fc.property(market, (full) => {
        const one = { ...full, reserve: amountOf(full.to.id, 0n) }
        for (const direction of ['from', 'to'] as const) {
          const { min, max } = rangeOf(one, direction)
          for (const end of [min, max]) expect(quote(one, direction, end).ok).toBe(false)
        }
      }),
      RUNS,
    )
  })
})

describe('at one dollar each and without any cost', () => {
  const [from, to] = [assetOf('USDT:BEP20'), assetOf('USDC:ERC20')]
  const one: Market = {
    from,
    to,
    mid: midRate(from, to, 1n, 1n),
    fee: 0n,
    networkFee: amountOf(to.id, 0n),
    reserve: amountOf(to.id, powerOfTen(60)),
  }

  /** One for one, and the network's cost as it is for what is asked. */
  const lockOf = (asks: Amount, networkFee = one.networkFee) => ({
    ...{ asks, networkFee },
    rate: one.mid,
    feeShare: 0n,
  })

  test('what was received is worth a payout from exactly the least payout on', () => {
    const enough = exactly('USDT:BEP20', '1')
    const tooLittle = exactly('USDT:BEP20', '0.999999')
    expect(quoteReceived(one, enough)?.to).toEqual(exactly('USDC:ERC20', '1'))
    expect(quoteReceived(one, tooLittle)).toBeNull()
    expect(quoteAtRate(lockOf(enough), enough)?.to).toEqual(exactly('USDC:ERC20', '1'))
    expect(quoteAtRate(lockOf(enough), tooLittle)).toBeNull()
  })

  test('what else has to be paid is taken off once, and stands beside what sending costs', () => {
    const twenty = exactly('USDT:BEP20', '20')
    const quoted = quoteAtRate(lockOf(twenty, exactly('USDC:ERC20', '0.5')), twenty)
    assert(quoted !== null, 'it is worth a payout')
    expect(quoteLess(quoted, one.networkFee)).toBe(quoted)
    const less = quoteLess(quoted, exactly('USDC:ERC20', '4'))
    expect(less).toMatchObject({
      ...{ from: quoted.from, fee: quoted.fee },
      ...{ to: exactly('USDC:ERC20', '16'), networkFee: exactly('USDC:ERC20', '4.5') },
    })
    assert(less !== null, 'it is worth a payout')
    expect(showRate(less.rate)).toBe('0.8')
    const thirty = quoteAtRate(lockOf(twenty), exactly('USDT:BEP20', '30'))
    const uneven = thirty && quoteLess(thirty, exactly('USDC:ERC20', '10'))
    assert(uneven !== null, 'it is worth a payout')
    // Two thirds, raised: what was received times the rate reaches what is paid.
    expect(showRate(uneven.rate)).toBe('0.666666666666667')
  })

  test('what else has to be paid leaves exactly the least payout, or nothing', () => {
    const twenty = exactly('USDT:BEP20', '20')
    const quoted = quoteAtRate(lockOf(twenty), twenty)
    assert(quoted !== null, 'it is worth a payout')
    expect(quoteLess(quoted, exactly('USDC:ERC20', '19'))?.to).toEqual(exactly('USDC:ERC20', '1'))
    const dear = exactly('USDC:ERC20', '21')
    expect(quoteLess({ ...quoted, from: exactly('USDT:BEP20', '30') }, dear)).toBeNull()
    for (const cost of ['19.000001', '20', '21'])
      expect(quoteLess(quoted, exactly('USDC:ERC20', cost))).toBeNull()
  })

  test('an amount of another asset is a mistake of ours and no quote', () => {
    const [sent, got] = [exactly('USDT:BEP20', '20'), exactly('USDC:ERC20', '20')]
    expect(() => payoutFor(one, got)).toThrow('the market is for this asset')
    expect(() => depositFor(one, sent)).toThrow('the market is for this asset')
    expect(() => quote(one, 'from', amountOf(to.id, 0n))).toThrow('the asset that the direction says')
    expect(() => quote(one, 'to', amountOf(from.id, 0n))).toThrow('the asset that the direction says')
  })

  test.each([
    [0n, 1n],
    [1n, 0n],
    [-1n, 1n],
    [1n, -1n],
  ])('the prices %s and %s make no rate', (fromPrice, toPrice) => {
    expect(() => midRate(from, to, fromPrice, toPrice)).toThrow('a price is positive')
  })
})

/** Worked out with fractions by another program. The last column is the least deposit that pays `to_amount`. */
test.each([
  // amount, from, to, prices, fee, network fee, to_amount, fee, rate, deposit
  [
    '0.1',
    'BTC:BTC',
    'USDT:ERC20',
    '65432.10',
    '1.00',
    100n,
    '0',
    '6478.425742',
    '64.784258',
    '64784.25742',
    '0.1',
  ],
  [
    '0.25',
    'BTC:BTC',
    'ETH:ETH',
    '65000.00',
    '3250.00',
    50n,
    '0',
    '4.97512437',
    '0.02487563',
    '19.90049748',
    '0.25',
  ],
  [
    '1.00',
    'ETH:ETH',
    'USDT:ERC20',
    '3123.45',
    '1.00',
    50n,
    '4.25',
    '3103.681592',
    '15.518408',
    '3103.681592',
    '1',
  ],
  [
    '2.50',
    'ETH:ETH',
    'BTC:BTC',
    '3000.01',
    '60000.02',
    100n,
    '0.00002',
    '0.12374294',
    '0.00123743',
    '0.049497176',
    '2.49999989',
  ],
  [
    '100.00',
    'USDT:ERC20',
    'BTC:BTC',
    '1.00',
    '65432.10',
    100n,
    '0.000015',
    '0.00149831',
    '0.00001499',
    '0.0000149831',
    '99.999427',
  ],
  ['100.00', 'USDT:BEP20', 'USDT:ERC20', '1.00', '1.00', 0n, '0', '100', '0', '1', '100'],
  [
    '99.99',
    'USDC:ERC20',
    'BNB:BNB',
    '1.00',
    '587.65',
    50n,
    '0.00005',
    '0.16925602',
    '0.00084629',
    '0.0016927294729473',
    '99.99',
  ],
  [
    '1.10',
    'BNB:BNB',
    'USDC:BEP20',
    '587.65',
    '1.00',
    100n,
    '0.35',
    '639.668316',
    '6.396684',
    '581.516650909091',
    '1.1',
  ],
  [
    '19.99',
    'USDT:ERC20',
    'ETH:ETH',
    '1.00',
    '2999.99',
    100n,
    '0.00031',
    '0.00629045',
    '0.00006291',
    '0.00031467983991996',
    '19.989997',
  ],
  [
    '0.07',
    'BTC:BTC',
    'USDC:BEP20',
    '100000.00',
    '1.00',
    50n,
    '0.3',
    '6964.875621',
    '34.824379',
    '99498.2231571429',
    '0.07',
  ],
  [
    '1234.56',
    'USDC:ERC20',
    'USDT:BEP20',
    '1.01',
    '0.99',
    100n,
    '0.25',
    '1246.782778',
    '12.467828',
    '1.00990051354329',
    '1234.56',
  ],
  [
    '3.30',
    'ETH:ETH',
    'BNB:BNB',
    '2222.22',
    '555.55',
    100n,
    '0.0001',
    '13.06932554',
    '0.13069326',
    '3.96040167878788',
    '3.3',
  ],
] as const)(
  '%s %s to %s at %s and %s',
  (text, fromId, toId, fromPrice, toPrice, share, cost, to, feeShown, rate, deposit) => {
    const [from, into] = [assetOf(fromId), assetOf(toId)]
    const one: Market = {
      from,
      to: into,
      mid: midRate(from, into, dollars(fromPrice), dollars(toPrice)),
      fee: share,
      networkFee: exactly(toId, cost),
      reserve: amountOf(toId, powerOfTen(60)),
    }
    const made = quoted(one, 'from', exactly(fromId, text))
    assert(made !== null, 'it is within the limits')
    expect({
      to: showAmount(made.to, 'down'),
      fee: showAmount(made.fee, 'up'),
      rate: showRate(made.rate),
      deposit: showAmount(depositFor(one, made.to), 'up'),
    }).toEqual({ to, fee: feeShown, rate, deposit })
  },
)

function dollars(text: string): bigint {
  const parsed = parseDecimal(text, PRICE_DECIMALS)
  assert(parsed.ok, 'a price')
  return parsed.value
}

function exactly(asset: AssetId, text: string): Amount {
  const parsed = parseAmount(assetOf(asset), text)
  assert(parsed.ok, 'an amount')
  return parsed.value
}
