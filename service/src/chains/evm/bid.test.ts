import { expect, test } from 'vitest'
import type { Outflow } from '../../domain/payouts/intent.ts'
import { bid } from './bid.ts'
import { refusal, type Script, scriptedNode } from './testing/scripted_node.ts'

const USDT = '0xdAC17F958D2ee523a2206206994597C13D831ec7'
const to = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const reserve = '0x000000000000000000000000000000000000dEaD'
const payout: Outflow = {
  payoutId: 'CB0000000000000000:1',
  kind: 'payout',
  asset: 'USDT:ERC20',
  units: 1_500_000_000_000_000_000n,
  address: to,
  tag: null,
}
const sweep: Outflow = {
  ...payout,
  kind: 'sweep',
  address: reserve,
  from: { key: { purpose: 'deposit', index: 3 }, address: to },
}
const word = (units: bigint) => `0x${units.toString(16).padStart(64, '0')}`
const quiet: Script = {
  eth_getBlockByNumber: () => ({
    number: '0x1',
    hash: `0x${'b'.repeat(64)}`,
    parentHash: `0x${'a'.repeat(64)}`,
    timestamp: '0x65000000',
    baseFeePerGas: '0x10',
    transactions: [],
  }),
  eth_maxPriorityFeePerGas: () => '0x1',
  eth_gasPrice: () => '0x11',
  eth_getBalance: () => `0x${(10n ** 18n).toString(16)}`,
  // What the token answers both to a balance and to a transfer: much, and true.
  eth_call: (call) => word(JSON.stringify(call).includes('70a08231') ? 10n ** 12n : 1n),
}

/** Of 40,000 gas, which is bid with 25,000 more. */
async function bidUnder(gasLimitMax: bigint, wanted: Outflow, estimate = 40_000) {
  const rpc = scriptedNode({ ...quiet, eth_estimateGas: () => `0x${estimate.toString(16)}` })
  const contractOf = (asset: Outflow['asset']) => (asset === 'ETH:ETH' ? null : USDT)
  const priced = await bid(
    { rpc, capWei: 1_000n, gasLimitMax, reserveAddress: () => reserve, contractOf },
    wanted,
  )
  if (!priced.ok) return priced.rejection.code
  return priced.value.family === 'evm' ? priced.value.gasLimit : priced.value.family
}

test.each([
  ['a payout', payout],
  ['a sweep', sweep],
])('%s that takes more gas than the signer signs waits, and is bid at the cap', async (_what, wanted) => {
  expect(await bidUnder(64_999n, wanted)).toBe('fee_cap')
  expect(await bidUnder(65_000n, wanted)).toBe(65_000n)
})

test('a recipient that burns more than anybody should is at fault, whatever the cap', async () => {
  for (const gasLimitMax of [21_000n, 300_000n, 30_000_000n]) {
    expect(await bidUnder(gasLimitMax, payout, 290_000), `${gasLimitMax}`).toBe('destination')
  }
})

test('coin for a contract that makes use of our gas is refused where a token of as much gas is not', async () => {
  const coin: Outflow = { ...payout, asset: 'ETH:ETH', units: 1_000_000_000_000n }
  expect(await bidUnder(300_000n, coin, 55_000)).toBe(80_000n)
  expect(await bidUnder(300_000n, coin, 70_000)).toBe('destination')
  expect(await bidUnder(300_000n, payout, 70_000)).toBe(95_000n)
})

test.each([
  [3, 'execution reverted: insufficient funds', 'destination'],
  [-32_000, 'execution reverted: insufficient funds', 'destination'],
  [-32_000, 'invalid jump destination', 'destination'],
  [-32_000, 'return data out of bounds', 'destination'],
  [-32_000, 'write protection', 'destination'],
  [-32_000, 'err: insufficient funds for gas * price + value: address 0x00 have 1 want 2', 'funds'],
  [-32_000, 'Insufficient funds for transfer', 'funds'],
  [-32_000, 'header not found', 'network'],
])('coin that a node (%i) refuses with "%s" is at fault: %s', async (code, message, fault) => {
  const refuses = () => refusal(code, message)
  const rpc = scriptedNode({ ...quiet, eth_estimateGas: refuses })
  const coin: Outflow = { ...payout, asset: 'ETH:ETH', units: 1_000_000_000_000n }
  const bidder = {
    rpc,
    capWei: 1_000n,
    gasLimitMax: 300_000n,
    reserveAddress: () => reserve,
    contractOf: () => null,
  }
  expect(await bid(bidder, coin)).toMatchObject({ ok: false, rejection: { code: fault } })
})
