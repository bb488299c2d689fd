import type { CreatedOrder } from '@cambist/sdk'
import pg from 'pg'
import type { Hex } from 'viem'
import { beforeEach, expect, test } from 'vitest'
import { balanceOf, chainUnits } from '../harness/amounts.ts'
import { checkInvariants } from '../harness/invariants.ts'
import {
  bnbToEth,
  bookedFor,
  btcToUsdt,
  createOrder,
  depositsOf,
  ethToUsdc,
  expectPaidOut,
  expectRefunded,
  payAndBury,
  quickPair,
  statusesOf,
  usdtToBtc,
} from '../harness/orders.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: deposits that are replaced, dropped or reorganised take their order back, and forth again when they return;
 * payouts that a reorganisation drops are sent again, the same bytes.
 * How: real double spends and real reorganisations: bitcoind gives the transactions back to the mempool, anvil drops them.
 */
const given = useTestSandbox()

const STALL_SECONDS = 30 * 60

/** After a deep reorganisation nothing leaves on the word of a chain for a while: that is over before each test. */
beforeEach(async () => {
  // The deepest ones take deposits of orders that were paid already.
  given().expectError('a deposit lost its block, and what was paid for it may have left')
  await given().mine('BTC', 6)
})

test('a deposit replaced by one to somebody else takes the order back to NEW', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  const txHash = await sandbox.remote.pay(order.order_id)
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  await sandbox.remote.replace(txHash)
  await expectNothingReceived(sandbox, order)
  sandbox.log('nor does the block with the replacement change that')
  await sandbox.bury('BTC')
  await sandbox.settle('BTC')
  await expectNothingReceived(sandbox, order)
  expect(await statusesOf(sandbox, order.order_id)).toEqual(['NEW', 'PENDING', 'NEW'])
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
})

test('a deposit replaced by another amount counts with the other amount only', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  const txHash = await sandbox.remote.pay(order.order_id)
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  const { txHash: replacement } = await sandbox.devnet.replace(txHash, { units: 900_000n })
  await sandbox.eventually('only the replacement counts', async () => {
    expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({
      status: 'PENDING',
      deposit_received: 0.009,
      deposit_tx_hash: replacement,
    })
  })
  await sandbox.bury('BTC')
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['UNDERPAID'])
  expect(await bookedFor(sandbox, order.order_id, 'customer_deposits', 'BTC:BTC')).toBe(-900_000n)
})

test('a deposit whose fee is bumped is the same deposit under another hash', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  const txHash = await sandbox.remote.pay(order.order_id)
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  const { txHash: bumped } = await sandbox.devnet.replace(txHash, { feeBumpOnly: true })
  await sandbox.eventually('the order shows the new hash', async () => {
    expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({
      deposit_tx_hash: bumped,
      deposit_received: order.deposit_amount,
    })
  })
  await sandbox.bury('BTC')
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(order.receive_amount)
})

test('a replaced deposit on an account chain takes the order back to NEW', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, ethToUsdc)
  const txHash = await sandbox.remote.pay(order.order_id)
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  await sandbox.remote.replace(txHash)
  await expectNothingReceived(sandbox, order)
  await sandbox.bury('ETH')
  await sandbox.settle('ETH')
  await expectNothingReceived(sandbox, order)
})

test('an order whose deposit vanishes after its expiry expires', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  const txHash = await sandbox.remote.pay(order.order_id)
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  await sandbox.remote.advanceClock(16 * 60)
  await sandbox.settle('BTC')
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('PENDING')
  await sandbox.remote.replace(txHash)
  await sandbox.waitForStatus(order.order_id, 'EXPIRED')
})

test.each([1, 2])('a reorganisation %i deep takes the confirmations of a BTC deposit back', async (depth) => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  await sandbox.remote.pay(order.order_id)
  await sandbox.mine('BTC', depth)
  await expectConfirmations(sandbox, order, depth)
  sandbox.log('the blocks are replaced by empty ones; the deposit waits in the mempool again')
  await sandbox.remote.reorg('BTC', depth)
  await expectConfirmations(sandbox, order, 0)
  const [deposit] = await depositsOf(sandbox, order.order_id)
  expect(deposit).toMatchObject({ state: 'seen', role: 'counted' })
  sandbox.log('and forth again')
  await sandbox.mine('BTC', 2)
  await expectConfirmations(sandbox, order, 2)
  await sandbox.mine('BTC', 1)
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(order.receive_amount)
})

test('a BTC deposit orphaned and then spent elsewhere takes the order back to NEW', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  const txHash = await sandbox.remote.pay(order.order_id)
  await sandbox.mine('BTC', 2)
  await expectConfirmations(sandbox, order, 2)
  await sandbox.remote.reorg('BTC', 2)
  await sandbox.remote.replace(txHash)
  await expectNothingReceived(sandbox, order)
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
})

test('a branch that loses and then wins again gives the deposit its confirmations back', async () => {
  const sandbox = given()
  const { rpc } = sandbox.devnet.bitcoin
  const order = await createOrder(sandbox, btcToUsdt)
  await sandbox.remote.pay(order.order_id)
  await sandbox.mine('BTC', 2)
  await expectConfirmations(sandbox, order, 2)
  const height = await rpc<number>('getblockcount')
  const first = await rpc<string>('getblockhash', [height - 1])
  sandbox.log('branch B overtakes branch A')
  await sandbox.remote.reorg('BTC', 2)
  await expectConfirmations(sandbox, order, 0)
  sandbox.log('branch A, the very same blocks, overtakes branch B')
  await rpc('invalidateblock', [await rpc<string>('getblockhash', [height - 1])])
  await rpc('reconsiderblock', [first])
  expect(await rpc<string>('getblockhash', [height - 1])).toBe(first)
  await expectConfirmations(sandbox, order, 2)
  sandbox.log('and all of it once more')
  await sandbox.remote.reorg('BTC', 2)
  await expectConfirmations(sandbox, order, 0)
  await rpc('invalidateblock', [await rpc<string>('getblockhash', [height - 1])])
  await rpc('reconsiderblock', [first])
  await expectConfirmations(sandbox, order, 2)
  sandbox.log('it is paid once the chain has grown again')
  await sandbox.mine('BTC', 6)
  await expectPaidOut(sandbox, order)
})

test('a block that leaves the chain while it is being read leaves nothing behind', async () => {
  const sandbox = given()
  const { rpc } = sandbox.devnet.bitcoin
  const order = await createOrder(sandbox, btcToUsdt)
  await sandbox.settle('BTC')
  const held = await holdCoins(sandbox)
  try {
    sandbox.log('the deposit of the block is told; the block itself cannot be ended')
    const txHash = await sandbox.remote.pay(order.order_id)
    await sandbox.mine('BTC', 1)
    await sandbox.eventually('the deposit is mined', async () => {
      expect(await depositsOf(sandbox, order.order_id)).toMatchObject([{ state: 'mined' }])
    })
    sandbox.log('meanwhile the block is orphaned and its deposit spent elsewhere; then the reading fails')
    await rpc('invalidateblock', [await rpc<string>('getbestblockhash')])
    await sandbox.remote.replace(txHash)
    await held.failWaiting()
  } finally {
    await held.release()
  }
  await sandbox.mine('BTC', 6)
  await sandbox.settle('BTC')
  await expectNothingReceived(sandbox, order)
  expect(await depositsOf(sandbox, order.order_id)).toMatchObject([{ state: 'vanished' }])
})

test('a deposit orphaned after its payout left is missing in the books until it is mined again', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  const paid = chainUnits(order.deposit_amount, 'BTC', 'BTC')
  await sandbox.remote.pay(order.order_id)
  await sandbox.mine('BTC', 3)
  await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  await sandbox.remote.reorg('BTC', 3)
  await sandbox.eventually('the deposit is missing', async () => {
    expect(await bookedFor(sandbox, order.order_id, 'orphaned_deposits', 'BTC:BTC')).toBe(paid)
  })
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('WITHDRAW')
  sandbox.log('the payout goes on, because only the chain could stop it')
  await sandbox.bury('ERC20')
  await sandbox.waitForStatus(order.order_id, 'DONE')
  expect(await bookedFor(sandbox, order.order_id, 'orphaned_deposits', 'BTC:BTC')).toBe(paid)
  await sandbox.bury('BTC')
  await sandbox.eventually('the deposit is back', async () => {
    expect(await bookedFor(sandbox, order.order_id, 'orphaned_deposits', 'BTC:BTC')).toBe(0n)
  })
  await sandbox.mine('BTC', 6)
})

test.each([1, 5, 11])('a reorganisation %i deep on an account chain drops the deposit', async (depth) => {
  const sandbox = given()
  const order = await createOrder(sandbox, ethToUsdc)
  const txHash = (await sandbox.remote.pay(order.order_id)) as Hex
  await sandbox.mine('ETH', depth)
  await expectConfirmations(sandbox, order, depth)
  const { client } = sandbox.devnet.evm('ETH')
  const raw = (await client.request({
    method: 'eth_getRawTransactionByHash',
    params: [txHash],
  } as never)) as Hex
  await sandbox.remote.reorg('ETH', depth)
  await expectNothingReceived(sandbox, order)
  sandbox.log('the sender broadcasts the same transaction again')
  await client.sendRawTransaction({ serializedTransaction: raw })
  await sandbox.mine('ETH', 1)
  await expectConfirmations(sandbox, order, 1)
  await sandbox.mine('ETH', 11)
  const done = await expectPaidOut(sandbox, order)
  expect(done).toMatchObject({ deposit_tx_hash: txHash, receive_final_amount: order.receive_amount })
})

test.each([
  ['an account chain', quickPair, 'BEP20', 4],
  ['Bitcoin', usdtToBtc, 'BTC', 2],
] as const)(
  'a payout that a reorganisation on %s takes out of its block is sent again and pays once',
  async (_where, pair, network, depth) => {
    const sandbox = given()
    const order = await createOrder(sandbox, pair)
    await payAndBury(sandbox, order)
    const sent = await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
    await sandbox.mine(network, depth)
    await sandbox.settle()
    await sandbox.remote.reorg(network, depth)
    await sandbox.eventually('the network has the payout again', async () => {
      const chain = [...sandbox.service.world.chains.values()].find(
        ({ id }) => id === (network === 'BTC' ? 'BTC' : 'BNB'),
      )
      expect((await chain?.lookup(sent.withdraw_tx_hash ?? ''))?.where).toBe('mempool')
    })
    const done = await expectPaidOut(sandbox, order)
    expect(done.withdraw_tx_hash).toBe(sent.withdraw_tx_hash)
  },
)

test.each([
  ['an account chain', quickPair, 'BEP20', 13],
  ['Bitcoin', usdtToBtc, 'BTC', 7],
] as const)(
  'a payout that was final and loses its block on %s is sent again, and its order stays DONE',
  async (_where, pair, network, depth) => {
    const sandbox = given()
    sandbox.log('the reserve lies deeper than what is taken')
    await sandbox.bury(network)
    const order = await createOrder(sandbox, pair)
    await payAndBury(sandbox, order)
    const done = await expectPaidOut(sandbox, order)
    sandbox.log('deeper than anybody waits for')
    await sandbox.remote.reorg(network, depth)
    const outflow = () =>
      sandbox.rows(
        `SELECT o.state, count(*) AS attempts FROM outflows o JOIN attempts USING (bucket, payout_id)
         WHERE order_id = $1 GROUP BY o.state`,
        [order.order_id],
      )
    await sandbox.eventually('the payout is on its way again', async () => {
      expect(await outflow()).toEqual([{ state: 'orphaned', attempts: 1 }])
      const chain = sandbox.service.world.chains.get(network === 'BTC' ? 'BTC' : 'BNB')
      expect((await chain?.lookup(done.withdraw_tx_hash ?? ''))?.where).toBe('mempool')
    })
    expect(await sandbox.client.getOrder(order.order_id)).toEqual(done)
    const { db, chains, clock } = sandbox.service.world
    await checkInvariants({ db, chains, clock, rows: sandbox.rows })
    await sandbox.bury(network)
    await sandbox.eventually('it is final again', async () => {
      expect(await outflow()).toEqual([{ state: 'confirmed', attempts: 1 }])
    })
    const currency = network === 'BTC' ? 'BTC' : 'USDC'
    expect(await balanceOf(sandbox, order.destination, currency, network)).toBe(
      chainUnits(done.receive_final_amount, currency, network),
    )
    expect(await sandbox.client.getOrder(order.order_id)).toEqual(done)
  },
)

test('a payout out of a deposit that is gone for good asks anew, when that is proven and not before', async () => {
  const sandbox = given()
  const { client, remote, log } = sandbox
  log('two deposits, each of them the smallest coin that pays for one of two payouts')
  const sources = [
    await createOrder(sandbox, btcToUsdt, { amount: '0.05' }),
    await createOrder(sandbox, btcToUsdt, { amount: '0.06' }),
  ]
  const deposits: string[] = []
  for (const { order_id } of sources) deposits.push(await remote.pay(order_id))
  const [toContinue, toRefund] = [
    await createOrder(sandbox, usdtToBtc),
    await createOrder(sandbox, usdtToBtc),
  ]
  const orders = [toContinue, toRefund]
  for (const { order_id } of orders) await remote.pay(order_id)
  await sandbox.mine('BTC', 3)
  await Promise.all(sources.map(({ order_id }) => sandbox.waitForStatus(order_id, 'WITHDRAW')))
  await sandbox.bury('BEP20')
  await Promise.all(orders.map(({ order_id }) => sandbox.waitForStatus(order_id, 'WITHDRAW')))
  const payoutIds = orders.map(({ order_id }) => `${order_id}:1`)
  const spenders = () =>
    sandbox.rows<{ spent_by: string | null }>('SELECT spent_by FROM coins WHERE tx_hash = ANY($1)', [
      deposits,
    ])
  const takenBy = async () => (await spenders()).flatMap(({ spent_by }) => spent_by ?? [])
  expect((await takenBy()).toSorted(), 'the deposits pay').toEqual(payoutIds.toSorted())

  log('their blocks lose, and their senders spend the coins otherwise')
  await remote.reorg('BTC', 3)
  for (const txHash of deposits) await remote.replace(txHash)
  await sandbox.mine('BTC', 2)
  const outflows = (kind: string) =>
    sandbox.rows<{ state: string; trouble: string | null }>(
      `SELECT state, trouble FROM outflows
       WHERE kind = $1 AND (payout_id = ANY($2) OR fills = ANY($2)) ORDER BY payout_id`,
      [kind, payoutIds],
    )
  await sandbox.eventually('the network refuses them', async () => {
    const refused = { state: 'broadcast', trouble: expect.stringContaining('refuses') }
    expect(await outflows('payout')).toEqual([refused, refused])
  })
  await remote.advanceClock(STALL_SECONDS + 1)
  await sandbox.eventually('their fillers have nothing to spend', async () => {
    const waiting = { state: 'planned', trouble: expect.stringContaining('coins do not cover') }
    expect(await outflows('filler')).toEqual([waiting, waiting])
  })
  for (const { order_id } of orders) expect((await client.getOrder(order_id)).status).toBe('WITHDRAW')

  log('one block more, and what was spent otherwise is as deep as a deposit has to be')
  await sandbox.mine('BTC', 1)
  for (const { order_id } of orders) {
    const stuck = await sandbox.waitForStatus(order_id, 'EMERGENCY')
    expect(stuck.emergency?.reasons).toEqual(['NETWORK_PROBLEM'])
  }
  expect(await outflows('payout')).toMatchObject([{ state: 'failed' }, { state: 'failed' }])
  expect(await outflows('filler')).toMatchObject([{ state: 'cancelled' }, { state: 'cancelled' }])
  expect(await takenBy(), 'free, should they ever be mined').toEqual([])

  await sandbox.mine('BTC', 6)
  await client.chooseEmergencyAction(toContinue.order_id, { action: 'continue' })
  await expectPaidOut(sandbox, toContinue)
  const refund_address = await remote.freshAddress('BEP20')
  await client.chooseEmergencyAction(toRefund.order_id, { action: 'refund', refund_address })
  await expectRefunded(sandbox, toRefund)
  expect(await balanceOf(sandbox, toRefund.destination, 'BTC', 'BTC')).toBe(0n)
  await sandbox.bury('ERC20')
  await Promise.all(sources.map(({ order_id }) => sandbox.waitForStatus(order_id, 'DONE')))
})

test('two orders on two chains survive reorganisations of both at once', async () => {
  const sandbox = given()
  const [bitcoin, bnb] = await Promise.all([createOrder(sandbox, btcToUsdt), createOrder(sandbox, bnbToEth)])
  await Promise.all([sandbox.remote.pay(bitcoin.order_id), sandbox.remote.pay(bnb.order_id)])
  await Promise.all([sandbox.mine('BTC', 2), sandbox.mine('BNB', 2)])
  await Promise.all([sandbox.remote.reorg('BTC', 1), sandbox.remote.reorg('BNB', 1)])
  await Promise.all([sandbox.bury('BTC'), sandbox.bury('BNB')])
  await Promise.all([expectPaidOut(sandbox, bitcoin), expectPaidOut(sandbox, bnb)])
})

/** Holds what the end of reading a block writes, and nothing else; `failWaiting` breaks the connection that waits for it. */
async function holdCoins({ databaseUrl, eventually }: TestSandbox) {
  const holder = new pg.Client({ connectionString: databaseUrl })
  await holder.connect()
  await holder.query('BEGIN')
  await holder.query('LOCK TABLE coins IN SHARE ROW EXCLUSIVE MODE')
  return {
    failWaiting: () =>
      eventually('the reading waits and is broken', async () => {
        const { rowCount } = await holder.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))`,
        )
        expect(rowCount).toBeGreaterThan(0)
      }),
    release: () => holder.end(),
  }
}

async function expectConfirmations(sandbox: TestSandbox, order: CreatedOrder, count: number): Promise<void> {
  await sandbox.eventually(`the deposit has ${count} confirmations`, async () => {
    expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({
      status: 'PENDING',
      deposit_confirmations: count,
      deposit_received: order.deposit_amount,
    })
  })
}

async function expectNothingReceived(sandbox: TestSandbox, order: CreatedOrder): Promise<void> {
  await sandbox.eventually('the order is NEW, as if nothing had come', async () => {
    expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({
      status: 'NEW',
      deposit_received: 0,
      deposit_confirmations: 0,
      deposit_tx_hash: null,
    })
  })
}
