import { CambistError, type CreatedOrder } from '@cambist/sdk'
import { expect, onTestFinished, test } from 'vitest'
import { balanceOf, chainUnits } from '../harness/amounts.ts'
import { btcToUsdt, createOrder, quickPair, usdtToBtc } from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: several engines and watchers on one database do nothing twice.
 * How: three services on one sandbox; what was paid is read from the blocks. What becomes of those that are killed is
 * shown by `proof/crash.test.ts`.
 */
const given = useTestSandbox()

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
