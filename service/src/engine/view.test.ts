import { expect, test } from 'vitest'
import { assetOf } from '../domain/catalog/assets.ts'
import { type Amount, amountOf, parseAmount } from '../domain/money/amount.ts'
import { parseRate } from '../domain/money/rate.ts'
import { type Deposit, nothingFailed, type Order } from '../domain/orders/order.ts'
import type { MarketBoard } from './market.ts'
import { viewOrder } from './view.ts'

/**
 * What: the figures of an order as its client sees them.
 * How: a float order of ether for USDT that was exchanged at another rate than it was quoted; block 100 is the last.
 */
const ETH = 'ETH:ETH'
const USDT = 'USDT:ERC20'
const market = { headHeight: () => 100 } as unknown as MarketBoard

function exactly(asset: typeof ETH | typeof USDT, text: string): Amount {
  const amount = parseAmount(assetOf(asset), text)
  if (!amount.ok) throw new Error(amount.rejection.message)
  return amount.value
}

function deposit(key: string, wei: bigint, height: number | null): Deposit {
  return {
    ...{ key, txHash: `0x${key}`, amount: amountOf(ETH, wei), seenAtMs: 1, role: 'counted', isLate: false },
    ...(height === null ? { state: 'seen', block: null } : { state: 'mined', block: { height, hash: 'h' } }),
  }
}

function quoted(deposits: readonly Deposit[]): Order {
  return {
    terms: {
      id: 'CB0000000000000001',
      accountId: 'acc_test0000',
      createdAtMs: 0,
      expiresAtMs: 900_000,
      rateType: 'float',
      from: ETH,
      to: USDT,
      asks: exactly(ETH, '1.5'),
      promises: exactly(USDT, '4000.5'),
      rate: parseRate(ETH, USDT, '2667'),
      fee: exactly(USDT, '20.0025'),
      feeShare: 50n,
      networkFee: exactly(USDT, '3.2'),
      destination: '0x',
      destinationTag: null,
      callbackUrl: null,
      depositAddress: '0xd',
      depositTag: null,
      requiredConfirmations: 12,
      tolerance: exactly(ETH, '0'),
      slippage: 200n,
    },
    refundAddress: null,
    deposits,
    state: { status: 'PENDING' },
    sequence: 2,
    updatedAtMs: 1_000,
    outflowCount: 0,
    isOutflowCommitted: false,
    failedCosts: nothingFailed({ from: ETH, to: USDT }),
    firstEmergencyAtMs: null,
  }
}

test('an order shows what was quoted until it is exchanged, and then what it came to', () => {
  const order = quoted([])
  const promise = { deposit_amount: '1.5', receive_amount: '4000.5' }
  expect(viewOrder(order, market)).toMatchObject({
    ...promise,
    ...{ receive_final_amount: '4000.5', rate: '2667', fee: '20.0025', network_fee: '3.2' },
  })
  const settlement = {
    received: exactly(ETH, '1.5'),
    paid: exactly(USDT, '3990'),
    rate: parseRate(ETH, USDT, '2660'),
    fee: exactly(USDT, '19.95'),
    networkFee: exactly(USDT, '4.1'),
  }
  const exchanged: Order = {
    ...order,
    state: { status: 'EXCHANGE', settlement, payoutId: 'CB0000000000000001:1' },
  }
  expect(viewOrder(exchanged, market)).toMatchObject({
    ...promise,
    ...{ receive_final_amount: '3990', rate: '2660', fee: '19.95', network_fee: '4.1' },
  })
})

test('what came is cut to what can be shown, and is as deep as its shallowest part', () => {
  const show = (...deposits: readonly Deposit[]) => {
    const { deposit_received: received, deposit_confirmations: depth } = viewOrder(quoted(deposits), market)
    return [received, depth]
  }
  const [half, rest] = [5n * 10n ** 17n, 10n ** 18n - 1n]
  expect(show()).toEqual(['0', 0])
  expect(show(deposit('a', half, 91), deposit('b', rest, 98))).toEqual(['1.49999999', 3])
  expect(show(deposit('b', rest, 100), deposit('a', half, 91))).toEqual(['1.49999999', 1])
  expect(show(deposit('a', half, 80))).toEqual(['0.5', 12])
  expect(show(deposit('a', half, 80), deposit('b', rest, null))).toEqual(['1.49999999', 0])
  const dust: Deposit = { ...deposit('c', 1n, 100), role: 'dust' }
  expect(show(deposit('a', half, 91), dust)).toEqual(['0.5', 10])
})
