import { expect, test } from 'vitest'
import { findWrongEnd, type RaceEnd } from './ends.ts'

/**
 * What: the race notices who is paid something else than what his choice comes to, however little.
 * How: 100 USDT for USDC, of which 50 came; the fee is 1 %, a payout costs 0.4, sending back 0.3.
 */
const MICRO = 10n ** 12n

const order: RaceEnd['order'] = {
  receive_currency: 'USDC',
  receive_network: 'BEP20',
  receive_amount: 98.613861,
  fee: 0.986139,
  network_fee: 0.4,
}
const offers: RaceEnd['offers'] = {
  continue: { receive_amount: 49.30693, rate: 0.98613861 },
  recalculate: { receive_amount: 49.108911, rate: 0.98217822 },
  refund: {
    refund_amount: 49.7,
    network_fee: 0.3,
    currency: 'USDT',
    network: 'ERC20',
    has_refund_address: true,
  },
}
const paidIn: RaceEnd['paidIn'] = { currency: 'USDT', network: 'ERC20', amount: 50 }

const recalculated = (amount: number, cost: number): RaceEnd => ({
  ...{ order, offers, paidIn, action: 'recalculate', returned: 0n },
  end: { status: 'DONE', receive_final_amount: amount, network_fee: cost },
  arrived: BigInt(Math.round(amount * 1e6)) * MICRO,
})

const refunded = (amount: number, cost: number): RaceEnd => {
  const refund = {
    address: 'back',
    currency: 'USDT',
    network: 'ERC20',
    tx_hash: 'tx',
    amount,
    network_fee: cost,
  }
  return {
    ...{ order, offers, paidIn, action: 'refund', arrived: 0n },
    end: { status: 'REFUNDED', receive_final_amount: 98.613861, network_fee: 0.4, refund },
    returned: BigInt(Math.round(amount * 1e6)),
  }
}

test('what each choice comes to, also when the network costs something else by then', () => {
  expect(findWrongEnd(recalculated(49.108911, 0.4))).toEqual([])
  expect(findWrongEnd(recalculated(49.20792, 0.3))).toEqual([])
  expect(findWrongEnd(refunded(49.7, 0.3))).toEqual([])
  expect(findWrongEnd(refunded(49.8, 0.2))).toEqual([])
  const continued = { ...recalculated(49.30693, 0.4), action: 'continue' } as const
  expect(findWrongEnd(continued)).toEqual([])
})

test('the network costs nothing, or twice, and only the books say so', () => {
  expect(findWrongEnd(recalculated(49.504951, 0.4))).toEqual([
    expect.stringMatching(/^recalculate: arrived /),
  ])
  expect(findWrongEnd(recalculated(48.712871, 0.4))).toEqual([
    expect.stringMatching(/^recalculate: arrived /),
  ])
  expect(findWrongEnd(recalculated(49.504951, 0))).toEqual([
    'recalculate: it cost 0, and 400000000000000000 was said',
  ])
  expect(findWrongEnd(refunded(50, 0))).toEqual(['refund: it cost 0, and 300000 was said'])
  expect(findWrongEnd({ ...refunded(49.7, 0.3), returned: 49_400_000n })).toEqual([
    'refund: returned 49400000, and that is 49700000',
    'refund: returned 49400000, and that is 49700000',
  ])
})

test('it is paid, and something is returned', () => {
  expect(findWrongEnd({ ...recalculated(49.108911, 0.4), returned: 1n })).toEqual([
    'recalculate: returned 1, and that is 0',
  ])
})
