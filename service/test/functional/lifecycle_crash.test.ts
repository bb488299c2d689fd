import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removePostgres } from '@cambist/devnet'
import { CambistError, type CreatedOrder } from '@cambist/sdk'
import { expect, onTestFinished, test } from 'vitest'
import { balanceOf, chainUnits } from '../harness/amounts.ts'
import { eventually } from '../harness/eventually.ts'
import { btcToUsdt, createOrder, quickPair, usdtToBtc } from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { killAll, pidsOf, type RunningSandbox, startSandboxProcess } from './processes/running_sandbox.ts'

/**
 * What: a service killed in the middle of its work goes on where it was and pays once; several engines on one database
 * do nothing twice.
 * How: kill -9 of a real process at the moments when most can go wrong; what was paid is read from the blocks.
 */
const given = useTestSandbox()

test('orders survive kill -9 at every stage, and each is paid once', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-crash-'))
  let sandbox: RunningSandbox | null = null
  onTestFinished(async () => {
    await sandbox?.end('SIGKILL')
    killAll(pidsOf(dataDir))
    removePostgres(join(dataDir, 'postgres'))
    rmSync(dataDir, { recursive: true, force: true })
  })
  const start = () => startSandboxProcess(dataDir, { CAMBIST_RATE_LIMIT_UNITS_PER_MINUTE: '1000000' })
  let kills = 0
  let running = await start()
  sandbox = running
  const restart = async () => {
    expect(await running.end('SIGKILL')).toBe('SIGKILL')
    kills += 1
    running = await start()
    sandbox = running
  }
  const read = (order: CreatedOrder) => running.client.getOrder(order.order_id)
  const statuses = async () => (await Promise.all(orders.map(read))).map(({ status }) => status)

  const orders: CreatedOrder[] = []
  for (let count = 0; count < 5; count += 1) {
    const destination = await running.remote.freshAddress('BEP20')
    const amount = `${100 + count}`
    orders.push(await running.client.createOrder({ ...quickPair, amount, rate_type: 'fixed', destination }))
  }
  for (const { order_id } of orders) await running.remote.pay(order_id)
  // Killed with deposits in the mempool or just seen.
  await restart()
  expect(await statuses()).not.toContain('DONE')
  await running.remote.mine('ERC20', 12)
  // Killed while deposits are being confirmed, exchanged, signed.
  await restart()
  await eventually('some payout is sent', async () => expect(await statuses()).toContain('WITHDRAW'))
  // Killed with payouts between signed and broadcast.
  await restart()
  await eventually('every payout is sent', async () => {
    expect((await statuses()).every((status) => status === 'WITHDRAW' || status === 'DONE')).toBe(true)
  })
  await running.remote.mine('BEP20', 11)
  // Killed with payouts one block short of final.
  await restart()
  await running.remote.mine('BEP20', 2)
  await eventually('all are done', async () => expect(new Set(await statuses())).toEqual(new Set(['DONE'])))

  expect(kills).toBe(4)
  for (const order of orders) {
    const done = await read(order)
    expect(done.receive_final_amount).toBe(order.receive_amount)
    expect(await running.remote.balance('BEP20', order.destination, 'USDC')).toBe(order.receive_amount)
  }
  await running.end('SIGINT')
})

test('three engines and watchers on one database do nothing twice', async () => {
  const sandbox = given()
  const others = [
    await sandbox.startAnother(['watcher', 'engine', 'signer']),
    await sandbox.startAnother(['watcher', 'engine', 'signer']),
  ]
  onTestFinished(async () => {
    await Promise.all(others.map((service) => service.stop()))
  })
  const pairs = [quickPair, btcToUsdt, usdtToBtc]
  const orders = await Promise.all(
    Array.from({ length: 18 }, (_, index) => createOrder(sandbox, pairs[index % 3] ?? quickPair)),
  )
  const half = (order: CreatedOrder) => (order.deposit_amount / 2).toFixed(6)
  sandbox.log('every sixth is underpaid, and its customer chooses three times at once')
  await Promise.all(
    orders.map((order, index) =>
      sandbox.remote.pay(order.order_id, index % 6 === 0 ? half(order) : undefined),
    ),
  )
  await Promise.all((['BTC', 'ETH', 'BNB'] as const).map((chain) => sandbox.bury(chain)))
  for (const order of orders.filter((_, index) => index % 6 === 0)) {
    await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
    const choices = await Promise.allSettled(
      [1, 2, 3].map(() => sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })),
    )
    expect(choices.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const choice of choices) {
      if (choice.status === 'rejected') expect(choice.reason).toBeInstanceOf(CambistError)
    }
  }
  await Promise.all(orders.map(({ order_id }) => sandbox.waitForStatus(order_id, 'WITHDRAW')))
  await Promise.all((['BTC', 'ETH', 'BNB'] as const).map((chain) => sandbox.bury(chain)))
  for (const { order_id } of orders) {
    const done = await sandbox.waitForStatus(order_id, 'DONE')
    const [currency, network] = [done.receive_currency, done.receive_network] as
      | ['BTC', 'BTC']
      | ['USDT', 'ERC20']
      | ['USDC', 'BEP20']
    expect(await balanceOf(sandbox, done.destination, currency, network)).toBe(
      chainUnits(done.receive_final_amount, currency, network),
    )
  }
  const [made] = await sandbox.rows<{ outflows: number; attempts: number }>(
    `SELECT (SELECT count(*)::int FROM outflows) AS outflows, (SELECT count(*)::int FROM attempts) AS attempts`,
  )
  expect(made).toEqual({ outflows: 18, attempts: 18 })
})
