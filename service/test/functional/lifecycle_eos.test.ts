import type { Order } from '@cambist/sdk'
import { expect, test } from 'vitest'
import { balanceOf } from '../harness/amounts.ts'
import { attemptsOf, expectRefused } from '../harness/attempts.ts'
import {
  createOrder,
  createUnderpaid,
  expectPaidOut,
  expectRefunded,
  type Pair,
  payAndBury,
} from '../harness/orders.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: orders whose deposits all arrive at one EOS account, told apart by memos, and payouts that need one; a payout is signed
 * again only when the irreversible chain shows that the first never happens.
 * How: the wire simulator of EOS, asked without the service what reached whom, and with which memo.
 */
const given = useTestSandbox({ networks: ['BNB', 'EOS'] })

const eosToUsdt: Pair = { from: 'EOS', from_network: 'EOS', to: 'USDT', to_network: 'BEP20' }
const usdtToEos: Pair = { from: 'USDT', from_network: 'BEP20', to: 'EOS', to_network: 'EOS' }

/** An attempt lives for a minute of blocks of half a second, and is known to be over when a later one is irreversible. */
const BLOCKS_OF_LIFE = 122
const BLOCKS_TO_BE_OVER = 10

function raise(): never {
  throw new Error('it should be there')
}

type Paid = { readonly to: string; readonly quantity: string; readonly memo: string }

/** What a transaction of one transfer says; null when no block has it. */
async function transferOf({ devnet }: TestSandbox, txHash: string): Promise<Paid | null> {
  const url = `${devnet.networks.EOS?.rpcUrl}/v1/trace_api/get_transaction_trace`
  const response = await fetch(url, { method: 'POST', body: JSON.stringify({ id: txHash }) })
  if (response.status === 404) return null
  const { actions } = (await response.json()) as { actions: { params: Paid & { from: string } }[] }
  const { from: _, ...paid } = actions[0]?.params ?? raise()
  return paid
}

async function paid(sandbox: TestSandbox, order: Order | Parameters<typeof expectPaidOut>[1]): Promise<Paid> {
  const done = await expectPaidOut(sandbox, order)
  return (await transferOf(sandbox, done.withdraw_tx_hash ?? raise())) ?? raise()
}

test('EOS is exchanged by its memo, which the order shows beside the account', async () => {
  const sandbox = given()
  const orders = [
    await createOrder(sandbox, eosToUsdt),
    await createOrder(sandbox, eosToUsdt),
    await createOrder(sandbox, eosToUsdt),
  ]
  const [one, other, untouched] = orders
  if (one === undefined || other === undefined || untouched === undefined) raise()
  expect(new Set(orders.map((order) => order.deposit_address))).toEqual(new Set(['mycambist123']))
  expect(new Set(orders.map((order) => order.deposit_tag)).size).toBe(3)
  const { order_id: id, deposit_address, deposit_account, deposit_tag } = one
  expect(deposit_account).toBe(deposit_address)
  const looked = await sandbox.client.getOrder(id)
  expect(looked).toMatchObject({
    ...{ deposit_address, deposit_account, deposit_tag },
    deposit_required_confirmations: 1,
  })
  const events = await sandbox.rows<{ snapshot: object }>('SELECT snapshot FROM events WHERE order_id = $1', [
    id,
  ])
  expect(events).toMatchObject([{ snapshot: { deposit_address, deposit_account, deposit_tag } }])
  for (const order of [other, one]) {
    await payAndBury(sandbox, order)
    await expectPaidOut(sandbox, order)
  }
  expect((await sandbox.client.getOrder(untouched.order_id)).status).toBe('NEW')
})

test('a deposit is seen when it is irreversible, not a block before; what was undone before that was never there', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, eosToUsdt)
  await sandbox.remote.pay(order.order_id)
  await sandbox.mine('EOS', 5)
  await sandbox.devnet.reorg('EOS', 5)
  await sandbox.mine('EOS', 5)
  await sandbox.settle('EOS')
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('NEW')
  await sandbox.mine('EOS', 1)
  await expectPaidOut(sandbox, order)
})

test('EOS is paid out with the memo that was asked for, also when that is words, or stands behind the name', async () => {
  const sandbox = given()
  const words = `für Zoë, 漢字${'.'.repeat(239)}`
  expect(Buffer.byteLength(words)).toBe(256)
  for (const [asked, memo] of [
    [{ destination_tag: words }, words],
    [{ inside: 'user-7' }, 'user-7'],
  ] as const) {
    const name = await sandbox.remote.freshAddress('EOS')
    const request =
      'inside' in asked ? { destination: `${name}/${asked.inside}` } : { destination: name, ...asked }
    const order = await createOrder(sandbox, usdtToEos, request)
    expect(order).toMatchObject({ destination: name, destination_tag: memo, network_fee: 0 })
    await payAndBury(sandbox, order)
    expect(await paid(sandbox, order)).toMatchObject({ to: name, memo })
  }
})

test.each([
  ['without a memo', { destination: 'binancecleos' }, 'DESTINATION_TAG_REQUIRED'],
  [
    'with a memo that is too long',
    { destination: 'binancecleos', destination_tag: `${'ä'.repeat(128)}a` },
    'INVALID_ADDRESS',
  ],
  ['with two memos', { destination: 'binancecleos/1', destination_tag: '2' }, 'INVALID_ADDRESS'],
  ['to no name', { destination: 'Binance', destination_tag: '1' }, 'INVALID_ADDRESS'],
  ['to the network', { destination: 'eosio.token', destination_tag: '1' }, 'INVALID_ADDRESS'],
])('an order that pays %s is refused', async (_, where, code) => {
  const refused = createOrder(given(), usdtToEos, where)
  await expect(refused).rejects.toMatchObject({ code, status: 400 })
})

test('EOS with no memo of ours belongs to no order, and is recorded as unclaimed', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, eosToUsdt)
  for (const memo of ['', 'thank you', '3999999999']) {
    const { txHash } = await sandbox.devnet.send('EOS', 'EOS', order.deposit_address, 50_000n, 1, memo)
    await sandbox.bury('EOS')
    await sandbox.eventually('it is booked', async () => {
      const found = await sandbox.rows(
        'SELECT kind, state, units, address FROM house_deposits WHERE tx_hash = $1',
        [txHash],
      )
      expect(found).toEqual([{ kind: 'stray', state: 'confirmed', units: 50_000n, address: 'mycambist123' }])
    })
  }
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('NEW')
})

test('too little EOS goes back, and to a memo that stands behind the name', async () => {
  const sandbox = given()
  const plain = await createUnderpaid(sandbox, eosToUsdt, '300')
  const refund_address = await sandbox.remote.freshAddress('EOS')
  await sandbox.client.chooseEmergencyAction(plain.order_id, { action: 'refund', refund_address })
  await expectRefunded(sandbox, plain)

  const stuck = await createUnderpaid(sandbox, eosToUsdt, '300')
  const exchange = await sandbox.remote.freshAddress('EOS')
  const withMemo = { action: 'refund', refund_address: `${exchange}/104233` } as const
  await sandbox.client.chooseEmergencyAction(stuck.order_id, withMemo)
  await sandbox.eventually('the refund arrives', async () => {
    await sandbox.mine('EOS', 6)
    expect((await sandbox.client.getOrder(stuck.order_id)).status).toBe('REFUNDED')
  })
  const { refund } = await sandbox.client.getOrder(stuck.order_id)
  expect(await transferOf(sandbox, refund?.tx_hash ?? raise())).toEqual({
    to: exchange,
    memo: '104233',
    quantity: '300.0000 EOS',
  })
})

test('a payout that the network accepts and loses is signed again when its time is over, and pays once', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, usdtToEos, { destination_tag: '5' })
  sandbox.devnet.trouble('EOS', { submits: Array.from({ length: 1_000 }, () => 'drop' as const) })
  await payAndBury(sandbox, order)
  const { withdraw_tx_hash: lost } = await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  sandbox.log('its time runs out, but not yet where no reorganisation reaches')
  await sandbox.mine('EOS', BLOCKS_OF_LIFE)
  await sandbox.remote.advanceClock(600)
  await sandbox.eventually('the network refuses it, and nothing else is signed', async () => {
    expect(await attemptsOf(sandbox, order.order_id)).toMatchObject([{ attempt: 1, answer: 'refused' }])
  })
  sandbox.devnet.trouble('EOS', null)
  await sandbox.mine('EOS', BLOCKS_TO_BE_OVER)
  await sandbox.remote.advanceClock(600)
  await sandbox.eventually('another attempt is sent', async () => {
    const { withdraw_tx_hash: sent } = await sandbox.client.getOrder(order.order_id)
    expect(sent).not.toBe(lost)
  })
  expect(await paid(sandbox, order)).toMatchObject({ to: order.destination, memo: '5' })
  expect(await transferOf(sandbox, lost ?? raise())).toBeNull()
  expect((await attemptsOf(sandbox, order.order_id)).map(({ attempt }) => attempt)).toEqual([1, 2])
})

test('a payout whose block is undone before it is irreversible changes nothing, and pays once', async () => {
  const sandbox = given()
  const { reversibleBlocks } = sandbox.devnet.networks.EOS ?? raise()
  const order = await createOrder(sandbox, usdtToEos, { destination_tag: '9' })
  await payAndBury(sandbox, order)
  const { withdraw_tx_hash: sent } = await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  await sandbox.mine('EOS', reversibleBlocks)
  expect(await transferOf(sandbox, sent ?? raise())).not.toBeNull()
  await sandbox.devnet.reorg('EOS', reversibleBlocks)
  expect(await transferOf(sandbox, sent ?? raise())).toBeNull()
  await sandbox.settle('EOS')
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('WITHDRAW')
  expect(await paid(sandbox, order)).toMatchObject({ to: order.destination, memo: '9' })
  expect((await sandbox.client.getOrder(order.order_id)).withdraw_tx_hash).toBe(sent)
  expect(await attemptsOf(sandbox, order.order_id)).toMatchObject([{ attempt: 1, state: 'confirmed' }])
})

test('a payout is found in its block by a node that finds no transaction, and the books agree with the chain', async () => {
  const sandbox = given()
  sandbox.devnet.trouble('EOS', { isUnindexed: true })
  const order = await createOrder(sandbox, usdtToEos, { destination_tag: '10' })
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
  expect(await attemptsOf(sandbox, order.order_id)).toMatchObject([{ attempt: 1, state: 'confirmed' }])
  sandbox.devnet.trouble('EOS', null)
  expect(await paid(sandbox, order)).toMatchObject({ to: order.destination, memo: '10' })
})

test('a payout whose answer or question is lost is not paid twice', async () => {
  const sandbox = given()
  for (const trouble of ['lose reply', 'drop'] as const) {
    const order = await createOrder(sandbox, usdtToEos, { destination_tag: '6' })
    sandbox.devnet.trouble('EOS', { submits: [trouble] })
    await payAndBury(sandbox, order)
    if (trouble === 'drop') {
      await sandbox.eventually('it is sent once more, as it is', async () => {
        await sandbox.mine('EOS', 1)
        expect(await balanceOf(sandbox, order.destination, 'EOS', 'EOS')).toBeGreaterThan(0n)
      })
    }
    await paid(sandbox, order)
    expect(await attemptsOf(sandbox, order.order_id), trouble).toMatchObject([
      { attempt: 1, state: 'confirmed' },
    ])
  }
})

test('a payout that no node takes is given up when all its attempts are over, and the customer is asked', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, usdtToEos, { destination_tag: '8' })
  sandbox.devnet.trouble('EOS', {
    submits: Array.from({ length: 500 }, () => ({ failWith: 'tx_cpu_usage_exceeded' })),
  })
  await payAndBury(sandbox, order)
  await expectRefused(sandbox, order.order_id)
  sandbox.log('half an hour later it is still refused, and might yet be taken')
  await sandbox.remote.advanceClock(31 * 60)
  await sandbox.settle('EOS')
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('EXCHANGE')
  await sandbox.mine('EOS', BLOCKS_OF_LIFE + BLOCKS_TO_BE_OVER)
  await sandbox.remote.advanceClock(60)
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['NETWORK_PROBLEM'])
  sandbox.devnet.trouble('EOS', null)
  expect(await balanceOf(sandbox, order.destination, 'EOS', 'EOS')).toBe(0n)
  sandbox.log('the network is well again, and it goes on')
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })
  await expectPaidOut(sandbox, order)
})

test('payouts that come together, two of them alike, are each paid once', async () => {
  const sandbox = given()
  const destination = await sandbox.remote.freshAddress('EOS')
  const orders = []
  for (let number = 1; number <= 3; number += 1)
    orders.push(await createOrder(sandbox, usdtToEos, { destination, destination_tag: '7' }))
  await Promise.all(orders.map((order) => payAndBury(sandbox, order)))
  for (const order of orders) {
    await sandbox.waitForStatus(order.order_id, 'WITHDRAW', 'DONE')
    await sandbox.bury('EOS')
    await sandbox.waitForStatus(order.order_id, 'DONE')
  }
  const each = BigInt(Math.round((orders[0]?.receive_amount ?? 0) * 1e4))
  expect(await balanceOf(sandbox, destination, 'EOS', 'EOS')).toBe(3n * each)
})

test('nobody is paid on our own account', async () => {
  const ours = { destination: 'mycambist123', destination_tag: '1' }
  await expect(createOrder(given(), usdtToEos, ours)).rejects.toMatchObject({ code: 'INVALID_ADDRESS' })
  for (const refund_address of ['mycambist123', 'mycambist123/1'])
    await expect(createOrder(given(), eosToUsdt, { refund_address })).rejects.toMatchObject({
      code: 'INVALID_ADDRESS',
    })
})

test('many memos leave ledger and chain equal', async () => {
  const sandbox = given()
  type Compared = { readonly difference: bigint; readonly differing_count: number; readonly at_ms: bigint }
  const compared = async () => {
    const query = `SELECT difference, differing_count, at_ms FROM reconciliations WHERE asset = 'EOS:EOS'`
    return (await sandbox.rows<Compared>(query))[0] ?? { difference: 0n, differing_count: 0, at_ms: 0n }
  }
  const { at_ms: lastMs } = await compared()
  await sandbox.eventually('they are compared after the last payment', async () => {
    const { at_ms: nowMs, ...differs } = await compared()
    expect(nowMs > lastMs).toBe(true)
    expect(differs).toEqual({ difference: 0n, differing_count: 0 })
  })
})
