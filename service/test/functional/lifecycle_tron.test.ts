import { expect, test } from 'vitest'
import { balanceOf, chainUnits, send } from '../harness/amounts.ts'
import { attemptsOf, expectRefused } from '../harness/attempts.ts'
import {
  bookedFor,
  createOrder,
  createUnderpaid,
  expectPaidOut,
  expectRefunded,
  type Pair,
  payAndBury,
} from '../harness/orders.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: TRX and USDT on TRC20 come in, go out and come back; where nothing on chain keeps two attempts of a payout
 * apart but time, it is signed again only when the solid chain shows that the first never happens.
 * How: the wire simulator of TRON, whose contracts run on a real EVM; what arrived is asked of it without the service.
 */
const given = useTestSandbox({ networks: ['BTC', 'ETH', 'BNB', 'TRX'] })

const trxToUsdt: Pair = { from: 'TRX', from_network: 'TRX', to: 'USDT', to_network: 'TRC20' }
const usdtToTrx: Pair = { from: 'USDT', from_network: 'TRC20', to: 'TRX', to_network: 'TRX' }
const bnbToTrx: Pair = { from: 'BNB', from_network: 'BNB', to: 'TRX', to_network: 'TRX' }
const bnbToUsdt: Pair = { from: 'BNB', from_network: 'BNB', to: 'USDT', to_network: 'TRC20' }

/** An attempt lives for sixty blocks of three seconds, and is known to be over when so much later is solid. */
const BLOCKS_OF_LIFE = 61
const BLOCKS_TO_BE_OVER = 85

async function infoOf({ devnet }: TestSandbox, txHash: string): Promise<{ readonly id?: string }> {
  const url = `${devnet.networks.TRX?.fullNodeUrl}/wallet/gettransactioninfobyid?value=${txHash}`
  return (await (await fetch(url)).json()) as { id?: string }
}

test('TRX is exchanged for USDT on TRC20, and back', async () => {
  const sandbox = given()
  for (const pair of [trxToUsdt, usdtToTrx]) {
    const order = await createOrder(sandbox, pair)
    expect(order.deposit_address).toMatch(/^T[1-9A-HJ-NP-Za-km-z]{33}$/)
    expect(order.deposit_tag).toBeNull()
    const waiting = await sandbox.client.getOrder(order.order_id)
    expect(waiting.deposit_required_confirmations).toBe(20)
    await payAndBury(sandbox, order)
    await expectPaidOut(sandbox, order)
  }
})

test('a deposit is PENDING as soon as it waits, and is exchanged with its twentieth confirmation', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, trxToUsdt)
  await sandbox.remote.pay(order.order_id)
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  await sandbox.mine('TRX', 19)
  await sandbox.eventually('nineteen are seen', async () => {
    const { deposit_confirmations, status } = await sandbox.client.getOrder(order.order_id)
    expect({ deposit_confirmations, status }).toEqual({ deposit_confirmations: 19, status: 'PENDING' })
  })
  await sandbox.mine('TRX', 1)
  await expectPaidOut(sandbox, order)
})

test.each([
  ['in hex', '4174472e7d35395a6b5add427eecb7f4b62ad2b071'],
  ['of an EVM chain', '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'],
  ['with a wrong letter', 'TMuA6YqfCeX8EhbfYEg5y7S4DqzSJireY8'],
  ['of nobody', 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb'],
])('an order that pays to an address %s is refused', async (_, destination) => {
  for (const pair of [usdtToTrx, trxToUsdt]) {
    const refused = createOrder(given(), pair, { destination })
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_ADDRESS', status: 400 })
  }
})

test('nothing is paid to the contract of a token', async () => {
  const destination = given().devnet.networks.TRX?.tokens.USDT.address ?? ''
  const refused = createOrder(given(), usdtToTrx, { destination })
  await expect(refused).rejects.toMatchObject({ code: 'INVALID_ADDRESS' })
})

test('TRX that a contract would receive is a matter for its customer', async () => {
  const sandbox = given()
  sandbox.expectError('the destination cannot be paid')
  const destination = sandbox.devnet.networks.TRX?.contracts.Payer.address ?? ''
  const order = await createOrder(sandbox, usdtToTrx, { destination })
  await payAndBury(sandbox, order)
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['DESTINATION_PROBLEM'])
  expect(await bookedFor(sandbox, order.order_id, 'payouts_owed', 'TRX:TRX')).toBe(0n)
})

test.each([
  ['TRX', trxToUsdt, '600'],
  ['USDT', usdtToTrx, '300'],
])('too little %s goes back', async (_, pair, amount) => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, pair, amount)
  const refund_address = await sandbox.remote.freshAddress(pair.from_network)
  await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'refund', refund_address })
  await expectRefunded(sandbox, stuck)
})

test.each([
  ['TRX', bnbToTrx],
  ['USDT', bnbToUsdt],
])(
  'a payout of %s that the network accepts and loses is signed again when its time is over, and pays once',
  async (_, pair) => {
    const sandbox = given()
    const order = await createOrder(sandbox, pair)
    sandbox.devnet.trouble('TRX', { submits: ['drop'] })
    await payAndBury(sandbox, order)
    const { withdraw_tx_hash: lost } = await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
    // Lost whenever it is sent, until no block could take it.
    sandbox.devnet.trouble('TRX', { submits: Array.from({ length: 50 }, () => 'drop' as const) })
    sandbox.log('its time runs out where no reorganisation reaches')
    await sandbox.mine('TRX', BLOCKS_OF_LIFE)
    await sandbox.remote.advanceClock(600)
    await sandbox.eventually('the network refuses it, and nothing else is signed', async () => {
      const attempts = await attemptsOf(sandbox, order.order_id)
      expect(attempts).toMatchObject([{ attempt: 1, answer: 'refused' }])
    })
    sandbox.devnet.trouble('TRX', null)
    await sandbox.mine('TRX', BLOCKS_TO_BE_OVER - BLOCKS_OF_LIFE)
    await sandbox.remote.advanceClock(600)
    await sandbox.eventually('another attempt is sent', async () => {
      const { withdraw_tx_hash: sent } = await sandbox.client.getOrder(order.order_id)
      expect(sent).not.toBe(lost)
    })
    await expectPaidOut(sandbox, order)
    expect(await infoOf(sandbox, lost ?? '')).toEqual({})
    expect((await attemptsOf(sandbox, order.order_id)).map(({ attempt }) => attempt)).toEqual([1, 2])
  },
)

test('a payout whose answer is lost is not paid a second time', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, bnbToUsdt)
  sandbox.devnet.trouble('TRX', { submits: ['lose reply'] })
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
  await sandbox.mine('TRX', BLOCKS_TO_BE_OVER)
  await sandbox.settle()
  expect(await attemptsOf(sandbox, order.order_id)).toMatchObject([{ attempt: 1, state: 'confirmed' }])
})

test('a payout that no node takes is given up when all its attempts are over, and the customer is asked', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, bnbToTrx)
  sandbox.devnet.trouble('TRX', {
    submits: Array.from({ length: 500 }, () => ({ failWith: 'CONTRACT_VALIDATE_ERROR' })),
  })
  await payAndBury(sandbox, order)
  await expectRefused(sandbox, order.order_id)
  sandbox.log('half an hour later it is still refused, and might yet be taken')
  await sandbox.remote.advanceClock(31 * 60)
  await sandbox.mine('TRX', BLOCKS_OF_LIFE)
  await sandbox.settle()
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('EXCHANGE')
  await sandbox.mine('TRX', BLOCKS_TO_BE_OVER)
  await sandbox.remote.advanceClock(60)
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['NETWORK_PROBLEM'])
  sandbox.devnet.trouble('TRX', null)
  expect(await balanceOf(sandbox, order.destination, 'TRX', 'TRX')).toBe(0n)
  sandbox.log('the network is well again, and it goes on')
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })
  await expectPaidOut(sandbox, order)
})

test.each([
  ['runs out of energy', 'OUT_OF_ENERGY', 'NETWORK_PROBLEM'],
  ['is refused by its token', 'REVERT', 'DESTINATION_PROBLEM'],
])('a payout that %s in its block is charged and stands in EMERGENCY', async (_, failWith, reason) => {
  const sandbox = given()
  const order = await createOrder(sandbox, bnbToUsdt)
  sandbox.devnet.trouble('TRX', { submits: [{ failWith }] })
  await payAndBury(sandbox, order)
  await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  await sandbox.bury('TRC20')
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual([reason])
  expect(await balanceOf(sandbox, order.destination, 'USDT', 'TRC20')).toBe(0n)
})

test('a deposit that loses its block waits again and counts once', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, trxToUsdt)
  await sandbox.remote.pay(order.order_id)
  await sandbox.mine('TRX', 3)
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  await sandbox.settle()
  await sandbox.devnet.reorg('TRX', 3)
  await sandbox.bury('TRX')
  await expectPaidOut(sandbox, order)
})

test('USDT that reaches the address of an order that waits for TRX is booked, and the order does not count it', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, trxToUsdt)
  const txHash = await send(sandbox, 'TRC20', 'USDT', order.deposit_address, '25')
  await sandbox.bury('TRX')
  await sandbox.eventually('it is booked, and not counted', async () => {
    const found = await sandbox.rows<{ role: string; units: bigint }>(
      'SELECT role, units FROM deposits WHERE tx_hash = $1',
      [txHash],
    )
    expect(found).toEqual([{ role: 'foreign', units: chainUnits('25', 'USDT', 'BEP20') }])
  })
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('NEW')
})

test('ledger and chain are equal', async () => {
  const sandbox = given()
  await sandbox.eventually('they are compared after the last payment', async () => {
    const rows = await sandbox.rows<{ asset: string; difference: bigint; differing_count: number }>(
      `SELECT asset, difference, differing_count FROM reconciliations WHERE asset IN ('TRX:TRX', 'USDT:TRC20')
       ORDER BY asset`,
    )
    expect(rows).toMatchObject([
      { asset: 'TRX:TRX', difference: 0n, differing_count: 0 },
      { asset: 'USDT:TRC20', difference: 0n, differing_count: 0 },
    ])
  })
})
