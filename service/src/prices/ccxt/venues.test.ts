import { expect, test } from 'vitest'
import { choosePairs } from './venues.ts'

test('the deepest market that is open prices a currency; one that is closed, or no spot market, prices nothing', () => {
  const chosen = (...markets: { symbol: string; active?: boolean; spot?: boolean }[]) => {
    const told = markets.map((market) => ({ spot: true, ...market }))
    return choosePairs('kraken', ['BTC'], told).map(({ symbol, quote }) => [symbol, quote])
  }
  const inDollars = { symbol: 'BTC/USD' }
  const inUsdt = { symbol: 'BTC/USDT' }
  expect(chosen(inUsdt, inDollars)).toEqual([['BTC/USD', 'USD']])
  expect(chosen(inUsdt, { ...inDollars, active: true })).toEqual([['BTC/USD', 'USD']])
  expect(chosen(inUsdt, { ...inDollars, active: false })).toEqual([['BTC/USDT', 'USDT']])
  expect(chosen({ ...inDollars, active: false })).toEqual([])
  expect(chosen({ ...inDollars, spot: false })).toEqual([])
})
