import { type CreatedOrder, createClient, type Order } from '@cambist/sdk'
import type { Address, Hex } from 'viem'
import { afterAll, expect, test } from 'vitest'
import type { ChainId } from '../../src/domain/catalog/networks.ts'
import { balanceOf, chainUnits } from '../harness/amounts.ts'
import { type HttpLine, openHttpLine } from '../harness/http_line.ts'
import {
  bnbToEth,
  bookedFor,
  btcToUsdt,
  createOrder,
  createUnderpaid,
  ethToUsdc,
  expectPaidOut,
  expectRefunded,
  type Pair,
  payAndBury,
  statusesOf,
} from '../harness/orders.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: reserves that run dry, nodes that do not answer, destinations that cannot be paid: the order waits, then asks,
 * and either way its money arrives somewhere.
 * How: the reserve is spent by real orders; a node is frozen by signal or hidden behind a dead line; contracts refuse.
 */
const lines = new Map<ChainId, HttpLine>()
afterAll(async () => {
  await Promise.all([...lines.values()].map((line) => line.stop()))
})

/** Longer than a process stands still on a machine that is busy with others: nothing is quoted to a chain that was not looked at. */
const CHAIN_TROUBLE_MS = 30_000
const FLOAT_OPEN_MS = 6_000
const STALL_SECONDS = 30 * 60

const given = useTestSandbox({
  policy: { chainTroubleMs: CHAIN_TROUBLE_MS, floatOpenMs: FLOAT_OPEN_MS },
  reach: async (chain, rpcUrl) => {
    const line = await openHttpLine(rpcUrl)
    lines.set(chain, line)
    return line.url
  },
})

const usdcToUsdt: Pair = { from: 'USDC', from_network: 'BEP20', to: 'USDT', to_network: 'ERC20' }

test('without reserve an order waits, survives a reorganisation, then asks; refund, continue and recalculate all end well', async () => {
  const sandbox = given()
  const { client, log } = sandbox
  log('six large orders use up the reserve of 3,000,000 USDT; three more are created while it is still there')
  const large = () => createOrder(sandbox, usdcToUsdt, { amount: '499000' })
  const spenders = await Promise.all(Array.from({ length: 6 }, large))
  const [toRefund, toContinue] = [await large(), await large()]
  const toRecalculate = await createOrder(sandbox, btcToUsdt, { amount: '2' })
  for (const { order_id } of spenders) await sandbox.remote.pay(order_id)
  await sandbox.bury('BEP20')
  await Promise.all(spenders.map(({ order_id }) => sandbox.waitForStatus(order_id, 'WITHDRAW')))
  await sandbox.bury('ERC20')
  await Promise.all(spenders.map(({ order_id }) => sandbox.waitForStatus(order_id, 'DONE')))

  log('the next ones wait in EXCHANGE')
  const waiting = [toRefund, toContinue, toRecalculate]
  for (const { order_id } of waiting) await sandbox.remote.pay(order_id)
  await Promise.all([sandbox.bury('BEP20'), sandbox.bury('BTC')])
  await Promise.all(waiting.map(({ order_id }) => expectWaiting(sandbox, order_id)))

  log('a reorganisation takes the waiting BTC order back, and forth')
  await sandbox.remote.reorg('BTC', 6)
  await sandbox.waitForStatus(toRecalculate.order_id, 'PENDING')
  await sandbox.mine('BTC', 6)
  await expectWaiting(sandbox, toRecalculate.order_id)
  expect(await bookedFor(sandbox, toRecalculate.order_id, 'orphaned_deposits', 'BTC:BTC')).toBe(0n)

  log('after the configured time they ask')
  await sandbox.remote.advanceClock(STALL_SECONDS + 1)
  for (const { order_id } of waiting) {
    const stuck = await sandbox.waitForStatus(order_id, 'EMERGENCY')
    expect(stuck.emergency?.reasons).toEqual(['NETWORK_PROBLEM'])
  }

  log('refund goes back at once; continue is not offered until the reserve is funded')
  const refund_address = await sandbox.remote.freshAddress('BEP20')
  await client.chooseEmergencyAction(toRefund.order_id, { action: 'refund', refund_address })
  await expectRefunded(sandbox, toRefund)
  const { emergency } = await client.getOrder(toContinue.order_id)
  expect(emergency?.options).toMatchObject({ continue: null, recalculate: null, refund: expect.anything() })
  await expect(
    hastyClient(sandbox).chooseEmergencyAction(toContinue.order_id, { action: 'continue' }),
  ).rejects.toMatchObject({ code: 'MAINTENANCE', message: expect.stringContaining('reserve') })
  await fundReserve(sandbox, 3_000_000_000_000n)
  await sandbox.eventually('continue is offered', async () => {
    const funded = await client.getOrder(toContinue.order_id)
    expect(funded.emergency?.options.continue).not.toBeNull()
  })
  await client.chooseEmergencyAction(toContinue.order_id, { action: 'continue' })
  const continued = await expectPaidOut(sandbox, toContinue)
  expect(continued.receive_final_amount).toBe(toContinue.receive_amount)
  await client.chooseEmergencyAction(toRecalculate.order_id, { action: 'recalculate' })
  await expectPaidOut(sandbox, toRecalculate)
})

test('of more payouts at once than the reserve holds, the last waits and goes on when the reserve is funded', async () => {
  const sandbox = given()
  const orders = await Promise.all(
    Array.from({ length: 5 }, () => createOrder(sandbox, usdcToUsdt, { amount: '490000' })),
  )
  for (const { order_id } of orders) await sandbox.remote.pay(order_id)
  sandbox.log('they confirm in one block, and no block takes the payouts out of the reserve in between')
  await sandbox.bury('BEP20')
  const states = async () =>
    (await Promise.all(orders.map(({ order_id }) => sandbox.client.getOrder(order_id)))).map(
      ({ status }) => status,
    )
  await sandbox.eventually('four are sent', async () => {
    expect((await states()).sort()).toEqual(['EXCHANGE', 'WITHDRAW', 'WITHDRAW', 'WITHDRAW', 'WITHDRAW'])
  })
  const [last] = await Promise.all(
    (await states())
      .flatMap((status, index) => (status === 'EXCHANGE' ? [orders[index]?.order_id ?? ''] : []))
      .map((id) => expectWaiting(sandbox, id)),
  )
  await expectTriedAgain(sandbox, last?.order_id ?? '')
  await sandbox.bury('ERC20')
  await sandbox.eventually('four are done', async () => {
    expect((await states()).filter((status) => status === 'DONE')).toHaveLength(4)
  })
  await fundReserve(sandbox, 1_000_000_000_000n)
  const done = await expectPaidOut(sandbox, last ?? raise())
  expect(await statusesOf(sandbox, done.order_id)).toEqual(['NEW', 'PENDING', 'EXCHANGE', 'WITHDRAW', 'DONE'])
})

test('a frozen destination node makes the order wait; it goes on when the node wakes up', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, bnbToEth)
  await sandbox.settle()
  const pid = pidOf(sandbox, 'ETH')
  process.kill(pid, 'SIGSTOP')
  try {
    await payAndBury(sandbox, order)
    await sandbox.waitForStatus(order.order_id, 'EXCHANGE')
    const hasty = hastyClient(sandbox)
    await sandbox.eventually('nothing is quoted to a chain that is away', async () => {
      await expect(hasty.getRate({ from: 'BNB', to: 'ETH', amount: 1 })).rejects.toMatchObject({
        code: 'MAINTENANCE',
      })
    })
    expect((await sandbox.client.getOrder(order.order_id)).status).toBe('EXCHANGE')
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(order.receive_amount)
})

test('a deposit made in time while our node was away is in time, although we see it after the expiry', async () => {
  const sandbox = given()
  const line = lineTo('BTC')
  const { clock } = sandbox.service.world
  const order = await payUnseen(sandbox, line)
  await sandbox.eventually('the time is up', () =>
    expect(clock.nowMs()).toBeGreaterThan(Date.parse(order.expires_at) + 1_000),
  )
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('NEW')
  line.meddle(null)
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  await sandbox.mine('BTC', 5)
  await expectPaidOut(sandbox, order)
  expect(await statusesOf(sandbox, order.order_id)).toEqual([
    'NEW',
    'PENDING',
    'EXCHANGE',
    'WITHDRAW',
    'DONE',
  ])
})

/** An order whose payment is in a block of the time that it was open, while the service hears nothing from its node. */
async function payUnseen(sandbox: TestSandbox, line: HttpLine): Promise<CreatedOrder> {
  const { devnet, service } = sandbox
  // Where this process stands still meanwhile the block comes too late: then another order is paid.
  for (let round = 1; ; round += 1) {
    line.meddle(null)
    const order = await createOrder(sandbox, btcToUsdt, { rate_type: 'float' })
    line.meddle(() => 'drop_reply')
    const units = chainUnits(order.deposit_amount, 'BTC', 'BTC')
    await devnet.send('BTC', 'BTC', order.deposit_address, units)
    await sandbox.mine('BTC', 1)
    const hash = await devnet.bitcoin.rpc<string>('getbestblockhash')
    const { time } = await devnet.bitcoin.rpc<{ time: number }>('getblockheader', [hash])
    if (service.world.clock.fromWallMs(time * 1_000) < Date.parse(order.expires_at)) return order
    expect(round, 'every block comes too late').toBeLessThan(5)
  }
}

test('a contract that refuses to be paid is a DESTINATION_PROBLEM; the refund works', async () => {
  const sandbox = given()
  const { address } = await deployRejecting(sandbox)
  const order = await createOrder(sandbox, bnbToEth, { destination: address })
  await payAndBury(sandbox, order)
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['DESTINATION_PROBLEM'])
  expect(stuck.withdraw_tx_hash).toBeNull()
  sandbox.log('continuing comes to the same; refunding ends it')
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })
  await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  const refund_address = await sandbox.remote.freshAddress('BNB')
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'refund', refund_address })
  await expectRefunded(sandbox, order)
  expect(await balanceOf(sandbox, address, 'ETH', 'ETH')).toBe(0n)
})

test('a refund to an address that refuses it asks again, and another address ends it', async () => {
  const sandbox = given()
  const { address } = await deployRejecting(sandbox)
  const stuck = await createUnderpaid(sandbox, ethToUsdc, '0.1', { refund_address: address })
  await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'refund' })
  const again = await sandbox.waitForStatus(stuck.order_id, 'EMERGENCY')
  expect(again.emergency?.reasons).toContain('DESTINATION_PROBLEM')
  const refund_address = await sandbox.remote.freshAddress('ETH')
  await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'refund', refund_address })
  const refunded = await expectRefunded(sandbox, stuck)
  expect(refunded.refund?.address).toBe(refund_address)
  expect(await balanceOf(sandbox, address, 'ETH', 'ETH')).toBe(0n)
})

test('a payout that the chain executes and rejects is a DESTINATION_PROBLEM; its cost is booked', async () => {
  const sandbox = given()
  const { client } = sandbox.devnet.evm('ETH')
  const { code } = await deployRejecting(sandbox)
  const order = await createOrder(sandbox, bnbToEth)
  await payAndBury(sandbox, order)
  await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  sandbox.log('the destination becomes a contract that refuses, while the payout waits in the mempool')
  await client.setCode({ address: order.destination as Address, bytecode: code })
  await sandbox.bury('ETH')
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['DESTINATION_PROBLEM'])
  expect(await balanceOf(sandbox, order.destination, 'ETH', 'ETH')).toBe(0n)
  expect(await bookedFor(sandbox, order.order_id, 'network_costs', 'ETH:ETH')).toBeGreaterThan(0n)
  expect(await bookedFor(sandbox, order.order_id, 'payouts_owed', 'ETH:ETH')).toBe(0n)
  const refund_address = await sandbox.remote.freshAddress('BNB')
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'refund', refund_address })
  await expectRefunded(sandbox, order)
})

/** In EXCHANGE, tried at least once, and told to wait. */
async function expectWaiting(sandbox: TestSandbox, orderId: string): Promise<Order> {
  await sandbox.eventually(`${orderId} waits`, async () => {
    const [row] = await sandbox.rows<{ since: number | null; status: string }>(
      `SELECT coalesce(o.exchange_trouble_since_ms, f.trouble_since_ms) AS since, o.status
       FROM orders o LEFT JOIN outflows f ON f.payout_id = o.payout_id WHERE o.order_id = $1`,
      [orderId],
    )
    expect(row?.status).toBe('EXCHANGE')
    expect(row?.since ?? null).not.toBeNull()
  })
  return sandbox.waitForStatus(orderId, 'EXCHANGE')
}

/** Nothing is planned for it: it was looked at and put off again after this moment. */
async function expectTriedAgain({ rows, eventually }: TestSandbox, orderId: string): Promise<void> {
  const dueAt = async () => {
    const [order] = await rows<{ due: number; outflows: number }>(
      `SELECT exchange_due_at_ms AS due,
         (SELECT count(*)::int FROM outflows f WHERE f.order_id = o.order_id) AS outflows
       FROM orders o WHERE order_id = $1`,
      [orderId],
    )
    expect(order?.outflows).toBe(0)
    return order?.due ?? 0
  }
  const before = await dueAt()
  await eventually('it is tried again', async () => expect(await dueAt()).toBeGreaterThan(before))
}

async function fundReserve(sandbox: TestSandbox, units: bigint): Promise<void> {
  const [reserve] = await sandbox.rows<{ address: string }>(
    "SELECT address FROM addresses WHERE family = 'evm' AND purpose = 'reserve'",
  )
  await sandbox.devnet.send('ETH', 'USDT', reserve?.address ?? '', units)
  await sandbox.bury('ETH')
}

async function deployRejecting(sandbox: TestSandbox): Promise<{ address: Address; code: Hex }> {
  const { client, contracts } = sandbox.devnet.evm('ETH')
  const { abi, bytecode } = contracts.RejectingReceiver
  const hash = await client.deployContract({ abi, bytecode })
  await sandbox.mine('ETH', 1)
  const { contractAddress: address } = await client.getTransactionReceipt({ hash })
  const code = address && (await client.getCode({ address }))
  if (!address || !code) throw new Error('nothing was deployed')
  return { address, code }
}

/** Tells at once what others would try again. */
function hastyClient({ baseUrl, account }: TestSandbox) {
  return createClient({ baseUrl, apiKey: account.api_key, apiSecret: account.api_secret, retries: 0 })
}

function pidOf({ devnet }: TestSandbox, network: ChainId): number {
  const node = devnet.processes.find((process) => process.network === network)
  if (node === undefined) throw new Error(`${network} does not run`)
  return node.pid
}

function lineTo(chain: ChainId): HttpLine {
  const line = lines.get(chain)
  if (line === undefined) throw new Error(`there is no line to ${chain}`)
  return line
}

function raise(): never {
  throw new Error('one order waits')
}
