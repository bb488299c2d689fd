import { expect, test } from 'vitest'
import { priceOf, type Ticker } from './ticker_price.ts'

const UNIT = 10n ** 12n

test.each<[string, Ticker, bigint]>([
  ['the middle of bid and ask', { bid: '64999.5', ask: '65000.5', last: '1' }, 65_000n * UNIT],
  ['exact to the last digit', { bid: '0.000000000001', ask: '0.000000000001' }, 1n],
  ['the last trade where a venue tells no bid and ask', { last: '65000.1' }, 65_000_100_000_000_000n],
  ['cut at 12 decimals', { last: '1.0000000000019' }, UNIT + 1n],
  [
    'beyond what a float holds',
    { last: '9007199254740993.000000000001' },
    9_007_199_254_740_993n * UNIT + 1n,
  ],
])('the price is %s', (_what, ticker, price) => {
  expect(priceOf(ticker, { spreadPercentMax: 2, tellsBook: false })).toEqual({ ok: true, value: price })
})

test.each<[string, Ticker, string]>([
  ['nothing', {}, 'price_missing'],
  ['a float, which may have lost digits', { last: 65000 }, 'price_missing'],
  ['words', { last: 'NaN', bid: 'Infinity', ask: 'undefined' }, 'price_missing'],
  ['an exponent', { last: '1e5' }, 'price_missing'],
  ['a negative number', { last: '-1' }, 'price_missing'],
  ['zero', { last: '0.0' }, 'price_missing'],
  ['a crossed book', { bid: '101', ask: '100', last: '100' }, 'book_crossed'],
  ['a spread over the limit', { bid: '98.99', ask: '101.01', last: '100' }, 'spread_wide'],
])('%s gives no price', (_what, ticker, code) => {
  for (const tellsBook of [true, false]) {
    expect(priceOf(ticker, { spreadPercentMax: 2, tellsBook })).toMatchObject({
      ok: false,
      rejection: { code },
    })
  }
})

test.each<[string, Ticker]>([
  ['nobody buys', { ask: '65000.5', last: '65000.1' }],
  ['the bid is zero', { bid: '0', ask: '65000.5', last: '65000' }],
  ['nobody sells', { bid: '64999.5', last: '65000' }],
  ['trading is halted', { last: '65000' }],
])('where %s, the last trade is no price', (_what, ticker) => {
  const rules = { spreadPercentMax: 2, tellsBook: true }
  expect(priceOf(ticker, rules)).toMatchObject({ ok: false, rejection: { code: 'price_missing' } })
})

test.each<Ticker>([
  { ask: '65000.5', last: '65000' },
  { bid: '64999.5', last: '65000' },
])('one side of a book is no price either where none was looked for: %o', (ticker) => {
  const rules = { spreadPercentMax: 2, tellsBook: false }
  expect(priceOf(ticker, rules)).toMatchObject({ ok: false, rejection: { code: 'price_missing' } })
})

test('a spread of exactly the limit is a price', () => {
  expect(priceOf({ bid: '99', ask: '101' }, { spreadPercentMax: 2, tellsBook: true })).toEqual({
    ok: true,
    value: 100n * UNIT,
  })
})
