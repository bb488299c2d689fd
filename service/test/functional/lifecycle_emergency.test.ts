import type { CambistError, EmergencyResult, Order } from '@cambist/sdk'
import { expect, test } from 'vitest'
import { balanceOf, chainUnits } from '../harness/amounts.ts'
import {
  bnbToEth,
  bookedFor,
  btcToUsdt,
  createOrder,
  createUnderpaid,
  depositsOf,
  ethToUsdc,
  expectPaidOut,
  expectRefunded,
  payAndBury,
  quickPair,
  statusesOf,
  usdcToBnb,
} from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: an order in EMERGENCY says why and what each action would pay; the chosen one pays exactly that, and only one
 * wins.
 * How: real under- and overpayments; what is paid or returned is read from the blocks at the destination.
 */
const given = useTestSandbox()

test('continue pays what was received at the locked rate, although prices have moved', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, ethToUsdc, { amount: '1' })
  await sandbox.remote.changePrice('ETH', 10)
  await payAndBury(sandbox, order, '0.5')
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['UNDERPAID'])
  const { options } = stuck.emergency ?? raise()
  expect(options.continue?.rate).toBe(order.rate)
  expect(options.continue?.receive_amount).toBeCloseTo(order.rate * 0.5, 5)
  sandbox.log('recalculating would bring the ten percent')
  expect(
    (options.recalculate?.receive_amount ?? 0) / (options.continue?.receive_amount ?? 1),
  ).toBeGreaterThan(1.09)
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(options.continue?.receive_amount)
  expect(done.rate).toBe(order.rate)
  await sandbox.remote.changePrice('ETH', -9.0909)
})

test('recalculate pays what was received at the rate of the moment', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, bnbToEth, { amount: '2' })
  await payAndBury(sandbox, order, '3')
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['OVERPAID'])
  sandbox.log('the offer follows the price until it is chosen')
  await sandbox.remote.changePrice('BNB', -20)
  const after = await sandbox.client.getOrder(order.order_id)
  const before = stuck.emergency?.options.recalculate?.receive_amount ?? 0
  const now = after.emergency?.options.recalculate?.receive_amount ?? 0
  expect(now / before).toBeCloseTo(0.8, 2)
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'recalculate' })
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(now)
  await sandbox.remote.changePrice('BNB', 25)
})

test('a float order continues at the current rate', async () => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, usdcToBnb, 600, { rate_type: 'float' })
  const { options } = stuck.emergency ?? raise()
  expect(options.continue).toEqual(options.recalculate)
  await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'continue' })
  const done = await expectPaidOut(sandbox, stuck)
  expect(done.receive_final_amount).toBe(options.continue?.receive_amount)
})

test('a top-up that completes the amount resumes the order, at the rate that was locked', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair, { amount: '1000' })
  await payAndBury(sandbox, order, '400.5')
  await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  await sandbox.remote.pay(order.order_id, '599.5')
  await sandbox.eventually('both deposits are shown', async () => {
    expect((await sandbox.client.getOrder(order.order_id)).deposit_received).toBe(1000)
  })
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('EMERGENCY')
  await sandbox.bury('ERC20')
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(order.receive_amount)
  expect(await statusesOf(sandbox, order.order_id)).toEqual([
    'NEW',
    'PENDING',
    'EMERGENCY',
    'EXCHANGE',
    'WITHDRAW',
    'DONE',
  ])
})

test('a top-up that does not complete it changes the offers; one that is too much turns the reason round', async () => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, quickPair, 300, { amount: '1000' })
  await payAndBury(sandbox, stuck, 200)
  await sandbox.eventually('the offer is for 500', async () => {
    const { emergency } = await sandbox.client.getOrder(stuck.order_id)
    expect(emergency?.reasons).toEqual(['UNDERPAID'])
    expect(emergency?.options.continue?.receive_amount).toBeCloseTo(500 * stuck.rate, 4)
  })
  await payAndBury(sandbox, stuck, 501)
  await sandbox.eventually('it is overpaid now', async () => {
    expect((await sandbox.client.getOrder(stuck.order_id)).emergency?.reasons).toEqual(['OVERPAID'])
  })
  await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'continue' })
  await expectPaidOut(sandbox, stuck)
})

test('a top-up still on its way when the customer chooses is unclaimed, not part of the choice', async () => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, quickPair, 300, { amount: '1000' })
  await sandbox.remote.pay(stuck.order_id, 700)
  await sandbox.eventually('the top-up is seen', async () => {
    expect((await sandbox.client.getOrder(stuck.order_id)).deposit_received).toBe(1000)
  })
  await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'continue' })
  await sandbox.bury('ERC20')
  const done = await expectPaidOut(sandbox, stuck)
  expect(done.receive_final_amount).toBe(stuck.emergency?.options.continue?.receive_amount)
  // On another chain than the payout, which does not wait for it.
  await sandbox.eventually('the top-up is unclaimed', async () => {
    expect(await bookedFor(sandbox, stuck.order_id, 'unclaimed', 'USDT:ERC20')).toBe(-700n * 10n ** 18n)
  })
  const roles = (await depositsOf(sandbox, stuck.order_id)).map(({ role }) => role)
  expect(roles.sort()).toEqual(['counted', 'extra'])
})

test('a refund goes to the address given at creation', async () => {
  const sandbox = given()
  const refundAddress = await sandbox.remote.freshAddress('ERC20')
  const stuck = await createUnderpaid(sandbox, quickPair, 300, { refund_address: refundAddress })
  const offer = stuck.emergency?.options.refund ?? raise()
  expect(offer.has_refund_address).toBe(true)
  expect(offer.refund_amount + offer.network_fee).toBeCloseTo(300, 6)
  await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'refund' })
  const refunded = await expectRefunded(sandbox, stuck)
  expect(refunded.refund).toMatchObject({ address: refundAddress, amount: offer.refund_amount })
})

test('a refund goes to the address given with the action, also when there was another one', async () => {
  const sandbox = given()
  const [first, second] = [await sandbox.remote.freshAddress('BTC'), await sandbox.remote.freshAddress('BTC')]
  const stuck = await createUnderpaid(sandbox, btcToUsdt, '0.01', { refund_address: first })
  const result = await sandbox.client.chooseEmergencyAction(stuck.order_id, {
    action: 'refund',
    refund_address: second,
  })
  expect(result.status).toBe('REFUND')
  const refunded = await expectRefunded(sandbox, stuck)
  expect(refunded.refund?.address).toBe(second)
  expect(refunded.refund_address).toBe(second)
  expect(await balanceOf(sandbox, first, 'BTC', 'BTC')).toBe(0n)
})

test('a refund without any address is REFUND_ADDRESS_REQUIRED, with a wrong one INVALID_ADDRESS', async () => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, ethToUsdc, '0.1')
  expect(stuck.emergency?.options.refund?.has_refund_address).toBe(false)
  const choose = (refund_address?: string, action: 'refund' | 'continue' = 'refund') =>
    sandbox.client.chooseEmergencyAction(stuck.order_id, { action, refund_address })
  await expect(choose()).rejects.toMatchObject({ code: 'REFUND_ADDRESS_REQUIRED', status: 400 })
  const bitcoinAddress = await sandbox.remote.freshAddress('BTC')
  await expect(choose(bitcoinAddress)).rejects.toMatchObject({ code: 'INVALID_ADDRESS', status: 400 })
  sandbox.log('who gives one with another action may mean a refund')
  await expect(choose(bitcoinAddress, 'continue')).rejects.toMatchObject({ code: 'INVALID_ADDRESS' })
  expect((await sandbox.client.getOrder(stuck.order_id)).status).toBe('EMERGENCY')
  await choose(await sandbox.remote.freshAddress('ETH'))
  await expectRefunded(sandbox, stuck)
})

test('what is too little to be exchanged or sent back offers neither, and says so', async () => {
  const sandbox = given()
  sandbox.log('0.00002 BTC counts, and is less than any payout')
  const stuck = await createUnderpaid(sandbox, btcToUsdt, '0.00002', {
    refund_address: await sandbox.remote.freshAddress('BTC'),
  })
  expect(stuck.emergency?.options.refund).toBeNull()
  const refund = sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'refund' })
  await expect(refund).rejects.toMatchObject({ code: 'INVALID_ACTION', status: 400 })
  expect(await sandbox.client.getOrder(stuck.order_id)).toMatchObject({
    status: 'EMERGENCY',
    deposit_received: 0.00002,
  })
})

test('an action outside EMERGENCY is NOT_EMERGENCY in every state', async () => {
  const sandbox = given()
  const { client } = sandbox
  const order = await createOrder(sandbox, quickPair)
  const expectRefused = async (state: string) => {
    expect((await client.getOrder(order.order_id)).status).toBe(state)
    for (const action of ['continue', 'recalculate', 'refund'] as const) {
      const refund_address = action === 'refund' ? order.destination : undefined
      await expect(
        client.chooseEmergencyAction(order.order_id, { action, refund_address }),
      ).rejects.toMatchObject({ code: 'NOT_EMERGENCY', status: 409 })
    }
  }
  await expectRefused('NEW')
  await sandbox.remote.pay(order.order_id)
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  await expectRefused('PENDING')
  await sandbox.bury('ERC20')
  await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  await expectRefused('WITHDRAW')
  await expectPaidOut(sandbox, order)
  await expectRefused('DONE')
})

test('of twenty actions at once one wins, and the money goes one way', async () => {
  const sandbox = given()
  const refundAddress = await sandbox.remote.freshAddress('ERC20')
  const stuck = await createUnderpaid(sandbox, quickPair, 300, { refund_address: refundAddress })
  const actions = ['continue', 'refund', 'recalculate', 'refund'] as const
  const answers = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) =>
      sandbox.client.chooseEmergencyAction(stuck.order_id, { action: actions[index % 4] ?? 'continue' }),
    ),
  )
  const won = answers.filter(
    (answer): answer is PromiseFulfilledResult<EmergencyResult> => answer.status === 'fulfilled',
  )
  const lost = answers.filter((answer): answer is PromiseRejectedResult => answer.status === 'rejected')
  expect(won).toHaveLength(1)
  expect(new Set(lost.map(({ reason }) => (reason as CambistError).code))).toEqual(new Set(['NOT_EMERGENCY']))
  const isRefund = won[0]?.value.status === 'REFUND'
  const end: Order = isRefund ? await expectRefunded(sandbox, stuck) : await expectPaidOut(sandbox, stuck)
  const paidOut = await balanceOf(sandbox, stuck.destination, 'USDC', 'BEP20')
  const returned = await balanceOf(sandbox, refundAddress, 'USDT', 'ERC20')
  expect(paidOut).toBe(isRefund ? 0n : chainUnits(end.receive_final_amount, 'USDC', 'BEP20'))
  expect(returned).toBe(isRefund ? chainUnits(end.refund?.amount ?? 0, 'USDT', 'ERC20') : 0n)
})

test('the same action sent again under its key is answered again and acts once', async () => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, quickPair, 300)
  const choose = () =>
    sandbox.client.chooseEmergencyAction(
      stuck.order_id,
      { action: 'continue' },
      { idempotencyKey: `again-${stuck.short_id}` },
    )
  const answers = await Promise.all([choose(), choose(), choose()])
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
  await expectPaidOut(sandbox, stuck)
  expect(await choose()).toEqual(answers[0])
})

test('money that comes for a refunded order is unclaimed', async () => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, quickPair, 300, {
    refund_address: await sandbox.remote.freshAddress('ERC20'),
  })
  await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'refund' })
  await expectRefunded(sandbox, stuck)
  await payAndBury(sandbox, stuck, 50)
  await sandbox.eventually('it is booked as unclaimed', async () => {
    expect(await bookedFor(sandbox, stuck.order_id, 'unclaimed', 'USDT:ERC20')).toBe(-50n * 10n ** 18n)
  })
  expect((await sandbox.client.getOrder(stuck.order_id)).status).toBe('REFUNDED')
})

function raise(): never {
  throw new Error('an order in EMERGENCY says what can be done')
}
