import fc from 'fast-check'
import { expect, test } from 'vitest'
import { askedFees, isPricedOut, priceWithin, raisedPrice } from './fees.ts'
import { refusal, scriptedNode } from './testing/scripted_node.ts'

const wei = fc.bigInt({ min: 1n, max: 10n ** 15n })
const price = fc
  .tuple(wei, wei)
  .map(([tip, more]) => ({ maxFeePerGasWei: tip + more, maxPriorityFeePerGasWei: tip }))
const NO_CAP = 10n ** 30n

test('a raised price is at least an eighth more on both counts, and never below what the chain asks', () => {
  fc.assert(
    fc.property(price, price, (previous, asked) => {
      const raised = raisedPrice(previous, asked, NO_CAP)
      expect(raised.ok).toBe(true)
      if (!raised.ok) return
      for (const part of ['maxFeePerGasWei', 'maxPriorityFeePerGasWei'] as const) {
        expect(raised.value[part] * 8n).toBeGreaterThanOrEqual(previous[part] * 9n)
        expect(raised.value[part]).toBeGreaterThan(previous[part])
        expect(raised.value[part]).toBeGreaterThanOrEqual(asked[part])
      }
      expect(raised.value.maxPriorityFeePerGasWei).toBeLessThanOrEqual(raised.value.maxFeePerGasWei)
    }),
  )
})

test('a tip of nothing is raised too', () => {
  const raised = raisedPrice(
    { maxFeePerGasWei: 8n, maxPriorityFeePerGasWei: 0n },
    { maxFeePerGasWei: 1n, maxPriorityFeePerGasWei: 0n },
    NO_CAP,
  )
  expect(raised).toEqual({ ok: true, value: { maxFeePerGasWei: 9n, maxPriorityFeePerGasWei: 1n } })
})

test('no price passes the cap, and a raise that would have to is refused', () => {
  fc.assert(
    fc.property(price, price, wei, (previous, asked, capWei) => {
      const raised = raisedPrice(previous, asked, capWei)
      if (raised.ok) expect(raised.value.maxFeePerGasWei).toBeLessThanOrEqual(capWei)
      else expect(raised.rejection.code).toBe('fee_cap')
    }),
  )
})

test('a first price has room for the base fee to double, up to the cap', () => {
  const asked = { baseWei: 100n, tipWei: 10n }
  const paid = (capWei: bigint) => priceWithin(capWei, asked)
  expect(paid(1_000n)).toMatchObject({ value: { maxFeePerGasWei: 210n, maxPriorityFeePerGasWei: 10n } })
  expect(paid(150n)).toMatchObject({ value: { maxFeePerGasWei: 150n, maxPriorityFeePerGasWei: 10n } })
  expect(paid(110n)).toMatchObject({ value: { maxFeePerGasWei: 110n, maxPriorityFeePerGasWei: 10n } })
  expect(paid(109n)).toMatchObject({ ok: false, rejection: { code: 'fee_cap' } })
})

test('what leaves less than the tip above the base fee is taken by no block, until the base fee falls', () => {
  const price = { maxFeePerGasWei: 110n, maxPriorityFeePerGasWei: 10n }
  expect(isPricedOut(price, { baseWei: 100n, tipWei: 10n }, NO_CAP)).toBe(false)
  expect(isPricedOut(price, { baseWei: 101n, tipWei: 10n }, NO_CAP)).toBe(true)
  expect(isPricedOut(price, { baseWei: 120n, tipWei: 10n }, NO_CAP)).toBe(true)
})

test('a price of now is not, though the base fee doubles, and a raised one neither', () => {
  fc.assert(
    fc.property(wei, wei, price, (baseWei, tipWei, previous) => {
      const bid = priceWithin(NO_CAP, { baseWei, tipWei })
      const raised = bid.ok ? raisedPrice(previous, bid.value, NO_CAP) : bid
      expect(bid.ok && isPricedOut(bid.value, { baseWei: 2n * baseWei, tipWei }, NO_CAP)).toBe(false)
      expect(raised.ok && isPricedOut(raised.value, { baseWei, tipWei }, NO_CAP)).toBe(false)
    }),
  )
})

test('without a base fee no advice prices it out, and where the cap lets no higher price be nothing does', () => {
  const byTip = { maxFeePerGasWei: 5n, maxPriorityFeePerGasWei: 5n }
  expect(isPricedOut(byTip, { baseWei: 0n, tipWei: 50n }, NO_CAP)).toBe(false)
  const price = { maxFeePerGasWei: 110n, maxPriorityFeePerGasWei: 10n }
  const asked = { baseWei: 120n, tipWei: 10n }
  expect([129n, 130n].map((capWei) => isPricedOut(price, asked, capWei))).toEqual([false, true])
  const first = { maxFeePerGasWei: 129n, maxPriorityFeePerGasWei: 10n }
  expect([145n, 146n].map((capWei) => isPricedOut(first, asked, capWei))).toEqual([false, true])
})

test('where a node advises no tip, it is what the price of gas leaves above the base fee', async () => {
  const hash = `0x${'b'.repeat(64)}`
  const header = { number: '0x1', hash, parentHash: hash, timestamp: '0x1', baseFeePerGas: '0x10' }
  const ask = (code: number, message: string) =>
    askedFees(
      scriptedNode({
        eth_getBlockByNumber: () => header,
        eth_maxPriorityFeePerGas: () => refusal(code, message),
        eth_gasPrice: () => '0x13',
      }),
    )
  expect(await ask(-32_601, 'Method not found')).toEqual({ baseWei: 16n, tipWei: 3n })
  await expect(ask(-32_000, 'busy'), 'it may advise one when asked again').rejects.toThrow('busy')
})
