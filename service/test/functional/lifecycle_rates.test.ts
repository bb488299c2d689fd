import { expect, test } from 'vitest'
import {
  bnbToEth,
  btcToUsdt,
  createOrder,
  depositsOf,
  ethToUsdc,
  expectPaidOut,
  expectRefunded,
  payAndBury,
  quickPair,
  statusesOf,
} from '../harness/orders.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: which rate an order gets when prices move, and what becomes of it when time runs out.
 * How: the sandbox moves prices and the clock that orders live by; chains and payments are real.
 */
const given = useTestSandbox()

test('fixed keeps the locked rate, whichever way prices move', async () => {
  const sandbox = given()
  const [rising, falling] = [await createOrder(sandbox, ethToUsdc), await createOrder(sandbox, bnbToEth)]
  await sandbox.remote.changePrice('ETH', 30)
  await payAndBury(sandbox, rising)
  await payAndBury(sandbox, falling)
  for (const order of [rising, falling]) {
    const done = await expectPaidOut(sandbox, order)
    expect(done).toMatchObject({ receive_final_amount: order.receive_amount, rate: order.rate })
  }
  await sandbox.remote.setPrice('ETH', 3000)
})

test.each([
  ['down by 1.9 %', -1.9],
  ['up by 5 %', 5],
])('float goes %s: it pays the rate of the moment', async (_name, percent) => {
  const sandbox = given()
  await sandbox.remote.setPrice('BNB', 600)
  const order = await createOrder(sandbox, bnbToEth, { rate_type: 'float', amount: '10' })
  await sandbox.remote.changePrice('BNB', percent)
  await payAndBury(sandbox, order)
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_amount).toBe(order.receive_amount)
  expect(done.receive_final_amount / order.receive_amount).toBeCloseTo(1 + percent / 100, 3)
})

test('float that slips by more than 2 % asks the customer first, who may continue', async () => {
  const sandbox = given()
  await sandbox.remote.setPrice('BNB', 600)
  const order = await createOrder(sandbox, bnbToEth, { rate_type: 'float', amount: '10' })
  await sandbox.remote.changePrice('BNB', -2.1)
  await payAndBury(sandbox, order)
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['RATE_SLIPPAGE'])
  const offered = stuck.emergency?.options.continue?.receive_amount ?? 0
  expect(offered / order.receive_amount).toBeCloseTo(0.979, 3)
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(offered)
  expect(await statusesOf(sandbox, order.order_id)).toEqual([
    'NEW',
    'PENDING',
    'EXCHANGE',
    'EMERGENCY',
    'EXCHANGE',
    'WITHDRAW',
    'DONE',
  ])
  await sandbox.remote.setPrice('BNB', 600)
})

test('float that slipped may be refunded instead', async () => {
  const sandbox = given()
  await sandbox.remote.setPrice('BNB', 600)
  const order = await createOrder(sandbox, bnbToEth, { rate_type: 'float', amount: '10' })
  await sandbox.remote.changePrice('BNB', -5)
  await payAndBury(sandbox, order)
  await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  const refund_address = await sandbox.remote.freshAddress('BNB')
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'refund', refund_address })
  const refunded = await expectRefunded(sandbox, order)
  expect(refunded.refund?.amount).toBeGreaterThan(9.99)
  await sandbox.remote.setPrice('BNB', 600)
})

test('a deposit seen before the expiry counts, although it confirms long after', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  await advanceUntilLeft(sandbox, order.expires_at, 300)
  await sandbox.remote.pay(order.order_id)
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  await sandbox.mine('BTC', 1)
  await sandbox.eventually('it is in a block', async () => {
    expect((await sandbox.client.getOrder(order.order_id)).deposit_confirmations).toBe(1)
  })
  await sandbox.remote.advanceClock(3 * 60 * 60)
  await sandbox.settle()
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('PENDING')
  await sandbox.bury('BTC')
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(order.receive_amount)
})

test('a deposit that lies in the mempool for an hour longer is late for a fixed rate, and not for a float one', async () => {
  const sandbox = given()
  const fixed = await createOrder(sandbox, btcToUsdt)
  const float = await createOrder(sandbox, btcToUsdt, { rate_type: 'float' })
  for (const { order_id } of [fixed, float]) {
    await sandbox.remote.pay(order_id)
    await sandbox.waitForStatus(order_id, 'PENDING')
  }
  await advanceUntilLeft(sandbox, fixed.expires_at, -3_660)
  await sandbox.bury('BTC')
  const late = await sandbox.waitForStatus(fixed.order_id, 'EMERGENCY')
  expect(late.emergency?.reasons).toEqual(['LATE_DEPOSIT'])
  await expectPaidOut(sandbox, float)
})

test('half a payment waits for the other half in a mempool until an hour after expiry, and not for ever', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt, { rate_type: 'float', amount: '0.02' })
  const first = await sandbox.remote.pay(order.order_id, 0.01)
  await sandbox.remote.pay(order.order_id, 0.01)
  const { rpc } = sandbox.devnet.bitcoin
  const to = await sandbox.remote.freshAddress('BTC')
  for (const transactions of [[first], [], []]) await rpc('generateblock', [to, transactions])
  await sandbox.eventually('the first half is deep', async () => {
    const states = (await depositsOf(sandbox, order.order_id)).map(({ state }) => state)
    expect(states.toSorted()).toEqual(['confirmed', 'seen'])
  })
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('PENDING')
  await advanceUntilLeft(sandbox, order.expires_at, -3_605)
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['UNDERPAID'])
  sandbox.log('the customer waits, and the other half comes after all')
  await sandbox.bury('BTC')
  await expectPaidOut(sandbox, order)
  expect(await statusesOf(sandbox, order.order_id)).toEqual([
    'NEW',
    'PENDING',
    'EMERGENCY',
    'EXCHANGE',
    'WITHDRAW',
    'DONE',
  ])
})

test('an expired order that is paid shows the deposit, and asks when it has confirmed', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  await advanceUntilLeft(sandbox, order.expires_at, -1)
  await sandbox.waitForStatus(order.order_id, 'EXPIRED')
  const txHash = await sandbox.remote.pay(order.order_id)
  await sandbox.mine('BTC', 2)
  await sandbox.eventually('the late deposit shows', async () => {
    expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({
      status: 'EXPIRED',
      deposit_tx_hash: txHash,
      deposit_received: order.deposit_amount,
      deposit_confirmations: 2,
    })
  })
  await sandbox.mine('BTC', 1)
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['LATE_DEPOSIT'])
  sandbox.log('nothing is locked any more: both ways on are at the current rate')
  expect(stuck.emergency?.options.continue).toEqual(stuck.emergency?.options.recalculate)
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'recalculate' })
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(stuck.emergency?.options.recalculate?.receive_amount)
})

test('a late deposit gets the current rate also in a fixed order whose price fell', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, ethToUsdc, { amount: '1' })
  await advanceUntilLeft(sandbox, order.expires_at, -1)
  await sandbox.waitForStatus(order.order_id, 'EXPIRED')
  await sandbox.remote.changePrice('ETH', -50)
  await payAndBury(sandbox, order)
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  const offered = stuck.emergency?.options.continue?.receive_amount ?? 0
  expect(offered / order.receive_amount).toBeCloseTo(0.5, 2)
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })
  expect((await expectPaidOut(sandbox, order)).receive_final_amount).toBe(offered)
  await sandbox.remote.setPrice('ETH', 3000)
})

test('a deposit in time and a late one that completes it: late, and neither under- nor overpaid', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair, { amount: '1000' })
  await sandbox.remote.pay(order.order_id, 400)
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  // A block tells its time in whole seconds.
  await advanceUntilLeft(sandbox, order.expires_at, -5)
  await sandbox.remote.pay(order.order_id, 600)
  await sandbox.bury('ERC20')
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['LATE_DEPOSIT'])
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })
  await expectPaidOut(sandbox, order)
})

test('a late deposit that is also too small has both reasons', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair, { amount: '1000' })
  await advanceUntilLeft(sandbox, order.expires_at, -1)
  await sandbox.waitForStatus(order.order_id, 'EXPIRED')
  await payAndBury(sandbox, order, 999)
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect([...(stuck.emergency?.reasons ?? [])].sort()).toEqual(['LATE_DEPOSIT', 'UNDERPAID'])
  sandbox.log('a late order is refunded like any other')
  const refund_address = await sandbox.remote.freshAddress('ERC20')
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'refund', refund_address })
  await expectRefunded(sandbox, order)
})

/** Moves the clock so that this many seconds are left; less than none: so long past. */
async function advanceUntilLeft(sandbox: TestSandbox, expiresAt: string, seconds: number): Promise<void> {
  const nowMs = sandbox.service.world.clock.nowMs()
  await sandbox.remote.advanceClock(Math.floor((Date.parse(expiresAt) - nowMs) / 1_000) - seconds)
}
