import type { OrderStatus } from '@cambist/sdk'
import { expect, test } from 'vitest'
import { balanceOf } from '../harness/amounts.ts'
import {
  bnbToEth,
  btcToUsdt,
  createOrder,
  createUnderpaid,
  ethToUsdc,
  expectPaidOut,
  expectRefunded,
  payAndBury,
  quickPair,
  statusesOf,
  usdcToBnb,
  usdtToBtc,
} from '../harness/orders.ts'
import { type NetworkName, type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: every row of the specification's table of states and transitions (section 3), with its other effects, on every
 * kind of pair.
 * How: a real bitcoind, two real anvils, the real service, the published client; a block comes when the test says so.
 */
const given = useTestSandbox()

const pairs = [
  ['BTC to USDT on ERC20, fixed', btcToUsdt, 'fixed'],
  ['BTC to USDT on ERC20, float', btcToUsdt, 'float'],
  ['USDT on BEP20 to BTC, fixed', usdtToBtc, 'fixed'],
  ['USDT on BEP20 to BTC, float', usdtToBtc, 'float'],
  ['ETH to USDC on BEP20, fixed', ethToUsdc, 'fixed'],
  ['USDC on ERC20 to BNB, float', usdcToBnb, 'float'],
  ['BNB to ETH, fixed', bnbToEth, 'fixed'],
  ['USDT on ERC20 to USDC on BEP20, float', quickPair, 'float'],
] as const

test.each(pairs)('%s goes from NEW to DONE, each state with its effects', async (_name, pair, rateType) => {
  const sandbox = given()
  const { client, log } = sandbox

  log('(none) → NEW: a deposit address and an expiry are assigned')
  const created = await createOrder(sandbox, pair, { rate_type: rateType })
  expect(created.status).toBe('NEW')
  expect(created.deposit_address).not.toBe('')
  const openForSeconds = (Date.parse(created.expires_at) - Date.parse(created.created_at)) / 1_000
  expect(openForSeconds).toBeGreaterThan(14.5 * 60)
  expect(openForSeconds).toBeLessThanOrEqual(15 * 60)
  const fresh = await client.getOrder(created.order_id)
  expect(fresh).toMatchObject({
    status: 'NEW',
    deposit_received: 0,
    deposit_confirmations: 0,
    deposit_tx_hash: null,
    withdraw_tx_hash: null,
    completed_at: null,
    receive_final_amount: created.receive_amount,
  })

  log('NEW → PENDING: seen in the mempool; the hash of the deposit is available')
  const depositHash = await sandbox.remote.pay(created.order_id)
  const pending = await sandbox.waitForStatus(created.order_id, 'PENDING')
  expect(pending).toMatchObject({
    deposit_tx_hash: depositHash,
    deposit_received: created.deposit_amount,
    deposit_confirmations: 0,
    withdraw_tx_hash: null,
  })

  log('PENDING stays PENDING one confirmation short of what is required')
  const network = created.deposit_network as NetworkName
  const required = pending.deposit_required_confirmations
  expect(required).toBe(network === 'BTC' ? 3 : 12)
  await sandbox.mine(network, required - 1)
  await sandbox.eventually('all but one confirmation are shown', async () => {
    expect((await client.getOrder(created.order_id)).deposit_confirmations).toBe(required - 1)
  })
  await sandbox.settle()
  expect((await client.getOrder(created.order_id)).status).toBe('PENDING')

  log('PENDING → EXCHANGE → WITHDRAW: the payout is broadcast, its hash available')
  await sandbox.mine(network, 1)
  const sent = await sandbox.waitForStatus(created.order_id, 'WITHDRAW')
  expect(sent.deposit_confirmations).toBe(required)
  expect(sent.withdraw_tx_hash).toMatch(/^(0x)?[0-9a-f]{64}$/)
  expect(sent.completed_at).toBeNull()

  log('WITHDRAW → DONE: confirmed on the chain, to the unit; completed_at is set')
  const done = await expectPaidOut(sandbox, created)
  expect(done.withdraw_tx_hash).toBe(sent.withdraw_tx_hash)
  expect(Date.parse(done.completed_at ?? '')).toBeGreaterThanOrEqual(Date.parse(created.created_at))
  // Float moves with the network's cost even while prices stand still.
  const tolerated = rateType === 'fixed' ? 0 : created.receive_amount * 0.02
  expect(Math.abs(done.receive_final_amount - created.receive_amount)).toBeLessThanOrEqual(tolerated)
  expect(await statusesOf(sandbox, created.order_id)).toEqual([
    'NEW',
    'PENDING',
    'EXCHANGE',
    'WITHDRAW',
    'DONE',
  ])
})

const payouts = [
  ['BTC', 'BTC', usdtToBtc, 3],
  ['ETH', 'ETH', bnbToEth, 12],
  ['BEP20', 'USDC', quickPair, 12],
] as const

test.each(payouts)(
  'a payout on %s stays WITHDRAW until it is as deep as a deposit has to be',
  async (network, currency, pair, required) => {
    const sandbox = given()
    const order = await createOrder(sandbox, pair)
    await payAndBury(sandbox, order)
    await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
    await sandbox.mine(network, 1)
    await sandbox.eventually('the payout is in a block', async () => {
      expect(await balanceOf(sandbox, order.destination, currency, network)).toBeGreaterThan(0n)
    })
    expect(await statusAtHead(sandbox, order.order_id)).toBe('WITHDRAW')
    await sandbox.mine(network, required - 2)
    expect(await statusAtHead(sandbox, order.order_id)).toBe('WITHDRAW')
    await sandbox.mine(network, 1)
    await sandbox.waitForStatus(order.order_id, 'DONE')
  },
)

/** How the order stands once its payout was looked at in the newest block: either it has ended, or it waits for a later one. */
async function statusAtHead(sandbox: TestSandbox, orderId: string): Promise<OrderStatus> {
  await sandbox.settle()
  await sandbox.eventually('the payout was looked at', async () => {
    const waiting = await sandbox.rows(
      `SELECT 1 FROM outflows f JOIN chain_heads h USING (chain) WHERE f.order_id = $1 AND f.state IN ('signed', 'broadcast')
         AND (f.due_height IS NULL OR f.due_height <= h.height)`,
      [orderId],
    )
    expect(waiting).toEqual([])
  })
  return (await sandbox.client.getOrder(orderId)).status
}

test('NEW → EXPIRED when no payment came before expires_at, and not before', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  await sandbox.remote.advanceClock(10 * 60)
  await sandbox.settle()
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('NEW')
  await sandbox.remote.advanceClock(5 * 60 + 1)
  const expired = await sandbox.waitForStatus(order.order_id, 'EXPIRED')
  expect(expired).toMatchObject({ deposit_tx_hash: null, withdraw_tx_hash: null, completed_at: null })
  expect(await statusesOf(sandbox, order.order_id)).toEqual(['NEW', 'EXPIRED'])
})

test('EMERGENCY → EXCHANGE by continue: it proceeds with the adjusted amount', async () => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, quickPair, 500)
  const result = await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'continue' })
  expect(result).toMatchObject({ order_id: stuck.order_id, status: 'EXCHANGE' })
  expect(result.message).not.toBe('')
  expect(Date.parse(result.updated_at)).toBeGreaterThan(Date.parse(stuck.created_at))
  const done = await expectPaidOut(sandbox, stuck)
  expect(done.receive_final_amount).toBe(stuck.emergency?.options.continue?.receive_amount)
  expect(await statusesOf(sandbox, stuck.order_id)).toEqual([
    'NEW',
    'PENDING',
    'EMERGENCY',
    'EXCHANGE',
    'WITHDRAW',
    'DONE',
  ])
})

test('EMERGENCY → EXCHANGE by recalculate: the current rate on what was received', async () => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, ethToUsdc, '0.1')
  const result = await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'recalculate' })
  expect(result.status).toBe('EXCHANGE')
  const done = await expectPaidOut(sandbox, stuck)
  expect(done.receive_final_amount).toBe(stuck.emergency?.options.recalculate?.receive_amount)
})

test('EMERGENCY → REFUND → REFUNDED by refund: the deposit goes back', async () => {
  const sandbox = given()
  const refundAddress = await sandbox.remote.freshAddress('BTC')
  const stuck = await createUnderpaid(sandbox, btcToUsdt, '0.01', { refund_address: refundAddress })
  const result = await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'refund' })
  expect(result.status).toBe('REFUND')
  const refunded = await expectRefunded(sandbox, stuck)
  expect(refunded.refund).toMatchObject({ address: refundAddress, currency: 'BTC', network: 'BTC' })
  expect(refunded.completed_at).not.toBeNull()
  expect(refunded.withdraw_tx_hash).toBeNull()
  expect(await balanceOf(sandbox, stuck.destination, 'USDT', 'ERC20')).toBe(0n)
  expect(await statusesOf(sandbox, stuck.order_id)).toEqual([
    'NEW',
    'PENDING',
    'EMERGENCY',
    'REFUND',
    'REFUNDED',
  ])
})
