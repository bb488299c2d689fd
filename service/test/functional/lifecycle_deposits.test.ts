import { expect, test } from 'vitest'
import { chainUnits, send } from '../harness/amounts.ts'
import {
  bnbToEth,
  bookedFor,
  btcToUsdt,
  createOrder,
  depositsOf,
  ethToUsdc,
  expectPaidOut,
  payAndBury,
  quickPair,
  statusesOf,
} from '../harness/orders.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: which money counts for an order, when it counts, and what becomes of all other money that reaches us.
 * How: real transactions from the faucet and from contracts; the tables and the ledger are read beside the interface.
 */
const given = useTestSandbox({ policy: { largeDeposits: { BTC: '0.5' } } })

/** Decimal text of so many satoshi. */
const btc = (satoshi: bigint) => `0.${String(satoshi).padStart(8, '0')}`

test('a deposit that was never in a mempool we saw is found in its block', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, ethToUsdc)
  const units = chainUnits(order.deposit_amount, 'ETH', 'ETH')
  sandbox.log('the node mines in the same request that brings the transaction')
  const client = sandbox.devnet.evm('ETH').client
  await client.setAutomine(true)
  await sandbox.devnet.send('ETH', 'ETH', order.deposit_address, units)
  await client.setAutomine(false)
  const pending = await sandbox.waitForStatus(order.order_id, 'PENDING')
  expect(pending.deposit_received).toBe(order.deposit_amount)
  await sandbox.bury('ETH')
  await expectPaidOut(sandbox, order)
})

test('confirmations are counted block by block', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  await sandbox.remote.pay(order.order_id)
  for (const expected of [1, 2]) {
    await sandbox.mine('BTC', 1)
    await sandbox.eventually(`${expected} confirmations are shown`, async () => {
      const now = await sandbox.client.getOrder(order.order_id)
      expect(now).toMatchObject({ status: 'PENDING', deposit_confirmations: expected })
    })
  }
  await sandbox.mine('BTC', 1)
  const sent = await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  expect(sent.deposit_confirmations).toBe(3)
  await expectPaidOut(sandbox, order)
})

test('from the configured amount on, a BTC deposit needs 6 confirmations', async () => {
  const sandbox = given()
  const below = await createOrder(sandbox, btcToUsdt, { amount: '0.49999999' })
  const large = await createOrder(sandbox, btcToUsdt, { amount: '0.5' })
  const required = async (id: string) => (await sandbox.client.getOrder(id)).deposit_required_confirmations
  expect(await required(below.order_id)).toBe(3)
  expect(await required(large.order_id)).toBe(6)

  await sandbox.remote.pay(below.order_id)
  await sandbox.remote.pay(large.order_id)
  await sandbox.mine('BTC', 5)
  await sandbox.waitForStatus(below.order_id, 'WITHDRAW')
  await sandbox.settle('BTC')
  const almost = await sandbox.client.getOrder(large.order_id)
  expect(almost).toMatchObject({ status: 'PENDING', deposit_confirmations: 5 })
  await sandbox.mine('BTC', 1)
  await expectPaidOut(sandbox, large)
  await sandbox.waitForStatus(below.order_id, 'DONE')
})

test('two deposits add up to what was asked', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  const total = chainUnits(order.deposit_amount, 'BTC', 'BTC')
  const first = await sandbox.remote.pay(order.order_id, btc(total / 3n))
  const half = await sandbox.waitForStatus(order.order_id, 'PENDING')
  expect(chainUnits(half.deposit_received, 'BTC', 'BTC')).toBe(total / 3n)
  await sandbox.mine('BTC', 1)
  await sandbox.remote.pay(order.order_id, btc(total - total / 3n))
  await sandbox.eventually('both are received', async () => {
    const now = await sandbox.client.getOrder(order.order_id)
    expect(now).toMatchObject({ deposit_received: order.deposit_amount, deposit_tx_hash: first })
  })
  sandbox.log('the younger one decides: two blocks on, the older has its three confirmations')
  await sandbox.mine('BTC', 2)
  await sandbox.eventually('the shallower deposit is what is shown', async () => {
    expect((await sandbox.client.getOrder(order.order_id)).deposit_confirmations).toBe(2)
  })
  await sandbox.settle()
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('PENDING')
  await sandbox.mine('BTC', 1)
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(order.receive_amount)
})

test('one satoshi short is UNDERPAID, one over is OVERPAID, and both are booked to the satoshi', async () => {
  const sandbox = given()
  const [short, over] = [await createOrder(sandbox, btcToUsdt), await createOrder(sandbox, btcToUsdt)]
  const asked = chainUnits(short.deposit_amount, 'BTC', 'BTC')
  await sandbox.remote.pay(short.order_id, btc(asked - 1n))
  await sandbox.remote.pay(over.order_id, btc(asked + 1n))
  await sandbox.bury('BTC')
  const underpaid = await sandbox.waitForStatus(short.order_id, 'EMERGENCY')
  const overpaid = await sandbox.waitForStatus(over.order_id, 'EMERGENCY')
  expect(underpaid.emergency?.reasons).toEqual(['UNDERPAID'])
  expect(overpaid.emergency?.reasons).toEqual(['OVERPAID'])
  expect(await bookedFor(sandbox, short.order_id, 'customer_deposits', 'BTC:BTC')).toBe(1n - asked)
  expect(await bookedFor(sandbox, over.order_id, 'customer_deposits', 'BTC:BTC')).toBe(-asked - 1n)
})

test('what is finer than the precision of the currency neither underpays nor overpays', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, bnbToEth, { amount: '1.5' })
  sandbox.log('one wei more than asked')
  await sandbox.devnet.send('BNB', 'BNB', order.deposit_address, 1_500_000_000_000_000_001n)
  await sandbox.bury('BNB')
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(order.receive_amount)
  expect(await bookedFor(sandbox, order.order_id, 'exchange_position', 'BNB:BNB')).toBe(
    -1_500_000_000_000_000_001n,
  )
})

test('ETH that a contract sends is credited like any other', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, ethToUsdc)
  const { client, contracts } = sandbox.devnet.evm('ETH')
  const payer = await deploy(sandbox, 'ETH', contracts.Payer)
  const hash = await client.writeContract({
    address: payer,
    abi: contracts.Payer.abi,
    functionName: 'forward',
    args: [order.deposit_address],
    value: chainUnits(order.deposit_amount, 'ETH', 'ETH'),
  })
  await sandbox.bury('ETH')
  const done = await expectPaidOut(sandbox, order)
  expect(done.deposit_tx_hash).toBe(hash)
})

test('a payment inside a call that is reverted is no payment', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, ethToUsdc)
  const { client, contracts } = sandbox.devnet.evm('ETH')
  const payer = await deploy(sandbox, 'ETH', contracts.Payer)
  await client.writeContract({
    address: payer,
    abi: contracts.Payer.abi,
    functionName: 'payAndRevertInside',
    args: [order.deposit_address],
    value: chainUnits(order.deposit_amount, 'ETH', 'ETH'),
  })
  await sandbox.bury('ETH')
  await sandbox.settle('ETH')
  expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({ status: 'NEW', deposit_received: 0 })
  sandbox.log('the true deposit afterwards is credited')
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
})

test('a deposit that a mempool promised and that fails in its block takes the order back to NEW', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair)
  const { client, contracts } = sandbox.devnet.evm('ETH')
  const txHash = await client.writeContract({
    address: sandbox.devnet.networks.ETH?.tokens.USDT.address ?? '0x',
    abi: contracts.TestToken.abi,
    functionName: 'transfer',
    args: [order.deposit_address, chainUnits(order.deposit_amount, 'USDT', 'ERC20')],
    gas: 30_000n,
  })
  await sandbox.waitForStatus(order.order_id, 'PENDING')
  sandbox.log('it runs out of gas')
  await sandbox.mine('ETH', 1)
  expect((await client.getTransactionReceipt({ hash: txHash })).status).toBe('reverted')
  await sandbox.eventually('nothing was received', async () => {
    expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({
      status: 'NEW',
      deposit_received: 0,
      deposit_tx_hash: null,
    })
  })
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
})

test('dust is recorded and changes nothing', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt)
  await sandbox.remote.pay(order.order_id, '0.00000999')
  await sandbox.bury('BTC')
  await sandbox.eventually('the dust is recorded', async () => {
    expect(await depositsOf(sandbox, order.order_id)).toMatchObject([{ role: 'dust', state: 'confirmed' }])
  })
  expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({
    status: 'NEW',
    deposit_received: 0,
    deposit_tx_hash: null,
  })
  expect(await bookedFor(sandbox, order.order_id, 'unclaimed', 'BTC:BTC')).toBe(-999n)
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
})

test('a rest that is dust completes its order', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, ethToUsdc, { amount: '0.5' })
  await payAndBury(sandbox, order, '0.49991')
  const short = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(short.emergency?.reasons).toEqual(['UNDERPAID'])
  await payAndBury(sandbox, order, '0.00009')
  const done = await expectPaidOut(sandbox, order)
  expect(done).toMatchObject({
    deposit_received: order.deposit_amount,
    receive_final_amount: order.receive_amount,
  })
  expect(await bookedFor(sandbox, order.order_id, 'unclaimed', 'ETH:ETH')).toBe(0n)
})

test('and so does one that came before the rest of the payment, and was booked as unclaimed', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, btcToUsdt, { amount: '0.05' })
  await payAndBury(sandbox, order, '0.00000999')
  await sandbox.eventually('it is recorded', async () => {
    expect(await depositsOf(sandbox, order.order_id)).toMatchObject([{ role: 'dust', state: 'confirmed' }])
  })
  await payAndBury(sandbox, order, '0.04999001')
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(order.receive_amount)
  expect(await statusesOf(sandbox, order.order_id)).not.toContain('EMERGENCY')
  expect(await bookedFor(sandbox, order.order_id, 'unclaimed', 'BTC:BTC')).toBe(0n)
})

test('another asset at the address of an order is unclaimed and never credited', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair)
  sandbox.log('USDC and ETH, where USDT is asked')
  await send(sandbox, 'ERC20', 'USDC', order.deposit_address, order.deposit_amount)
  await send(sandbox, 'ETH', 'ETH', order.deposit_address, '1')
  await sandbox.bury('ERC20')
  await sandbox.eventually('both are booked as unclaimed', async () => {
    expect(await depositsOf(sandbox, order.order_id)).toMatchObject([
      { role: 'foreign', state: 'confirmed' },
      { role: 'foreign', state: 'confirmed' },
    ])
  })
  expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({ status: 'NEW', deposit_received: 0 })
  expect(await bookedFor(sandbox, order.order_id, 'unclaimed', 'ETH:ETH')).toBe(-(10n ** 18n))
})

test('the right token on the wrong chain is unclaimed and never credited', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair)
  const txHash = await send(sandbox, 'BEP20', 'USDT', order.deposit_address, order.deposit_amount)
  await sandbox.bury('BEP20')
  await expectStray(sandbox, txHash, { kind: 'stray', asset: 'USDT:BEP20', order_id: order.order_id })
  expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({ status: 'NEW', deposit_received: 0 })
})

test('money to an address that no order has is unclaimed, and no later order is credited with it', async () => {
  const sandbox = given()
  const [next] = await sandbox.rows<{ address: string }>(
    `SELECT address FROM addresses WHERE family = 'bitcoin' AND purpose = 'deposit' AND assigned_at_ms IS NULL
     ORDER BY key_index LIMIT 1`,
  )
  const address = next?.address ?? ''
  const txHash = await send(sandbox, 'BTC', 'BTC', address, '0.01234567')
  await sandbox.bury('BTC')
  await expectStray(sandbox, txHash, { kind: 'stray', asset: 'BTC:BTC', order_id: null })
  const order = await createOrder(sandbox, btcToUsdt)
  expect(order.deposit_address).toBe(address)
  await sandbox.settle('BTC')
  expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({ status: 'NEW', deposit_received: 0 })
})

test('a token that we do not list is recorded and stays out of the books', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair)
  const { client, contracts } = sandbox.devnet.evm('ETH')
  const { address: owner } = client.account
  const token = await deploy(sandbox, 'ETH', contracts.TestToken, ['Tether USD', 'USDT', 6, owner])
  const txHash = await client.writeContract({
    address: token,
    abi: contracts.TestToken.abi,
    functionName: 'mint',
    args: [order.deposit_address, chainUnits(order.deposit_amount, 'USDT', 'ERC20')],
  })
  await sandbox.bury('ETH')
  await expectStray(sandbox, txHash, { kind: 'unlisted', order_id: order.order_id })
  expect(await sandbox.client.getOrder(order.order_id)).toMatchObject({ status: 'NEW', deposit_received: 0 })
  const journal = await sandbox.rows("SELECT * FROM journal WHERE entry_key LIKE '%' || $1 || '%'", [txHash])
  expect(journal).toEqual([])
})

test('a second deposit while the payout is on its way, and a third after it, are unclaimed', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair)
  await payAndBury(sandbox, order)
  await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  sandbox.log('the customer pays again')
  await payAndBury(sandbox, order)
  const done = await expectPaidOut(sandbox, order)
  expect(done.receive_final_amount).toBe(order.receive_amount)
  sandbox.log('and again, after DONE')
  await payAndBury(sandbox, order, 77)
  await sandbox.eventually('both are booked as unclaimed', async () => {
    const deposits = await depositsOf(sandbox, order.order_id)
    expect(deposits.map(({ role, state }) => `${role} ${state}`).sort()).toEqual([
      'counted confirmed',
      'extra confirmed',
      'extra confirmed',
    ])
  })
  const after = await sandbox.client.getOrder(order.order_id)
  expect(after).toMatchObject({ status: 'DONE', deposit_received: order.deposit_amount })
  expect(after.completed_at).toBe(done.completed_at)
  const unclaimed = chainUnits(order.deposit_amount, 'USDT', 'ERC20') + 77_000_000n
  expect(await bookedFor(sandbox, order.order_id, 'unclaimed', 'USDT:ERC20')).toBe(-unclaimed * 10n ** 12n)
  expect((await statusesOf(sandbox, order.order_id)).at(-1)).toBe('DONE')
})

type Artifact = { readonly abi: readonly unknown[]; readonly bytecode: `0x${string}` }

async function deploy(
  sandbox: TestSandbox,
  chain: 'ETH' | 'BNB',
  contract: Artifact,
  args: readonly unknown[] = [],
): Promise<`0x${string}`> {
  const { client } = sandbox.devnet.evm(chain)
  const hash = await client.deployContract({ abi: contract.abi, bytecode: contract.bytecode, args } as never)
  await sandbox.mine(chain, 1)
  const { contractAddress } = await client.getTransactionReceipt({ hash })
  if (contractAddress === null || contractAddress === undefined) throw new Error('nothing was deployed')
  return contractAddress
}

/** Recorded for the operator, final, and for nobody's benefit. */
async function expectStray(
  { rows, eventually }: TestSandbox,
  txHash: string,
  expected: object,
): Promise<void> {
  await eventually(`${txHash} is recorded as unclaimed`, async () => {
    expect(await rows('SELECT * FROM house_deposits WHERE tx_hash = $1', [txHash])).toMatchObject([
      { ...expected, state: 'confirmed' },
    ])
  })
}
