import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import type { Outflow } from '../../domain/payouts/intent.ts'
import { hexOf } from './address.ts'
import { wordOf } from './balance.ts'
import { bid, estimatePayout } from './bid.ts'
import { blocksOf } from './blocks.ts'
import { blockAt, type Script, scriptedNode } from './testing/scripted_node.ts'

const reserve = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'
const payee = 'TZ4UXDV5ZhNW7fb2AMSbgfAEZ7hWsnYS2g'
const tether = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'
const neverPaid = `41${'c0de'.repeat(10)}`
const payout: Outflow = {
  payoutId: 'CB1:1',
  kind: 'payout',
  asset: 'USDT:TRC20',
  units: 7n * 10n ** 18n,
  address: payee,
  tag: null,
}
const sweep: Outflow = {
  ...{ ...payout, kind: 'sweep', address: reserve },
  from: { key: { purpose: 'deposit', index: 3 }, address: payee },
}

const MAIN_ENERGY = { stored: 64_285, anew: 130_285 }

/** The main network as its USDT is now: dear for whoever never had any. */
function bidderAt(feeLimitSunMax: bigint, heldSun = 10 ** 9, energy = MAIN_ENERGY, more: Script = {}) {
  const rpc = scriptedNode({
    'wallet/getchainparameters': () => ({
      chainParameter: [
        { key: 'getTransactionFee', value: 1_000 },
        { key: 'getEnergyFee', value: 100 },
        { key: 'getCreateNewAccountFeeInSystemContract', value: 1_000_000 },
        { key: 'getCreateAccountFee', value: 100_000 },
      ],
    }),
    'wallet/getaccountnet': () => ({ freeNetLimit: 600, freeNetUsed: 600 }),
    'wallet/getaccount': ({ address }) => ({ address, balance: heldSun }),
    'wallet/getblock': () => blockAt(50, 150_000),
    'walletsolidity/getblock': () => blockAt(31, 93_000),
    'wallet/triggerconstantcontract': ({ data }) => {
      const isTransfer = String(data).startsWith('a9059cbb')
      const energy_used = String(data).includes(wordOf(neverPaid)) ? energy.anew : energy.stored
      const word = (isTransfer ? 0 : 10 ** 12).toString(16).padStart(64, '0')
      return { result: { result: true }, energy_used, constant_result: [word] }
    },
    ...more,
  })
  return {
    rpc,
    blocks: blocksOf(rpc),
    feeLimitSunMax,
    reserveAddress: () => reserve,
    contractOf: (asset: AssetId) => (asset === 'TRX:TRX' ? null : hexOf(tether)),
  }
}

async function limitOf(outflow: Outflow, capTrx: bigint) {
  const made = await bid(bidderAt(capTrx * 1_000_000n), outflow)
  assert(made.ok && made.value.family === 'tron', 'it can be paid')
  return made.value.feeLimitSun
}

test('a payout is still paid when its payee has sent away everything before it is in a block', async () => {
  expect(await limitOf(payout, 60n)).toBe(16_285_600n)
  expect(await limitOf(payout, 15n)).toBeGreaterThanOrEqual(130_285n * 100n)
})

test('a cap below that is obeyed, and holds back nothing that can be paid now', async () => {
  expect(await limitOf(payout, 10n)).toBe(10_000_000n)
  expect(await bid(bidderAt(6_000_000n), payout)).toMatchObject({ ok: false, rejection: { code: 'fee_cap' } })
})

test('the reserve has what a payout may cost at most', async () => {
  const needed = 16_285_600 + 400_000
  expect(await bid(bidderAt(60_000_000n, needed), payout)).toMatchObject({ ok: true })
  const short = await bid(bidderAt(60_000_000n, needed - 1), payout)
  expect(short).toMatchObject({ ok: false, rejection: { code: 'funds' } })
})

test.each([
  ['whoever is refused alone is no destination', payout, [payee], 'destination'],
  ['who pays for all who are refused waits', payout, [payee, reserve], 'network'],
  ['a sweep that is refused waits', sweep, [reserve], 'network'],
])('of a token that refuses, %s', async (_, outflow, refused, code) => {
  const { rpc, ...others } = bidderAt(60_000_000n)
  const refusing: typeof rpc = {
    ...rpc,
    post: async (path, asked) => {
      const data = String((asked as { data?: unknown }).data)
      const isRefused = refused.some((each) => data.startsWith(`a9059cbb${wordOf(hexOf(each))}`))
      return isRefused ? { result: { result: true, message: 'REVERT' } } : rpc.post(path, asked)
    },
  }
  const bidder = { ...others, rpc: refusing }
  expect(await bid(bidder, outflow)).toMatchObject({ ok: false, rejection: { code } })
})

test('a sweep brings no gas for a reserve that others would have emptied', async () => {
  expect(await limitOf(sweep, 60n)).toBe(8_428_500n)
})

test('a token that asks less of whoever never had any gets as much as it asks now', async () => {
  const made = await bid(bidderAt(60_000_000n, 10 ** 9, { stored: 64_285, anew: 30_000 }), payout)
  expect(made).toMatchObject({ ok: true, value: { energySun: 6_428_500n, feeLimitSun: 8_428_500n } })
})

test('a quote says that a payout to somebody who never had any is above the cap where a bid is refused by it', async () => {
  const judge = async (capSun: bigint) => {
    const bidder = bidderAt(capSun, 10 ** 9, { stored: MAIN_ENERGY.anew, anew: MAIN_ENERGY.anew })
    const [answer, estimate] = [await bid(bidder, payout), await estimatePayout(bidder, 'USDT:TRC20')]
    return [answer.ok ? 'bid' : answer.rejection.code, estimate.isAboveFeeCap]
  }
  expect(await judge(13_028_500n)).toEqual(['bid', false])
  expect(await judge(13_028_499n)).toEqual(['fee_cap', true])
  expect(await estimatePayout(bidderAt(1n), 'TRX:TRX'), 'no energy').toMatchObject({ isAboveFeeCap: false })
})

test('energy that nobody can say is above no cap', async () => {
  const refuses = () => ({
    result: { result: true, message: 'REVERT' },
    energy_used: 1,
    constant_result: [''],
  })
  const bidder = bidderAt(1n, 0, MAIN_ENERGY, { 'wallet/triggerconstantcontract': refuses })
  expect(await estimatePayout(bidder, 'USDT:TRC20')).toMatchObject({ isAboveFeeCap: false })
})
