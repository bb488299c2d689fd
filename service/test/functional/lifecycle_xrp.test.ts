import type { CreatedOrder, Order } from '@cambist/sdk'
import { classicAddressToXAddress, xAddressToClassicAddress } from 'ripple-address-codec'
import { expect, onTestFinished, test } from 'vitest'
import { LEDGERS_TO_LIVE } from '../../src/chains/xrp/bid.ts'
import { connect } from '../../src/chains/xrp/rpc.ts'
import { openOutsider } from '../contract/xrp_driver.ts'
import {
  answersOf,
  bookedFor,
  createOrder,
  createUnderpaid,
  expectPaidOut,
  expectRefunded,
  type Pair,
  payAndBury,
} from '../harness/orders.ts'
import { PATIENCE_MS } from '../harness/patience.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: orders whose deposits all arrive at one account, told apart by tags, and payouts that need a tag.
 * How: the wire simulator of the XRP Ledger, asked without the service what reached whom.
 */
const given = useTestSandbox({ networks: ['BTC', 'ETH', 'BNB', 'XRP'] })

const xrpToUsdt: Pair = { from: 'XRP', from_network: 'XRP', to: 'USDT', to_network: 'BEP20' }
const usdtToXrp: Pair = { from: 'USDT', from_network: 'BEP20', to: 'XRP', to_network: 'XRP' }

type Payment = { readonly Destination: string; readonly DestinationTag?: number; readonly Amount: string }

/** What the ledger says of a transaction. */
async function paymentOf(sandbox: TestSandbox, txHash: string): Promise<Payment> {
  const { rpcUrl } = sandbox.devnet.networks.XRP ?? raise()
  return (await connect(rpcUrl, PATIENCE_MS).call('tx', { transaction: txHash })) as unknown as Payment
}

/** https://xrpl.org/docs/references/protocol/transactions/types/accountset#accountset-flags */
const DEPOSIT_AUTH = 9
const DISALLOW_XRP = 3

function raise(): never {
  throw new Error('it should be there')
}

async function expectTagPaid(
  sandbox: TestSandbox,
  order: Pick<Order, 'order_id' | 'receive_network' | 'receive_currency' | 'destination'>,
  tag: number,
) {
  const done = await expectPaidOut(sandbox, order)
  const { Destination, DestinationTag } = await paymentOf(sandbox, done.withdraw_tx_hash ?? raise())
  expect({ Destination, DestinationTag }).toEqual({ Destination: order.destination, DestinationTag: tag })
}

test('a deposit of XRP is found by the tag inside its address, which is shown as well', async () => {
  const sandbox = given()
  const [one, other] = [await createOrder(sandbox, xrpToUsdt), await createOrder(sandbox, xrpToUsdt)]
  const places = [one, other].map((order) => xAddressToClassicAddress(order.deposit_address))
  expect(places.map((place) => place.classicAddress)).toEqual([one.deposit_account, other.deposit_account])
  expect(one.deposit_account).toBe(other.deposit_account)
  expect(places.map(({ tag }) => String(tag))).toEqual([one.deposit_tag, other.deposit_tag])
  expect(one.deposit_tag).not.toBe(other.deposit_tag)
  const looked = await sandbox.client.getOrder(one.order_id)
  const { deposit_account, deposit_tag } = one
  expect(looked).toMatchObject({ deposit_account, deposit_tag, deposit_required_confirmations: 1 })
  const [first] = await sandbox.rows<{ snapshot: object }>(
    'SELECT snapshot FROM events WHERE order_id = $1',
    [one.order_id],
  )
  expect(first?.snapshot).toMatchObject({ deposit_account, deposit_tag })
  await payAndBury(sandbox, other)
  await expectPaidOut(sandbox, other)
  expect((await sandbox.client.getOrder(one.order_id)).status).toBe('NEW')
  sandbox.log('a wallet that knows no X-addresses is given the account and the tag')
  const drops = BigInt(Math.round(one.deposit_amount * 1e6))
  await sandbox.devnet.send('XRP', 'XRP', deposit_account ?? raise(), drops, 1, deposit_tag ?? raise())
  await sandbox.mine('XRP', 1)
  await expectPaidOut(sandbox, one)
})

test('XRP is paid out to the account and tag, wherever the tag was written', async () => {
  const sandbox = given()
  const account = await sandbox.remote.freshAddress('XRP')
  const beside = await createOrder(sandbox, usdtToXrp, { destination: account, destination_tag: '48213' })
  expect(beside.destination_tag).toBe('48213')
  await payAndBury(sandbox, beside)
  await expectTagPaid(sandbox, beside, 48_213)
  const other = await sandbox.remote.freshAddress('XRP')
  const destination = classicAddressToXAddress(other, 7, true)
  const inside = await createOrder(sandbox, usdtToXrp, { destination })
  expect(inside).toMatchObject({ destination: other, destination_tag: '7' })
  await payAndBury(sandbox, inside)
  await expectTagPaid(sandbox, inside, 7)
})

test.each([
  ['without a tag', {}, 'DESTINATION_TAG_REQUIRED'],
  ['with an empty tag', { destination_tag: '' }, 'DESTINATION_TAG_REQUIRED'],
  ['with a tag that is no number', { destination_tag: 'my memo' }, 'INVALID_ADDRESS'],
  ['with a tag beyond the last one', { destination_tag: '4294967296' }, 'INVALID_ADDRESS'],
  ['to no address', { destination: 'rNobody', destination_tag: '1' }, 'INVALID_ADDRESS'],
  [
    'to a Bitcoin address',
    { destination: '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2', destination_tag: '1' },
    'INVALID_ADDRESS',
  ],
  [
    'to an X-address that carries another tag',
    {
      destination: classicAddressToXAddress('rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe', 7, true),
      destination_tag: '8',
    },
    'INVALID_ADDRESS',
  ],
  [
    'to an X-address of the main network',
    { destination: classicAddressToXAddress('rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe', 7, false) },
    'INVALID_ADDRESS',
  ],
])('an order that pays XRP %s is refused', async (_, more, code) => {
  const refused = createOrder(given(), usdtToXrp, more)
  await expect(refused).rejects.toMatchObject({ code, status: 400 })
})

test("XRP that reaches the account without a tag is nobody's, and is shown to the operator", async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, xrpToUsdt)
  const { txHash } = await sandbox.devnet.send('XRP', 'XRP', order.deposit_account ?? raise(), 5_000_000n)
  await sandbox.mine('XRP', 1)
  await sandbox.eventually('it is booked as unclaimed', async () => {
    const found = await sandbox.rows<{ kind: string; state: string; units: bigint }>(
      'SELECT kind, state, units FROM house_deposits WHERE tx_hash = $1',
      [txHash],
    )
    expect(found).toEqual([{ kind: 'stray', state: 'confirmed', units: 5_000_000n }])
  })
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('NEW')
})

test('too little XRP goes back to the tag that the refund address carries', async () => {
  const sandbox = given()
  const account = await sandbox.remote.freshAddress('XRP')
  const stuck = await createUnderpaid(sandbox, xrpToUsdt, '100')
  await sandbox.client.chooseEmergencyAction(stuck.order_id, {
    action: 'refund',
    refund_address: classicAddressToXAddress(account, 99, true),
  })
  const refunded = await expectRefunded(sandbox, stuck)
  const payment = await paymentOf(sandbox, refunded.refund?.tx_hash ?? raise())
  expect(payment).toMatchObject({ Destination: account, DestinationTag: 99 })
})

test('a payout that the network accepts and loses is signed again once its last ledger is over, and pays once', async () => {
  const sandbox = given()
  const destination = await sandbox.remote.freshAddress('XRP')
  const order = await createOrder(sandbox, usdtToXrp, { destination, destination_tag: '5' })
  sandbox.devnet.trouble('XRP', { submits: ['drop'] })
  await payAndBury(sandbox, order)
  const { withdraw_tx_hash: lost } = await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  sandbox.log('its time runs out')
  await sandbox.mine('XRP', LEDGERS_TO_LIVE + 1)
  await sandbox.remote.advanceClock(60)
  await sandbox.eventually('another attempt is sent', async () => {
    const { withdraw_tx_hash: sent } = await sandbox.client.getOrder(order.order_id)
    expect(sent).not.toBe(lost)
  })
  const done = await expectPaidOut(sandbox, order)
  expect(await paymentOf(sandbox, done.withdraw_tx_hash ?? raise())).toMatchObject({ DestinationTag: 5 })
  await expect(paymentOf(sandbox, lost ?? raise())).rejects.toThrow('txnNotFound')
})

/** Its payout got lost, and its payee sets this flag before it is signed again. */
async function orderOfWhoSets(sandbox: TestSandbox, flag: number): Promise<CreatedOrder> {
  const { rpcUrl, networkId } = sandbox.devnet.networks.XRP ?? raise()
  const payee = await openOutsider(sandbox.devnet, rpcUrl, networkId, 100_000_000n)
  await sandbox.mine('XRP', 1)
  const order = await createOrder(sandbox, usdtToXrp, { destination: payee.account, destination_tag: '8' })
  sandbox.devnet.trouble('XRP', { submits: Array.from({ length: 1_000 }, () => 'drop' as const) })
  await payAndBury(sandbox, order)
  await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  await sandbox.mine('XRP', LEDGERS_TO_LIVE + 1)
  sandbox.devnet.trouble('XRP', null)
  await payee.submit({ TransactionType: 'AccountSet', SetFlag: flag })
  await sandbox.mine('XRP', 1)
  return order
}

test('nobody waits behind a payout whose payee takes none any more when it is signed again', async () => {
  const sandbox = given()
  const order = await orderOfWhoSets(sandbox, DEPOSIT_AUTH)
  await sandbox.remote.advanceClock(60)
  const destination = await sandbox.remote.freshAddress('XRP')
  const other = await createOrder(sandbox, usdtToXrp, { destination, destination_tag: '9' })
  await payAndBury(sandbox, other)
  await expectTagPaid(sandbox, other, 9)
  const { emergency } = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(emergency?.reasons).toEqual(['DESTINATION_PROBLEM'])
})

test('nor behind one whose payee wants no XRP any more, which no ledger enforces: it is paid', async () => {
  const sandbox = given()
  const { order_id: id, destination } = await orderOfWhoSets(sandbox, DISALLOW_XRP)
  const { withdraw_tx_hash: lost } = await sandbox.client.getOrder(id)
  await sandbox.remote.advanceClock(60)
  await sandbox.eventually('another attempt is sent', async () => {
    expect((await sandbox.client.getOrder(id)).withdraw_tx_hash).not.toBe(lost)
  })
  await sandbox.bury('XRP')
  const { withdraw_tx_hash: sent } = await sandbox.waitForStatus(id, 'DONE')
  expect(await paymentOf(sandbox, sent ?? raise())).toMatchObject({
    Destination: destination,
    DestinationTag: 8,
  })
})

test('a payout whose answer is lost is not paid a second time', async () => {
  const sandbox = given()
  const destination = await sandbox.remote.freshAddress('XRP')
  const order = await createOrder(sandbox, usdtToXrp, { destination, destination_tag: '6' })
  sandbox.devnet.trouble('XRP', { submits: ['lose reply'] })
  await payAndBury(sandbox, order)
  await expectTagPaid(sandbox, order, 6)
})

test('a payout that the network refuses, keeps, and takes with a later ledger is noticed there and pays once', async () => {
  const sandbox = given()
  const destination = await sandbox.remote.freshAddress('XRP')
  const order = await createOrder(sandbox, usdtToXrp, { destination, destination_tag: '3' })
  const answers = () => answersOf(sandbox, order.order_id)
  const refused = { failWith: 'telINSUF_FEE_P' }
  sandbox.devnet.trouble('XRP', { submits: Array.from({ length: 1_000 }, () => refused) })
  onTestFinished(() => sandbox.devnet.trouble('XRP', null))
  await payAndBury(sandbox, order)
  await sandbox.eventually('it is refused', async () => expect(await answers()).toEqual(['refused']))
  expect((await sandbox.client.getOrder(order.order_id)).withdraw_tx_hash ?? null).toBeNull()
  sandbox.log('the server tries it again, and whatever is sent meanwhile is refused')
  await sandbox.mine('XRP', 2)
  await expectTagPaid(sandbox, order, 3)
  expect(await answers()).toEqual(['accepted'])
})

test('nobody is paid on our own account, whatever tag stands with it', async () => {
  const sandbox = given()
  const { deposit_address: ours } = await createOrder(sandbox, xrpToUsdt)
  const refused = { code: 'INVALID_ADDRESS', status: 400 }
  await expect(createOrder(sandbox, usdtToXrp, { destination: ours })).rejects.toMatchObject(refused)
  await expect(createOrder(sandbox, xrpToUsdt, { refund_address: ours })).rejects.toMatchObject(refused)
  const { order_id } = await createUnderpaid(sandbox, xrpToUsdt, '100')
  const action = { action: 'refund', refund_address: ours } as const
  await expect(sandbox.client.chooseEmergencyAction(order_id, action)).rejects.toMatchObject(refused)
  expect((await sandbox.client.getOrder(order_id)).emergency?.reasons).toEqual(['UNDERPAID'])
})

test('an address that the ledger does not deliver to is a matter for its customer', async () => {
  const sandbox = given()
  sandbox.expectError('the destination cannot be paid')
  const { rpcUrl, networkId } = sandbox.devnet.networks.XRP ?? raise()
  const closed = await openOutsider(sandbox.devnet, rpcUrl, networkId, 100_000_000n)
  await closed.submit({ TransactionType: 'AccountSet', SetFlag: DEPOSIT_AUTH })
  await sandbox.mine('XRP', 1)
  const { order_id } = await createUnderpaid(sandbox, xrpToUsdt, '100')
  const action = { action: 'refund', refund_address: closed.account } as const
  await sandbox.client.chooseEmergencyAction(order_id, action)
  await sandbox.eventually('it cannot be paid', async () => {
    const { emergency } = await sandbox.client.getOrder(order_id)
    expect(emergency?.reasons).toEqual(['UNDERPAID', 'DESTINATION_PROBLEM'])
  })
  expect(await bookedFor(sandbox, order_id, 'refunds_owed', 'XRP:XRP')).toBe(0n)
})

test('quiet ledgers and many tags leave ledger and chain equal', async () => {
  const sandbox = given()
  await sandbox.eventually('they are compared after the last payment', async () => {
    const rows = await sandbox.rows<{ difference: bigint; differing_count: number }>(
      `SELECT difference, differing_count FROM reconciliations WHERE asset = 'XRP:XRP'`,
    )
    expect(rows).toMatchObject([{ difference: 0n, differing_count: 0 }])
  })
})
