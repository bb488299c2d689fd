import { expect, test } from 'vitest'
import type { Outflow } from '../../domain/payouts/intent.ts'
import { bid, estimatePayout } from './fees.ts'
import { refusing, type Script, scriptedRpc, silent } from './testing/scripted_rpc.ts'

const settings = {
  id: 'BTC',
  rpcUrl: 'http://127.0.0.1/',
  network: 'regtest',
  milliSatPerVbMax: 100_000n,
  feeSatoshiMax: 500_000n,
  milliSatPerVbFallback: 5_000n,
  timeoutMs: 1_000,
} as const
const outflow: Outflow = {
  payoutId: 'CB1:1',
  kind: 'payout',
  asset: 'BTC:BTC',
  units: 50_000n,
  address: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
  tag: null,
}
const quiet = { getmempoolinfo: () => ({ mempoolminfee: '0.00001000', minrelaytxfee: '0.00001000' }) }
const estimates = (feerate: string) => ({ estimatesmartfee: () => ({ feerate, blocks: 2 }) })
const hasNoData = {
  estimatesmartfee: () => ({ errors: ['Insufficient data or no feerate found'], blocks: 0 }),
}

function bidding(script: Script, wanted: Outflow = outflow) {
  return bid(scriptedRpc(script), settings, wanted)
}

test.each<[string, Script, bigint]>([
  ["the node's estimate", { ...quiet, ...estimates('0.00012345') }, 12_345n],
  ['the fallback while there is none', { ...quiet, ...hasNoData }, 5_000n],
  [
    'the fallback where estimates are off',
    { ...quiet, estimatesmartfee: refusing(-32603, 'Fee estimation disabled') },
    5_000n,
  ],
  [
    'what the mempool asks at least',
    {
      ...estimates('0.00001000'),
      getmempoolinfo: () => ({ mempoolminfee: '0.00020000', minrelaytxfee: '0.00001000' }),
    },
    20_000n,
  ],
  [
    'what is relayed at least',
    {
      ...estimates('0.00000100'),
      getmempoolinfo: () => ({ mempoolminfee: '0.00000100', minrelaytxfee: '0.00001000' }),
    },
    1_000n,
  ],
  ['the cap itself', { ...quiet, ...estimates('0.00100000') }, 100_000n],
])('the bid is %s', async (_, script, milliSatPerVb) => {
  expect(await bidding(script)).toEqual({ ok: true, value: { family: 'bitcoin', milliSatPerVb } })
})

test('above the cap nothing is bid, and a payout is estimated at the cap and said to be above it', async () => {
  const dear = { ...quiet, ...estimates('0.00100001') }
  expect(await bidding(dear)).toMatchObject({ ok: false, rejection: { code: 'fee_cap' } })
  const atCap = await estimatePayout(
    scriptedRpc({ ...quiet, ...estimates('0.00100000') }),
    settings,
    'BTC:BTC',
  )
  expect(atCap.isAboveFeeCap).toBe(false)
  const above = await estimatePayout(scriptedRpc(dear), settings, 'BTC:BTC')
  expect(above).toEqual({ ...atCap, isAboveFeeCap: true })
})

test('a quote never asks for more than one transaction may cost, and what takes more is above the cap', async () => {
  const node = scriptedRpc({ ...quiet, ...estimates('0.00100000') })
  const { cost } = await estimatePayout(node, settings, 'BTC:BTC')
  const within = (feeSatoshiMax: bigint) => estimatePayout(node, { ...settings, feeSatoshiMax }, 'BTC:BTC')
  expect(cost.units).toBeGreaterThan(20_000n)
  expect(await within(cost.units)).toMatchObject({ cost, isAboveFeeCap: false })
  const less = cost.units - 1n
  expect(await within(less)).toMatchObject({ cost: { ...cost, units: less }, isAboveFeeCap: true })
})

test('a node that does not answer is the network, a bad address the destination', async () => {
  expect(await bidding({ estimatesmartfee: silent })).toMatchObject({ rejection: { code: 'network' } })
  expect(await bidding({ ...quiet, ...hasNoData, getmempoolinfo: () => ({}) })).toMatchObject({
    rejection: { code: 'network' },
  })
  expect(await bidding({}, { ...outflow, address: 'nowhere' })).toMatchObject({
    rejection: { code: 'destination' },
  })
  expect(await bidding({}, { ...outflow, units: 100n })).toMatchObject({ rejection: { code: 'destination' } })
})
