import { expect, test } from 'vitest'
import type { Chain } from '../chains/chain.ts'
import { amountOf } from '../domain/money/amount.ts'
import { parseRate } from '../domain/money/rate.ts'
import { compareToAsked, type Deposit, type Order, receivedSoFar } from '../domain/orders/order.ts'
import { exactly, newOrder } from '../domain/orders/testing/story.ts'
import { howPaid } from '../domain/orders/what_to_send.ts'
import { accept, refuse } from '../domain/outcome.ts'
import type { MarketBoard } from './market.ts'
import { viewOrder } from './view.ts'
import type { Chains } from './world.ts'

/**
 * What: the figures of an order as its client sees them.
 * How: a float order of ether for USDT that was exchanged at another rate than it was quoted; block 100 is the last.
 */
const ETH = 'ETH:ETH'
const USDT = 'USDT:ERC20'
const market = { headHeight: () => 100 } as unknown as MarketBoard
const world = { market, chains: new Map() }

function deposit(key: string, wei: bigint, height: number | null): Deposit {
  return {
    ...{ key, txHash: `0x${key}`, amount: amountOf(ETH, wei), seenAtMs: 1, role: 'counted', isLate: false },
    ...(height === null ? { state: 'seen', block: null } : { state: 'mined', block: { height, hash: 'h' } }),
  }
}

function quoted(deposits: readonly Deposit[]): Order {
  const order = newOrder({ pair: { from: ETH, to: USDT, asks: '1.5' }, rateType: 'float' })
  const terms = {
    ...order.terms,
    promises: exactly(USDT, '4000.5'),
    rate: parseRate(ETH, USDT, '2667'),
    fee: exactly(USDT, '20.0025'),
    networkFee: exactly(USDT, '3.2'),
  }
  return { ...order, terms, deposits, state: { status: 'PENDING' } }
}

test('an order shows what was quoted until it is exchanged, and then what it came to', () => {
  const order = quoted([])
  const promise = { deposit_amount: '1.5', receive_amount: '4000.5' }
  expect(viewOrder(order, world)).toMatchObject({
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
  expect(viewOrder(exchanged, world)).toMatchObject({
    ...promise,
    ...{ receive_final_amount: '3990', rate: '2660', fee: '19.95', network_fee: '4.1' },
  })
})

test('the account is shown with a tag, and only where a tag is and its chain can read the address', () => {
  const order = quoted([])
  let reads = 0
  const chain = {
    parseAddress: (text: string) =>
      text.startsWith('X') ? accept(text) : refuse({ code: 'no', message: 'no' }),
    accountOf: (text: string) => {
      reads += 1
      return `r of ${text}`
    },
  } as unknown as Chain
  const accountOf = (depositAddress: string, depositTag: string | null, chains = new Map([['ETH', chain]])) =>
    viewOrder(
      { ...order, terms: { ...order.terms, depositAddress, depositTag } },
      { market, chains: chains as Chains },
    ).deposit_account
  expect([accountOf('X1', '1'), accountOf('X2', '2'), accountOf('X1', '1')]).toEqual([
    'r of X1',
    'r of X2',
    'r of X1',
  ])
  expect(reads, 'an address is read once').toBe(2)
  expect(accountOf('T1', '1'), 'of another network').toBeUndefined()
  expect(accountOf('X1', '1', new Map()), 'configured no more').toBeUndefined()
  expect(accountOf('X3', null)).toBeUndefined()
  expect(reads).toBe(2)
})

test('what came is cut to what can be shown, and is as deep as its shallowest part', () => {
  const show = (...deposits: readonly Deposit[]) => {
    const { deposit_received: received, deposit_confirmations: depth } = viewOrder(quoted(deposits), world)
    return [received, depth]
  }
  const [half, rest] = [5n * 10n ** 17n, 10n ** 18n - 1n]
  expect(show()).toEqual(['0', 0])
  expect(show(deposit('a', half, 91), deposit('b', rest, 98))).toEqual(['1.49999999', 3])
  expect(show(deposit('b', rest, 100), deposit('a', half, 91))).toEqual(['1.49999999', 1])
  expect(show(deposit('a', half, 80), deposit('b', rest, null))).toEqual(['1.49999999', 0])
  const dust: Deposit = { ...deposit('c', 1n, 100), role: 'dust' }
  expect(show(deposit('a', half, 91), dust)).toEqual(['0.5', 10])
})

test('pages and mails take for exact what the order does, with a tolerance of every digit or none', () => {
  const words = { under: 'less', exact: 'exact', over: 'more' }
  for (const tolerance of [0n, 1n, 15n * 10n ** 14n, 15n * 10n ** 15n + 1n]) {
    for (const wei of [-15n * 10n ** 15n, -15n * 10n ** 14n, -1n, 0n, 1n, 10n ** 10n, 16n * 10n ** 14n]) {
      for (const more of [-1n, 0n, 1n]) {
        const order = quoted([deposit('a', 15n * 10n ** 17n + wei + more, 90)])
        const tolerant = { ...order, terms: { ...order.terms, tolerance: amountOf(ETH, tolerance) } }
        const compared = compareToAsked(tolerant, receivedSoFar(tolerant))
        expect(howPaid(viewOrder(tolerant, world)), `${tolerance} ${wei + more}`).toBe(words[compared])
      }
    }
  }
  expect(viewOrder(quoted([]), world)).not.toHaveProperty('deposit_tolerance')
})

test('pages and mails know that some of what counts came too late', () => {
  const whole = deposit('a', 15n * 10n ** 17n, 90)
  const isLate = (late: Partial<Deposit>) =>
    viewOrder(quoted([whole, { ...deposit('b', 1n, 98), isLate: true, ...late }]), world).is_deposit_late
  expect(isLate({})).toBe(true)
  for (const late of [{ isLate: false }, { role: 'dust' }, { state: 'vanished' }] as const)
    expect(isLate(late)).toBeUndefined()
})

test('the full count is shown of what is confirmed, and never of what may still go', () => {
  const show = (required: number, ...deposits: readonly Deposit[]) => {
    const order = quoted(deposits)
    const terms = { ...order.terms, requiredConfirmations: required }
    return viewOrder({ ...order, terms }, world).deposit_confirmations
  }
  const confirmed: Deposit = { ...deposit('a', 1n, 98), state: 'confirmed' }
  expect(show(12, deposit('a', 1n, 90)), 'eleven blocks').toBe(11)
  // Deep enough by its depth, and its network has not said yet that it is final.
  expect(show(12, deposit('a', 1n, 89))).toBe(11)
  expect(show(12, deposit('a', 1n, 50))).toBe(11)
  expect(show(12, confirmed)).toBe(12)
  expect(show(12, confirmed, deposit('b', 1n, 50))).toBe(11)
  expect(show(1, deposit('a', 1n, 50))).toBe(0)
  expect(show(1, confirmed)).toBe(1)
})

test('a refund shows no more than goes back, no less than it costs, and its hash as that of no payout', () => {
  const refund = {
    amount: amountOf(ETH, 10n ** 18n + 19_999_999_999n),
    networkFee: amountOf(ETH, 10n ** 10n + 1n),
    address: '0xback',
  }
  const state = { refund, payoutId: 'CB0000000000000001:1', txHash: '0xaa' } as const
  const shown = {
    refund: {
      address: '0xback',
      amount: '1.00000001',
      currency: 'ETH',
      network: 'ETH',
      network_fee: '0.00000002',
      tx_hash: '0xaa',
    },
    withdraw_tx_hash: null,
  }
  const order = quoted([])
  const sent = viewOrder({ ...order, state: { ...state, status: 'REFUND' } }, world)
  expect(sent).toMatchObject({ ...shown, completed_at: null })
  const ended = viewOrder(
    { ...order, updatedAtMs: 9, state: { ...state, status: 'REFUNDED', completedAtMs: 7 } },
    world,
  )
  expect(ended).toMatchObject({ ...shown, completed_at: 7, updated_at: 9 })
})
