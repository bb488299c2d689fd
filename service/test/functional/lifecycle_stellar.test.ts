import type { Order } from '@cambist/sdk'
import {
  encodeMuxedAccount,
  encodeMuxedAccountToAddress,
  Keypair,
  MuxedAccount,
  Operation,
} from '@stellar/stellar-sdk/base'
import { expect, test } from 'vitest'
import type { Fields } from '../../src/chains/replies.ts'
import { parsePlace } from '../../src/chains/stellar/address.ts'
import { LIFE_S } from '../../src/chains/stellar/bid.ts'
import { connect } from '../../src/chains/stellar/horizon.ts'
import { readAll } from '../../src/chains/stellar/replies.ts'
import { openOutsider } from '../contract/stellar_driver.ts'
import {
  bookedFor,
  createOrder,
  createUnderpaid,
  expectPaidOut,
  type Pair,
  payAndBury,
} from '../harness/orders.ts'
import { PATIENCE_MS } from '../harness/patience.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: orders whose deposits all arrive at one Stellar account, told apart by muxed ids and memos, and payouts that need
 * a memo, make accounts, and wait for each other.
 * How: the wire simulator of Stellar, asked without the service what reached whom.
 */
const given = useTestSandbox({ networks: ['BTC', 'ETH', 'BNB', 'XLM'] })

const xlmToUsdt: Pair = { from: 'XLM', from_network: 'XLM', to: 'USDT', to_network: 'BEP20' }
const usdtToXlm: Pair = { from: 'USDT', from_network: 'BEP20', to: 'XLM', to_network: 'XLM' }

function raise(): never {
  throw new Error('it should be there')
}

/** What the ledger says of a transaction of one operation. */
async function paymentOf({ devnet }: TestSandbox, txHash: string): Promise<Fields> {
  const { horizonUrl } = devnet.networks.XLM ?? raise()
  const horizon = connect(horizonUrl, PATIENCE_MS)
  const [payment] = await readAll(horizon, `/transactions/${txHash}/operations?join=transactions`)
  return payment ?? raise()
}

/** Closes ledgers until an order is done, and answers the payment of its payout, which is of what the order says. */
async function paid(sandbox: TestSandbox, { order_id: id }: Pick<Order, 'order_id'>): Promise<Fields> {
  await sandbox.eventually(`${id} is paid`, async () => {
    await sandbox.mine('XLM', 1)
    expect((await sandbox.client.getOrder(id)).status).toBe('DONE')
  })
  const done = await sandbox.client.getOrder(id)
  const payment = await paymentOf(sandbox, done.withdraw_tx_hash ?? raise())
  expect(Number(payment.amount ?? payment.starting_balance)).toBe(done.receive_final_amount)
  return payment
}

async function refunded(sandbox: TestSandbox, { order_id: id }: Order): Promise<Order> {
  await sandbox.eventually(`the refund of ${id} arrives`, async () => {
    await sandbox.mine('XLM', 1)
    expect((await sandbox.client.getOrder(id)).status).toBe('REFUNDED')
  })
  return sandbox.client.getOrder(id)
}

/** An account of somebody else that is there. */
async function somebody(sandbox: TestSandbox): Promise<string> {
  const account = Keypair.random().publicKey()
  await sandbox.devnet.send('XLM', 'XLM', account, 20_000_000n)
  await sandbox.mine('XLM', 1)
  return account
}

const muxedOf = (account: string, id: string) => encodeMuxedAccountToAddress(encodeMuxedAccount(account, id))

const memoOf = ({ transaction }: Fields) => {
  const { memo_type: type, memo } = transaction as Fields
  return { type, memo }
}

test('a deposit of lumens is found by the id inside its address, or by a memo that says it', async () => {
  const sandbox = given()
  const orders = [
    await createOrder(sandbox, xlmToUsdt),
    await createOrder(sandbox, xlmToUsdt),
    await createOrder(sandbox, xlmToUsdt),
  ]
  const [one, other, untouched] = orders
  if (one === undefined || other === undefined || untouched === undefined) raise()
  const places = orders.map((order) => MuxedAccount.fromAddress(order.deposit_address, '0'))
  expect(places.map((place) => place.id())).toEqual(orders.map((order) => order.deposit_tag))
  expect(new Set(places.map((place) => place.id())).size).toBe(3)
  const accounts = orders.map((order) => order.deposit_account)
  expect(places.map((place) => place.baseAccount().accountId())).toEqual(accounts)
  expect(new Set(accounts).size).toBe(1)
  const looked = await sandbox.client.getOrder(one.order_id)
  const { deposit_account, deposit_tag } = one
  expect(looked).toMatchObject({ deposit_account, deposit_tag, deposit_required_confirmations: 1 })
  await payAndBury(sandbox, other)
  await expectPaidOut(sandbox, other)
  sandbox.log('a wallet that knows no muxed addresses is given the account and the memo')
  const stroops = BigInt(Math.round(one.deposit_amount * 1e7))
  await sandbox.devnet.send('XLM', 'XLM', deposit_account ?? raise(), stroops, 1, deposit_tag ?? raise())
  await sandbox.mine('XLM', 1)
  await expectPaidOut(sandbox, one)
  expect((await sandbox.client.getOrder(untouched.order_id)).status).toBe('NEW')
})

test('lumens are paid out with a memo of the kind that the tag is, or to a muxed address', async () => {
  const sandbox = given()
  const account = await somebody(sandbox)
  const number = await createOrder(sandbox, usdtToXlm, { destination: account, destination_tag: '48213' })
  expect(number).toMatchObject({ destination: account, destination_tag: '48213' })
  await payAndBury(sandbox, number)
  const byId = await paid(sandbox, number)
  expect(byId).toMatchObject({ type: 'payment', to: account })
  expect(memoOf(byId)).toEqual({ type: 'id', memo: '48213' })

  const words = await somebody(sandbox)
  const text = await createOrder(sandbox, usdtToXlm, { destination: words, destination_tag: 'für Zoë' })
  await payAndBury(sandbox, text)
  expect(memoOf(await paid(sandbox, text))).toEqual({ type: 'text', memo: 'für Zoë' })

  const shared = await somebody(sandbox)
  const destination = muxedOf(shared, '7')
  const inside = await createOrder(sandbox, usdtToXlm, { destination })
  expect(inside).toMatchObject({ destination, destination_tag: '7' })
  await payAndBury(sandbox, inside)
  const byMuxed = await paid(sandbox, inside)
  expect(byMuxed).toMatchObject({ to: shared, to_muxed_id: '7' })
  expect(memoOf(byMuxed)).toMatchObject({ type: 'none' })
})

test('whoever has no account yet gets one', async () => {
  const sandbox = given()
  const destination = await sandbox.remote.freshAddress('XLM')
  const order = await createOrder(sandbox, usdtToXlm, { destination, destination_tag: '1' })
  await payAndBury(sandbox, order)
  expect(await paid(sandbox, order)).toMatchObject({ type: 'create_account', account: destination })
})

test.each([
  ['without a memo', { destination: Keypair.random().publicKey() }, 'DESTINATION_TAG_REQUIRED'],
  [
    'with a memo that is too long',
    { destination: Keypair.random().publicKey(), destination_tag: 'ä'.repeat(15) },
    'INVALID_ADDRESS',
  ],
  ['to no address', { destination: 'GNOBODY', destination_tag: '1' }, 'INVALID_ADDRESS'],
  [
    'to a contract',
    { destination: 'CA3D5KRYM6CB7OWQ6TWYRR3Z4T7GNZLKERYNZGGA5SOAOPIFY6YQGAXE', destination_tag: '1' },
    'INVALID_ADDRESS',
  ],
  [
    'to a muxed address that carries another id',
    { destination: muxedOf(Keypair.random().publicKey(), '7'), destination_tag: '8' },
    'INVALID_ADDRESS',
  ],
])('an order that pays lumens %s is refused', async (_, more, code) => {
  const refused = createOrder(given(), usdtToXlm, more)
  await expect(refused).rejects.toMatchObject({ code, status: 400 })
})

test("lumens that reach the account without a memo are nobody's, and are shown to the operator", async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, xlmToUsdt)
  const { txHash } = await sandbox.devnet.send('XLM', 'XLM', order.deposit_account ?? raise(), 50_000_000n)
  await sandbox.mine('XLM', 1)
  await sandbox.eventually('it is booked as unclaimed', async () => {
    const found = await sandbox.rows<{ kind: string; state: string; units: bigint }>(
      'SELECT kind, state, units FROM house_deposits WHERE tx_hash = $1',
      [txHash],
    )
    expect(found).toEqual([{ kind: 'stray', state: 'confirmed', units: 50_000_000n }])
  })
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('NEW')
})

test('too few lumens go back to the id that the refund address carries', async () => {
  const sandbox = given()
  const account = await somebody(sandbox)
  const stuck = await createUnderpaid(sandbox, xlmToUsdt, '500')
  await sandbox.client.chooseEmergencyAction(stuck.order_id, {
    action: 'refund',
    refund_address: muxedOf(account, '99'),
  })
  const { refund } = await refunded(sandbox, stuck)
  const payment = await paymentOf(sandbox, refund?.tx_hash ?? raise())
  expect(payment).toMatchObject({ to: account, to_muxed_id: '99' })
})

test('a payout that the network loses as often as it gets it is signed again when its time is over, and pays once', async () => {
  const sandbox = given()
  const destination = await somebody(sandbox)
  const before = await sandbox.devnet.balance('XLM', 'XLM', destination)
  const order = await createOrder(sandbox, usdtToXlm, { destination, destination_tag: '5' })
  sandbox.devnet.trouble('XLM', { submits: Array.from({ length: 1_000 }, () => 'drop' as const) })
  await payAndBury(sandbox, order)
  const { withdraw_tx_hash: lost } = await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  sandbox.log('its time runs out')
  await sandbox.mine('XLM', LIFE_S + 1)
  sandbox.devnet.trouble('XLM', null)
  await sandbox.remote.advanceClock(90)
  await sandbox.eventually('another attempt is sent', async () => {
    const { withdraw_tx_hash: sent } = await sandbox.client.getOrder(order.order_id)
    expect(sent).not.toBe(lost)
  })
  expect(memoOf(await paid(sandbox, order))).toEqual({ type: 'id', memo: '5' })
  const done = await sandbox.client.getOrder(order.order_id)
  const arrived = (await sandbox.devnet.balance('XLM', 'XLM', destination)) - before
  expect(arrived).toBe(BigInt(Math.round((done.receive_final_amount ?? raise()) * 1e7)))
  await expect(paymentOf(sandbox, lost ?? raise())).rejects.toThrow()
})

test('a payout that is lost once is sent again as it is, and one whose answer is lost is not paid twice', async () => {
  const sandbox = given()
  for (const trouble of ['drop', 'lose reply', 'lose request'] as const) {
    const destination = await sandbox.remote.freshAddress('XLM')
    const order = await createOrder(sandbox, usdtToXlm, { destination, destination_tag: '6' })
    sandbox.devnet.trouble('XLM', { submits: [trouble] })
    await payAndBury(sandbox, order)
    expect(memoOf(await paid(sandbox, order)), trouble).toEqual({ type: 'id', memo: '6' })
    const attempts = await sandbox.rows('SELECT attempt FROM attempts WHERE payout_id LIKE $1', [
      `${order.order_id}:%`,
    ])
    expect(attempts, trouble).toHaveLength(1)
  }
})

test('nobody waits behind a payout whose payee is gone when it is signed again', async () => {
  const sandbox = given()
  const payee = await openOutsider(sandbox.devnet, sandbox.devnet.networks.XLM ?? raise(), 100_000_000n)
  const order = await createOrder(sandbox, usdtToXlm, { destination: muxedOf(payee.account, '7') })
  sandbox.devnet.trouble('XLM', { submits: Array.from({ length: 1_000 }, () => 'drop' as const) })
  await payAndBury(sandbox, order)
  await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  await sandbox.mine('XLM', LIFE_S + 1)
  sandbox.devnet.trouble('XLM', null)
  await payee.submit(Operation.accountMerge({ destination: await somebody(sandbox) }))
  await sandbox.mine('XLM', 1)
  await sandbox.remote.advanceClock(90)
  const other = await createOrder(sandbox, usdtToXlm, {
    destination: await somebody(sandbox),
    destination_tag: '9',
  })
  await payAndBury(sandbox, other)
  expect(memoOf(await paid(sandbox, other))).toEqual({ type: 'id', memo: '9' })
  const { emergency } = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(emergency?.reasons).toEqual(['DESTINATION_PROBLEM'])
})

test('a refund to who wants a memo when it is signed again is given up, and not paid without one', async () => {
  const sandbox = given()
  const payee = await openOutsider(sandbox.devnet, sandbox.devnet.networks.XLM ?? raise(), 100_000_000n)
  const { order_id: id } = await createUnderpaid(sandbox, xlmToUsdt, '100')
  sandbox.devnet.trouble('XLM', { submits: Array.from({ length: 1_000 }, () => 'drop' as const) })
  await sandbox.client.chooseEmergencyAction(id, { action: 'refund', refund_address: payee.account })
  await sandbox.eventually('it is sent', async () => {
    expect((await sandbox.client.getOrder(id)).refund?.tx_hash ?? null).not.toBeNull()
  })
  await sandbox.mine('XLM', LIFE_S + 1)
  sandbox.devnet.trouble('XLM', null)
  await payee.submit(Operation.manageData({ name: 'config.memo_required', value: '1' }))
  await sandbox.mine('XLM', 1)
  await sandbox.eventually('it is given up', async () => {
    await sandbox.remote.advanceClock(300)
    await sandbox.mine('XLM', 1)
    expect((await sandbox.client.getOrder(id)).status).toBe('EMERGENCY')
  })
})

test('payouts that come together leave one after the other, each signed once, and none is in trouble meanwhile', async () => {
  const sandbox = given()
  const orders: Awaited<ReturnType<typeof createOrder>>[] = []
  for (let number = 1; number <= 8; number += 1) {
    const destination = await sandbox.remote.freshAddress('XLM')
    orders.push(await createOrder(sandbox, usdtToXlm, { destination, destination_tag: String(number) }))
  }
  const ids = orders.map(({ order_id: id }) => id)
  for (const id of ids) await sandbox.remote.pay(id)
  await sandbox.bury('BEP20')
  await sandbox.eventually('all are due', async () => {
    const due = await sandbox.rows('SELECT 1 FROM outflows WHERE order_id = ANY($1)', [ids])
    expect(due).toHaveLength(ids.length)
  })
  for (const order of orders) {
    sandbox.log('the last of them has its turn after more than the time that one lives')
    await sandbox.mine('XLM', 10)
    const troubled = `SELECT trouble FROM outflows WHERE order_id = ANY($1) AND trouble LIKE 'the network %'`
    expect(await sandbox.rows(troubled, [ids])).toEqual([])
    expect(await paid(sandbox, order)).toMatchObject({ account: order.destination })
  }
  const signed = await sandbox.rows(
    'SELECT 1 FROM attempts JOIN outflows USING (bucket, payout_id) WHERE order_id = ANY($1)',
    [ids],
  )
  expect(signed).toHaveLength(ids.length)
})

test('of payouts that come together to somebody without an account the first makes it and the others pay there', async () => {
  const sandbox = given()
  const account = await sandbox.remote.freshAddress('XLM')
  const create = (more: object) => createOrder(sandbox, usdtToXlm, more)
  const maker = await create({ destination: account, destination_tag: '1' })
  const others = [
    await create({ destination: account, destination_tag: '2' }),
    await create({ destination: muxedOf(account, '3') }),
  ]
  await payAndBury(sandbox, maker)
  await sandbox.waitForStatus(maker.order_id, 'WITHDRAW')
  await Promise.all(others.map((order) => payAndBury(sandbox, order)))
  await sandbox.eventually('a worker has had the others, and the account is not there yet', async () => {
    const had = await sandbox.rows<{ order_id: string }>(
      'SELECT order_id FROM outflows WHERE order_id = ANY($1) AND claim_fence > 0 AND claimed_until_wall_ms = 0',
      [others.map(({ order_id: id }) => id)],
    )
    expect(had).toHaveLength(others.length)
  })
  expect(await paid(sandbox, maker)).toMatchObject({ type: 'create_account', account })
  for (const order of others)
    expect(await paid(sandbox, order)).toMatchObject({ type: 'payment', to: account })
})

/** Its customer tops the new wallet up from elsewhere, say, in the seconds between the payout's draft and its ledger. */
async function madeByAnother(
  sandbox: TestSandbox,
  account: string,
  pay: () => Promise<unknown>,
): Promise<void> {
  // The network loses the payout until the account is there.
  sandbox.devnet.trouble('XLM', { submits: Array.from({ length: 100 }, () => 'drop' as const) })
  await pay()
  await sandbox.eventually('it is sent', async () => {
    const query =
      'SELECT 1 FROM attempts JOIN outflows USING (bucket, payout_id) WHERE address = $1 AND answer IS NOT NULL'
    expect(await sandbox.rows(query, [account])).toHaveLength(1)
  })
  await sandbox.devnet.send('XLM', 'XLM', account, 20_000_000n)
  await sandbox.mine('XLM', 1)
  sandbox.devnet.trouble('XLM', null)
}

test('who has an account after all, which the payout was to make, is paid without being asked', async () => {
  const sandbox = given()
  const account = await sandbox.remote.freshAddress('XLM')
  const order = await createOrder(sandbox, usdtToXlm, { destination: account, destination_tag: '9' })
  await madeByAnother(sandbox, account, () => payAndBury(sandbox, order))
  expect(await paid(sandbox, order)).toMatchObject({ type: 'payment', to: account })
  expect(await bookedFor(sandbox, order.order_id, 'payouts_owed', 'XLM:XLM')).toBe(0n)
})

test('so is who gets a refund there', async () => {
  const sandbox = given()
  const account = await sandbox.remote.freshAddress('XLM')
  const order = await createUnderpaid(sandbox, xlmToUsdt, '500')
  const choice = { action: 'refund', refund_address: account } as const
  await madeByAnother(sandbox, account, () => sandbox.client.chooseEmergencyAction(order.order_id, choice))
  const { refund } = await refunded(sandbox, order)
  expect(await paymentOf(sandbox, refund?.tx_hash ?? raise())).toMatchObject({ type: 'payment', to: account })
})

test('a destination that the ledger does not deliver to is a matter for its customer', async () => {
  const sandbox = given()
  sandbox.expectError('the destination cannot be paid')
  const nobody = muxedOf(await sandbox.remote.freshAddress('XLM'), '7')
  expect(parsePlace(nobody).ok).toBe(true)
  const order = await createOrder(sandbox, usdtToXlm, { destination: nobody })
  await payAndBury(sandbox, order)
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['DESTINATION_PROBLEM'])
  expect(await bookedFor(sandbox, order.order_id, 'payouts_owed', 'XLM:XLM')).toBe(0n)
})

test('nobody is paid on our own account, whatever id stands in its muxed address', async () => {
  const sandbox = given()
  const { deposit_address: ours } = await createOrder(sandbox, xlmToUsdt)
  const refused = { code: 'INVALID_ADDRESS', status: 400 }
  await expect(createOrder(sandbox, usdtToXlm, { destination: ours })).rejects.toMatchObject(refused)
  await expect(createOrder(sandbox, xlmToUsdt, { refund_address: ours })).rejects.toMatchObject(refused)
})

test('many ids and memos leave ledger and chain equal', async () => {
  const sandbox = given()
  type Compared = { readonly difference: bigint; readonly differing_count: number; readonly at_ms: bigint }
  const compared = async () => {
    const query = `SELECT difference, differing_count, at_ms FROM reconciliations WHERE asset = 'XLM:XLM'`
    return (await sandbox.rows<Compared>(query))[0] ?? { difference: 0n, differing_count: 0, at_ms: 0n }
  }
  const { at_ms: lastMs } = await compared()
  await sandbox.eventually('they are compared after the last payment', async () => {
    const { at_ms: nowMs, ...differs } = await compared()
    expect(nowMs > lastMs).toBe(true)
    expect(differs).toEqual({ difference: 0n, differing_count: 0 })
  })
})
