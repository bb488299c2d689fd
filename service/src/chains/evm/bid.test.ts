import { expect, test } from 'vitest'
import type { Outflow } from '../../domain/payouts/intent.ts'
import { type Bidder, bid, usualPayout } from './bid.ts'
import type { JsonRpc } from './json_rpc.ts'
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

const coin: Outflow = { ...payout, asset: 'ETH:ETH', units: 1_000_000_000_000n }
const hex = (gas: number) => `0x${gas.toString(16)}`

type Estimates = {
  /** Of what is to be paid. */
  readonly asked: number
  /** Of the same to somebody who never had any. */
  readonly anew?: number
  /** What stands at the payee's address. */
  readonly code?: string
}

async function bidUnder(gasLimitMax: bigint, wanted: Outflow, estimates: Estimates) {
  const { asked, anew = asked, code = '0x' } = estimates
  const rpc = scriptedNode({
    ...quiet,
    eth_estimateGas: (call) => {
      const isToPayee = JSON.stringify(call).toLowerCase().includes(wanted.address.slice(2).toLowerCase())
      return hex(isToPayee ? asked : anew)
    },
    eth_getCode: () => code,
  })
  return bid(bidderOver(rpc, gasLimitMax), wanted)
}

function bidderOver(rpc: JsonRpc, gasLimitMax = 600_000n, capWei = 1_000n): Bidder {
  const contractOf = (asset: Outflow['asset']) => (asset === 'ETH:ETH' ? null : USDT)
  return { rpc, capWei, gasLimitMax, reserveAddress: () => reserve, contractOf }
}

async function gasOrCode(...args: Parameters<typeof bidUnder>) {
  const priced = await bidUnder(...args)
  if (!priced.ok) return priced.rejection.code
  return priced.value.family === 'evm' ? priced.value.gasLimit : priced.value.family
}

/** Of 40,000 gas, which is bid with 25,000 more. */
test.each([
  ['a payout', payout],
  ['a sweep', sweep],
])('%s that takes more gas than the signer signs waits, and is bid at the cap', async (_what, wanted) => {
  expect(await gasOrCode(64_999n, wanted, { asked: 40_000 })).toBe('fee_cap')
  expect(await gasOrCode(65_000n, wanted, { asked: 40_000 })).toBe(65_000n)
})

test('a recipient that burns more than anybody should is at fault, whatever the cap', async () => {
  for (const gasLimitMax of [21_000n, 300_000n, 30_000_000n]) {
    expect(await gasOrCode(gasLimitMax, payout, { asked: 490_000 }), `${gasLimitMax}`).toBe('destination')
  }
})

test('a sweep that takes more than anything should waits, because nobody but us is at fault', async () => {
  expect(await gasOrCode(30_000_000n, sweep, { asked: 480_000 })).toBe(600_000n)
  expect(await gasOrCode(30_000_000n, sweep, { asked: 480_001 })).toBe('network')
})

test.each([
  ['a payout', payout, 'destination'],
  ['a sweep', sweep, 'network'],
])('%s to which the token answers false is refused', async (_what, wanted, code) => {
  const refuses = (call: unknown) => word(JSON.stringify(call).includes('70a08231') ? 10n ** 12n : 0n)
  const rpc = scriptedNode({ ...quiet, eth_estimateGas: () => hex(40_000), eth_call: refuses })
  expect(await bid(bidderOver(rpc), wanted)).toMatchObject({ ok: false, rejection: { code } })
})

test('the reserve has what a payout of coin moves and the gas beside it', async () => {
  const needed = coin.units + 21_000n * 33n
  const bidWith = (held: bigint) => {
    const eth_getBalance = () => `0x${held.toString(16)}`
    const node = { ...quiet, eth_getBalance, eth_estimateGas: () => hex(21_000), eth_getCode: () => '0x' }
    return bid(bidderOver(scriptedNode(node)), coin)
  }
  expect(await bidWith(needed)).toMatchObject({ ok: true })
  expect(await bidWith(needed - 1n)).toMatchObject({ rejection: { code: 'funds' } })
})

test('coin for a contract that makes use of our gas is refused where a token of as much gas is not', async () => {
  const code = '0x6000'
  expect(await gasOrCode(300_000n, coin, { asked: 55_000, code })).toBe(80_000n)
  expect(await gasOrCode(300_000n, coin, { asked: 70_000, code })).toBe('destination')
  expect(await gasOrCode(300_000n, payout, { asked: 70_000, code })).toBe(95_000n)
})

// With EIP-8037 a new account takes 183,600 gas, a new balance of a token 97,920.
test('coin for an address that the network has to make an account of is paid what that takes', async () => {
  expect(await gasOrCode(600_000n, coin, { asked: 204_600 })).toBe(255_750n)
})

test('a token has the gas to be stored anew, should its payee have sent all away meanwhile', async () => {
  expect(await gasOrCode(600_000n, payout, { asked: 45_000, anew: 143_000 })).toBe(178_750n)
  expect(await gasOrCode(600_000n, payout, { asked: 45_000, anew: 20_000 })).toBe(70_000n)
})

test('a sweep says what bringing its gas takes, and coin goes to a reserve that is no account yet', async () => {
  // A token is asked of its contract, and the coin that is brought of the deposit address.
  const estimate = (call: unknown) => hex((call as { to: string }).to === USDT ? 45_000 : 204_600)
  const rpc = scriptedNode({ ...quiet, eth_estimateGas: estimate })
  expect(await bid(bidderOver(rpc), sweep)).toMatchObject({
    value: { gasLimit: 70_000n, bringingGas: 255_750n },
  })
  const coinSweep = { ...sweep, asset: 'ETH:ETH', units: coin.units } as const
  expect(await bid(bidderOver(rpc), coinSweep)).toMatchObject({ value: { gasLimit: 204_600n } })
  const capped = await bid(bidderOver(rpc, 204_599n), coinSweep)
  expect(capped).toMatchObject({ ok: false, rejection: { code: 'fee_cap' } })
})

test('where there is no coin to be brought, it is said to take what a plain transfer does', async () => {
  const rpc = scriptedNode({
    ...quiet,
    eth_estimateGas: (call) =>
      (call as { to: string }).to === USDT
        ? hex(45_000)
        : refusal(-32_000, 'insufficient funds for transfer'),
  })
  expect(await bid(bidderOver(rpc), sweep)).toMatchObject({ value: { bringingGas: 21_000n } })
})

test('a quote charges what somebody takes who never had any, and what was usual where that cannot be asked', async () => {
  const gasOf = async (asset: Outflow['asset'], estimate: () => unknown) => {
    const bidder = bidderOver(scriptedNode({ ...quiet, eth_estimateGas: estimate }))
    return (await usualPayout(bidder, asset, { baseWei: 0n, tipWei: 1n })).wei
  }
  expect(await gasOf('ETH:ETH', () => hex(21_000))).toBe(21_000n)
  expect(await gasOf('ETH:ETH', () => hex(204_600))).toBe(255_750n)
  expect(await gasOf('ETH:ETH', hasNoFunds)).toBe(21_000n)
  expect(await gasOf('USDT:ERC20', () => hex(62_000))).toBe(90_000n)
  expect(await gasOf('USDT:ERC20', () => hex(143_000))).toBe(178_750n)
  expect(await gasOf('USDT:ERC20', hasNoFunds)).toBe(90_000n)
})

const hasNoFunds = () => refusal(-32_000, 'insufficient funds for transfer')

test.each(['ETH:ETH', 'USDT:ERC20'] as const)(
  'a quote of %s says that its payout is above a cap where a bid is refused by it',
  async (asset) => {
    const judge = async (gasLimitMax: bigint, capWei: bigint) => {
      const rpc = scriptedNode({
        ...quiet,
        eth_estimateGas: () => hex(143_000),
        eth_getCode: () => '0x',
      })
      const bidder = bidderOver(rpc, gasLimitMax, capWei)
      const answer = await bid(bidder, asset === 'ETH:ETH' ? coin : payout)
      const { isAboveFeeCap } = await usualPayout(bidder, asset, { baseWei: 16n, tipWei: 1n })
      return [answer.ok ? 'bid' : answer.rejection.code, isAboveFeeCap]
    }
    expect(await judge(178_750n, 17n)).toEqual(['bid', false])
    expect(await judge(178_750n, 16n)).toEqual(['fee_cap', true])
    expect(await judge(178_749n, 17n)).toEqual(['fee_cap', true])
  },
)

test('gas that nobody can say is above no cap', async () => {
  const bidder = bidderOver(scriptedNode({ ...quiet, eth_estimateGas: hasNoFunds }), 21_000n)
  expect(await usualPayout(bidder, 'USDT:ERC20', { baseWei: 16n, tipWei: 1n })).toMatchObject({
    isAboveFeeCap: false,
  })
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
  const rpc = scriptedNode({ ...quiet, eth_estimateGas: refuses, eth_getCode: () => '0x' })
  expect(await bid(bidderOver(rpc), coin)).toMatchObject({ ok: false, rejection: { code: fault } })
})
