import { expect, test } from 'vitest'
import { assetOf } from '../domain/catalog/assets.ts'
import { amountOf, toPrecision } from '../domain/money/amount.ts'
import { rateBetween } from '../domain/money/rate.ts'
import { lockHeldSinceMs } from '../domain/orders/lock_held.ts'
import { nothingFailed, type Order } from '../domain/orders/order.ts'
import { refuse } from '../domain/outcome.ts'
import { midRate } from '../domain/quotes/quote.ts'
import { emergencyOffers, whyNotNow } from './emergency_offers.ts'
import { type MarketBoard, noPrice } from './market.ts'

/**
 * What: which rate `continue` offers to a fixed order that was paid wrongly, and who pays for attempts that failed.
 * How: an order of 0.1 BTC locked at 60,000 while the market has come to stand at 50,000; a board that says so.
 */
const BTC = assetOf('BTC:BTC')
const USDT = assetOf('USDT:ERC20')
const btc = (satoshi: bigint) => amountOf(BTC.id, satoshi)
const usdt = (whole: bigint) => amountOf(USDT.id, whole * 10n ** 18n)
const LOCKED = rateBetween(btc(10_000_000n), usdt(6_000n), 'up')

function paid(satoshi: bigint, rateType: 'fixed' | 'float' = 'fixed'): Order {
  const deposit = {
    key: 'BTC:a:0',
    txHash: 'a',
    amount: btc(satoshi),
    seenAtMs: 1,
    role: 'counted' as const,
    isLate: false,
    state: 'confirmed' as const,
    block: { height: 1, hash: 'b' },
  }
  return {
    terms: {
      id: 'CB0000000000000001',
      accountId: 'acc_test0000',
      createdAtMs: 0,
      expiresAtMs: 900_000,
      rateType,
      from: BTC.id,
      to: USDT.id,
      asks: btc(10_000_000n),
      promises: usdt(6_000n),
      rate: LOCKED,
      fee: usdt(60n),
      feeShare: 100n,
      networkFee: usdt(5n),
      destination: '0x',
      destinationTag: null,
      callbackUrl: null,
      depositAddress: 'bcrt1',
      depositTag: null,
      requiredConfirmations: 3,
      tolerance: btc(0n),
      slippage: 200n,
    },
    refundAddress: null,
    deposits: [deposit],
    state: { status: 'EMERGENCY', reasons: ['UNDERPAID'] },
    sequence: 3,
    updatedAtMs: 1_000,
    outflowCount: 0,
    isOutflowCommitted: false,
    failedCosts: nothingFailed({ from: BTC.id, to: USDT.id }),
    firstEmergencyAtMs: 500_000,
  }
}

/** Nobody knows any price: not what an exchange would bring, and not what a network's cost is in a token. */
const withoutPrices: MarketBoard = { ...board(false, false), read: () => refuse(noPrice) }

/** A unit of ether is worth as much as one of anything, for whoever knows. */
function board(lockOffered: boolean, knowsEther = true, reserve = usdt(1_000_000n)): MarketBoard {
  return {
    assets: new Set([BTC.id, USDT.id]),
    refresh: async () => {},
    isChainUp: () => true,
    isOffered: () => true,
    isUsable: () => true,
    isPriced: () => true,
    headHeight: () => 9,
    reserve: () => reserve,
    setAside: (_settlement, _amount, work) => work(),
    payoutCost: ({ id }) => (id === BTC.id ? btc(1_000n) : null),
    costOf: ({ id }, cost) => (knowsEther ? amountOf(id, cost.units) : null),
    isLockHeld: (order) => lockOffered && lockHeldSinceMs(order, 600_000) === 900_000,
    read: (from, to) => ({
      ok: true,
      value: {
        from,
        to,
        mid: midRate(from, to, 50_000n, 1n),
        fee: 0n,
        networkFee: usdt(5n),
        reserve,
      },
    }),
  }
}

test('continue takes the locked rate while it is offered, and the market afterwards', () => {
  const half = paid(5_000_000n)
  expect(emergencyOffers(half, board(true)).continue?.to).toEqual(usdt(3_000n))
  expect(emergencyOffers(half, board(false)).continue?.to).toEqual(usdt(2_495n))
})

test('who paid rightly has the locked rate for an hour after he was first asked', () => {
  const asked = paid(10_000_000n)
  const stuck: Order = { ...asked, state: { status: 'EMERGENCY', reasons: ['NETWORK_PROBLEM'] } }
  const hourSince = (sinceMs: number): MarketBoard => ({
    ...board(false),
    isLockHeld: (order) => lockHeldSinceMs(order, 6_000_000) === sinceMs,
  })
  const locked = (order: Order, sinceMs: number) => {
    return emergencyOffers(order, hourSince(sinceMs)).continue?.to.units === usdt(6_000n).units
  }
  expect(locked({ ...stuck, firstEmergencyAtMs: 5_000_000 }, 5_000_000)).toBe(true)
  expect(locked({ ...stuck, firstEmergencyAtMs: 500_000 }, 900_000), 'never less than after expiry').toBe(
    true,
  )
  expect(locked({ ...stuck, firstEmergencyAtMs: null }, 900_000), 'nobody knows since when').toBe(true)
  for (const other of ['UNDERPAID', 'OVERPAID', 'DESTINATION_PROBLEM'] as const) {
    const state = { status: 'EMERGENCY', reasons: ['NETWORK_PROBLEM', other] } as const
    expect(locked({ ...stuck, state, firstEmergencyAtMs: 5_000_000 }, 900_000), other).toBe(true)
  }
})

test('a late deposit takes the market, though the rate is still offered to others', () => {
  const late: Order = {
    ...paid(10_000_000n),
    state: { status: 'EMERGENCY', reasons: ['LATE_DEPOSIT', 'UNDERPAID'] },
  }
  expect(emergencyOffers(late, board(true)).continue?.to).toEqual(usdt(4_995n))
})

test('a float order has no locked rate to go on at', () => {
  expect(emergencyOffers(paid(5_000_000n, 'float'), board(true)).continue?.to).toEqual(usdt(2_495n))
})

test('what would not pay for its own payout is not offered at the lock either', () => {
  // 0.0001 BTC: six dollars at the lock, but five at the market, and the payout costs five.
  const crumb = paid(10_000n)
  expect(emergencyOffers(crumb, board(true)).continue).toBeNull()
  expect(emergencyOffers(crumb, board(true)).recalculate).toBeNull()
})

test('what too little was received for is told from what nobody knows', () => {
  const nothing = { continue: null, recalculate: null, refund: null }
  const crumb = paid(1_500n)
  expect(emergencyOffers(crumb, board(true))).toEqual({ ...nothing, areKnown: true })
  expect(emergencyOffers(crumb, withoutPrices)).toEqual({ ...nothing, areKnown: false })
  const noCost: MarketBoard = { ...board(true), payoutCost: () => null }
  expect(emergencyOffers(crumb, noCost)).toEqual({ ...nothing, areKnown: false })
  // A coin is sent back at its own price, and what the exchange would bring is still missing.
  const offers = emergencyOffers(paid(5_000_000n), withoutPrices)
  expect([offers.refund === null, offers.areKnown]).toEqual([false, false])
  expect(emergencyOffers(paid(5_000_000n), board(true)).areKnown).toBe(true)
})

test('a small part of a large amount pays for its own payout, at the lock as at the market', () => {
  // The lock has the five dollars of a payout in it once, and 0.005 BTC of 0.1 bring a quarter of one; the fee is three.
  const part = paid(500_000n)
  expect(emergencyOffers(part, board(true)).continue?.to).toEqual(usdt(245n))
  // Where the fee covers what is missing, the lock holds: of 0.01 BTC that is six of four and a half.
  expect(emergencyOffers(paid(1_000_000n), board(true)).continue?.to).toEqual(usdt(600n))
})

test('at the locked rate what came is paid, fee and its own part of the network cost, and nothing is left over', () => {
  // 0.1 BTC at 60,650 were 6065 dollars: 6000 of them paid, 60 the fee and 5 the payout's cost.
  const parts = (satoshi: bigint) => {
    const quote = emergencyOffers(paid(satoshi), board(true)).continue
    return quote && [quote.to, quote.fee, quote.networkFee]
  }
  expect(parts(20_000_000n)).toEqual([usdt(12_000n), usdt(120n), usdt(10n)])
  expect(parts(10_000_000n)).toEqual([usdt(6_000n), usdt(60n), usdt(5n)])
  expect(parts(2_000_000n)).toEqual([usdt(1_200n), usdt(12n), usdt(1n)])
  const units = parts(20_000_000n)?.reduce((sum, amount) => sum + amount.units, 0n)
  expect(units).toBe(usdt(60_650n / 5n).units)
})

test('what failed attempts cost is taken off every offer', () => {
  const failed = { payouts: amountOf('ETH:ETH', usdt(20n).units), refunds: btc(2_000n) }
  const half: Order = { ...paid(5_000_000n), failedCosts: failed }
  const twoThousand = amountOf(USDT.id, btc(2_000n).units).units
  const { continue: locked, recalculate, refund } = emergencyOffers(half, board(true))
  const bornOf = (units: bigint) => amountOf(USDT.id, usdt(units).units - usdt(20n).units - twoThousand)
  expect(locked?.to).toEqual(toPrecision(bornOf(3_000n), 'down'))
  expect(recalculate?.to).toEqual(toPrecision(bornOf(2_495n), 'down'))
  const unfailed = emergencyOffers(paid(5_000_000n), board(true))
  expect(locked && locked.networkFee.units - (unfailed.continue?.networkFee.units ?? 0n)).toBe(
    usdt(20n).units + twoThousand,
  )
  expect(refund).toBeNull()
})

test('a refund pays for the payouts and refunds that failed before it', () => {
  const failed = { payouts: amountOf('ETH:ETH', 30_000n), refunds: btc(2_000n) }
  const { refund } = emergencyOffers({ ...paid(5_000_000n), failedCosts: failed }, board(true))
  expect(refund).toEqual({ amount: btc(4_967_000n), networkFee: btc(33_000n) })
})

test('a refund is rounded down to what can be shown, and what is left over is of its cost', () => {
  const { terms, deposits, ...rest } = paid(0n, 'float')
  const ether = (wei: bigint) => amountOf('ETH:ETH', wei)
  const refundOf = (received: bigint, cost: bigint) => {
    const order: Order = {
      ...rest,
      terms: { ...terms, from: 'ETH:ETH', asks: ether(10n ** 18n), tolerance: ether(0n) },
      deposits: deposits.map((deposit) => ({ ...deposit, amount: ether(received) })),
      failedCosts: nothingFailed({ from: 'ETH:ETH', to: USDT.id }),
    }
    const market = { ...board(true), payoutCost: () => ether(cost), read: () => refuse(noPrice) }
    return emergencyOffers(order, market).refund
  }
  const step = 10n ** 10n
  expect(refundOf(10n ** 18n + step - 1n, 5n * step)).toEqual({
    amount: ether(10n ** 18n - 5n * step),
    networkFee: ether(6n * step - 1n),
  })
  // The least that is paid out is paid back as well, and no less.
  const { minPayout } = assetOf('ETH:ETH')
  expect(refundOf(minPayout + 5n * step, 5n * step)?.amount).toEqual(ether(minPayout))
  expect(refundOf(minPayout + 5n * step - 1n, 5n * step)).toBeNull()
})

test('who lets payouts fail until nothing is left is offered nothing any more', () => {
  const failed = { payouts: amountOf('ETH:ETH', usdt(3_000n).units), refunds: btc(0n) }
  const {
    continue: locked,
    recalculate,
    refund,
  } = emergencyOffers({ ...paid(5_000_000n), failedCosts: failed }, board(true))
  expect([locked, recalculate, refund]).toEqual([null, null, null])
})

test('while nobody knows what failed attempts have cost, nothing is offered', () => {
  const failed = { payouts: amountOf('ETH:ETH', 1n), refunds: btc(0n) }
  const offers = emergencyOffers({ ...paid(5_000_000n), failedCosts: failed }, board(true, false))
  expect(offers).toEqual({ continue: null, recalculate: null, refund: null, areKnown: false })
})

test('what the reserve does not cover is not offered, at the lock or at the market, and passes', () => {
  // 0.05 BTC are 3000 at the lock, and 2495 at the market.
  const half = paid(5_000_000n)
  const offered = (reserve: bigint) => {
    const { continue: locked, recalculate } = emergencyOffers(half, board(true, true, usdt(reserve)))
    return [locked?.to, recalculate?.to]
  }
  expect(offered(3_000n)).toEqual([usdt(3_000n), usdt(2_495n)])
  expect(offered(2_999n)).toEqual([undefined, usdt(2_495n)])
  expect(offered(2_494n)).toEqual([undefined, undefined])

  const poor = board(true, true, usdt(2_494n))
  const tooLow = { code: 'MAINTENANCE', message: expect.stringContaining('the reserve of USDT on ERC20') }
  expect(whyNotNow(half, 'continue', poor)).toEqual(tooLow)
  expect(whyNotNow(half, 'recalculate', poor)).toEqual(tooLow)
  expect(whyNotNow(half, 'recalculate', board(true, true, usdt(2_495n)))).toBeNull()
  expect(whyNotNow(paid(10_000n), 'continue', poor), 'too little was received').toBeNull()
  expect(emergencyOffers(half, poor)).toMatchObject({ refund: expect.anything(), areKnown: false })
})

test('without a market the locked rate is offered as long as the reserve covers it', () => {
  const half = paid(5_000_000n)
  const silent = (reserve: bigint) => ({ ...board(true, true, usdt(reserve)), read: () => refuse(noPrice) })
  expect(emergencyOffers(half, silent(3_000n)).continue?.to).toEqual(usdt(3_000n))
  expect(emergencyOffers(half, silent(2_999n)).continue).toBeNull()
  expect(whyNotNow(half, 'continue', silent(2_999n))).toMatchObject({ code: 'MAINTENANCE' })
  expect(whyNotNow(half, 'recalculate', silent(3_000n))).toBe(noPrice)
})

test('more than can be asked for is exchanged at the market, and not at the lock', () => {
  // The lock says 60,000 for each, and the market 50,000.
  const most = BTC.maxAmount
  const { continue: locked } = emergencyOffers(paid(most), board(true))
  expect(locked?.to).toEqual(usdt(600_000n))
  const { continue: offered, recalculate } = emergencyOffers(paid(most + 1_000_000n), board(true))
  expect(offered?.to).toEqual(usdt(500_495n))
  expect(recalculate).toEqual(offered)
  const tolerant = paid(most + 1_000_000n)
  const terms = { ...tolerant.terms, tolerance: btc(1_000_000n) }
  expect(emergencyOffers({ ...tolerant, terms }, board(true)).continue?.to).toEqual(usdt(600_600n))
})
