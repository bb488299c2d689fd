import fc from 'fast-check'
import { expect, test } from 'vitest'
import { assetOf, assets } from '../catalog/assets.ts'
import {
  add,
  amountOf,
  exactAmount,
  fromChainUnits,
  parseAmount,
  showAmount,
  toChainUnits,
  toPrecision,
} from './amount.ts'

const asset = fc.constantFrom(...assets)
const units = fc.bigInt({ min: 0n, max: 10n ** 40n })

test('what the chain says is booked exactly, and can be paid out again', () => {
  fc.assert(
    fc.property(asset, units, ({ id }, chainUnits) => {
      expect(toChainUnits(fromChainUnits(id, chainUnits))).toBe(chainUnits)
    }),
  )
})

test.each([
  ['USDT:ERC20', 1n, '0.000001'],
  ['USDT:BEP20', 1n, '0.000000000000000001'],
  ['USDC:ERC20', 123_456_789n, '123.456789'],
  ['BTC:BTC', 1n, '0.00000001'],
  ['ETH:ETH', 10n ** 18n + 1n, '1.000000000000000001'],
] as const)('%s: %s on the chain is %s', (id, chainUnits, text) => {
  expect(exactAmount(fromChainUnits(id, chainUnits))).toBe(text)
})

test('what the chain cannot carry is never rounded in silence', () => {
  expect(() => toChainUnits(amountOf('USDT:ERC20', 10n ** 12n + 1n))).toThrow('can be carried by its chain')
  expect(toChainUnits(amountOf('USDT:ERC20', 10n ** 12n))).toBe(1n)
  expect(() => toChainUnits(amountOf('USDT:ERC20', -(10n ** 12n)))).toThrow('can be carried by its chain')
})

test('cut or raised to the precision, an amount moves by less than the least that is shown', () => {
  fc.assert(
    fc.property(asset, units, ({ id, step }, value) => {
      const down = toPrecision(amountOf(id, value), 'down').units
      const up = toPrecision(amountOf(id, value), 'up').units
      expect(down <= value && value - down < step && down % step === 0n).toBe(true)
      expect(up >= value && up - value < step && up % step === 0n).toBe(true)
    }),
  )
})

test('every amount in the interface’s precision can be carried by its chain', () => {
  fc.assert(
    fc.property(asset, units, ({ id }, value) => {
      const paid = toPrecision(amountOf(id, value), 'down')
      expect(fromChainUnits(id, toChainUnits(paid))).toEqual(paid)
    }),
  )
})

test('a request is read exactly, and shown as it was asked', () => {
  fc.assert(
    fc.property(asset, units, (one, value) => {
      const shown = showAmount(amountOf(one.id, value), 'down')
      const read = parseAmount(one, shown)
      expect(read).toEqual({ ok: true, value: toPrecision(amountOf(one.id, value), 'down') })
    }),
  )
})

test('a request finer than the precision is refused, though the ledger could hold it', () => {
  expect(parseAmount(assetOf('ETH:ETH'), '0.000000001')).toMatchObject({ ok: false })
  expect(parseAmount(assetOf('ETH:ETH'), '0.00000001')).toEqual({
    ok: true,
    value: amountOf('ETH:ETH', 10n ** 10n),
  })
})

test('shown rounded as named', () => {
  const odd = amountOf('ETH:ETH', 10n ** 10n + 1n)
  expect(showAmount(odd, 'down')).toBe('0.00000001')
  expect(showAmount(odd, 'up')).toBe('0.00000002')
})

test('amounts of different assets do not add up, even of one currency', () => {
  expect(add(amountOf('USDT:ERC20', 1n), amountOf('USDT:ERC20', 2n)).units).toBe(3n)
  expect(() => add(amountOf('USDT:ERC20', 1n), amountOf('USDT:BEP20', 2n))).toThrow()
})
