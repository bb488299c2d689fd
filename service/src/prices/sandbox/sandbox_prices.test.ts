import fc from 'fast-check'
import { expect, test } from 'vitest'
import { currencyCodes } from '../../domain/catalog/currencies.ts'
import { sandboxPrices } from './sandbox_prices.ts'

const UNIT = 10n ** 12n

test('every listed currency has a price from the start, and it holds still', () => {
  const prices = sandboxPrices()
  expect(prices.usd('BTC')).toBe(65_000n * UNIT)
  for (const code of currencyCodes) expect(prices.usd(code)).toBeGreaterThan(0n)
  expect(Object.keys(prices.all())).toEqual(currencyCodes)
  expect(prices.all()).toMatchObject({ BTC: '65000', ETH: '3500', BNB: '600', USDT: '1', USDC: '1' })
})

test('a price is set exactly', () => {
  const prices = sandboxPrices()
  expect(prices.set('USDT', '0.999123456789')).toEqual({ ok: true, value: 999_123_456_789n })
  expect(prices.usd('USDT')).toBe(999_123_456_789n)
  expect(prices.all().USDT).toBe('0.999123456789')
})

test.each([
  ['-10', '58500'],
  ['2.5', '66625'],
  ['0', '65000'],
  ['100', '130000'],
  ['-99.999999999999', '0.00000000065'],
  ['0.1', '65065'],
  ['33.333333333333', '86666.66666666645'],
])('BTC changed by %s percent is %s', (percent, usd) => {
  const prices = sandboxPrices()
  expect(prices.change('BTC', percent).ok).toBe(true)
  expect(prices.all().BTC).toBe(usd)
  expect(prices.all().ETH).toBe('3500')
})

test.each(['', '0', '0.0', '-1', '1e3', '1,5', 'abc', '0.0000000000001', '1000000000000001', '٣'])(
  'a price of %j is refused and nothing changes',
  (text) => {
    const prices = sandboxPrices()
    expect(prices.set('BTC', text).ok).toBe(false)
    expect(prices.all().BTC).toBe('65000')
  },
)

test.each(['-100', '-100.5', '-1000', '', '-', '--1', '+5', '1e1', 'ten', '99999999999999'])(
  'a change of %j percent is refused and nothing changes',
  (text) => {
    const prices = sandboxPrices()
    expect(prices.change('BTC', text).ok).toBe(false)
    expect(prices.all().BTC).toBe('65000')
  },
)

test('a change never makes a price of nothing', () => {
  const prices = sandboxPrices()
  prices.set('USDC', '0.000000000001')
  expect(prices.change('USDC', '-50').ok).toBe(false)
  expect(prices.all().USDC).toBe('0.000000000001')
})

test('what was saved is loaded to the last digit', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: 10n ** 27n }), (units) => {
      const before = sandboxPrices()
      const text = `${units / UNIT}.${(units % UNIT).toString().padStart(12, '0')}`
      expect(before.set('ETH', text)).toEqual({ ok: true, value: units })
      const after = sandboxPrices()
      expect(after.load(JSON.parse(JSON.stringify(before.all()))).ok).toBe(true)
      expect(after.usd('ETH')).toBe(units)
    }),
  )
})

test('a save with one wrong price changes nothing; currencies no longer listed are passed over', () => {
  const prices = sandboxPrices()
  expect(prices.load({ BTC: '70000', ETH: 'much' }).ok).toBe(false)
  expect(prices.all().BTC).toBe('65000')
  expect(prices.load({ BTC: '70000', DOGE: 'much', constructor: 'x' }).ok).toBe(true)
  expect(prices.all().BTC).toBe('70000')
})
