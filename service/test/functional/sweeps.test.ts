import type { CreatedOrder } from '@cambist/sdk'
import { expect, test } from 'vitest'
import { balanceOf, chainUnits, send } from '../harness/amounts.ts'
import {
  bnbToEth,
  bookedFor,
  createOrder,
  createUnderpaid,
  depositsOf,
  ethToUsdc,
  expectPaidOut,
  payAndBury,
  usdcToBnb,
  usdtToBtc,
} from '../harness/orders.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: what customers paid in moves from its deposit address to the reserve when that is worth it, to the unit, once,
 * and no order, no customer and no book notices anything but the network's cost.
 * How: real anvils; balances are read from the nodes, costs from the receipts. After the file, ledger and chain agree.
 */
const given = useTestSandbox({ policy: { restMs: 200, sweepCostMultiple: 10n, sweepRestMs: 200 } })

type Sweep = {
  payout_id: string
  asset: string
  state: string
  address: string
  from_address: string | null
  tx_hash: string | null
}

/** Every sweep out of an address and everything that brought it gas, in the order of their making. */
function sweepsOf({ rows }: TestSandbox, address: string): Promise<Sweep[]> {
  return rows<Sweep>(
    `SELECT o.*, a.tx_hash FROM outflows o LEFT JOIN attempts a USING (bucket, payout_id)
     WHERE o.kind = 'sweep' AND $1 IN (o.from_address, o.address) AND o.state <> 'cancelled'
     ORDER BY o.planned_at_ms, a.attempt`,
    [address],
  )
}

/** The newest sweep in this state, with its hash. */
async function waitForSweep(sandbox: TestSandbox, address: string, state: string, count = 1) {
  return sandbox.eventually(`sweep ${count} of ${address} is ${state}`, async () => {
    const sweeps = await sweepsOf(sandbox, address)
    expect(sweeps.map((sweep) => sweep.state)).toHaveLength(count)
    const last = sweeps.at(-1)
    expect(last?.state).toBe(state)
    return { ...last, tx_hash: last?.tx_hash ?? '' }
  })
}

async function reserveOf({ rows }: TestSandbox): Promise<string> {
  const [reserve] = await rows<{ address: string }>(
    `SELECT address FROM addresses WHERE family = 'evm' AND purpose = 'reserve'`,
  )
  return reserve?.address ?? ''
}

/** What a mined transaction moved of the coin, and what it cost. */
async function receiptOf({ devnet }: TestSandbox, hash: string) {
  const { client } = devnet.evm('ETH')
  const tx = await client.getTransaction({ hash: hash as `0x${string}` })
  const { gasUsed, effectiveGasPrice, status } = await client.getTransactionReceipt({
    hash: hash as `0x${string}`,
  })
  return { value: tx.value, cost: gasUsed * effectiveGasPrice, status, gasPrice: effectiveGasPrice }
}

/** It was looked at and found not worth it: due soon after it was booked, and not a minute later as while it is looked at. */
async function expectRested({ eventually, rows }: TestSandbox, address: string): Promise<void> {
  await eventually(`${address} was looked at and rests`, async () => {
    const [row] = await rows<{ rests: number }>(
      'SELECT (due_at_ms - booked_at_ms)::int AS rests FROM unswept_addresses WHERE address = $1',
      [address],
    )
    expect(row?.rests).toBeGreaterThan(0)
    expect(row?.rests).toBeLessThan(30_000)
  })
}

/** No order heard of our own transactions, and none of them is anybody's money. */
async function expectUnnoticed(sandbox: TestSandbox, order: CreatedOrder, before: unknown): Promise<void> {
  const { rows } = sandbox
  expect(await sandbox.client.getOrder(order.order_id)).toEqual(before)
  const hashes = (await sweepsOf(sandbox, order.deposit_address)).map(({ tx_hash }) => tx_hash)
  expect(await rows('SELECT * FROM deposits WHERE tx_hash = ANY($1)', [hashes])).toEqual([])
  expect(await rows('SELECT * FROM house_deposits WHERE tx_hash = ANY($1)', [hashes])).toEqual([])
}

/** What the house paid networks for this outflow. */
async function bookedCost({ rows }: TestSandbox, payoutId: string | undefined): Promise<bigint[]> {
  const found = await rows<{ units: bigint }>(
    `SELECT units FROM journal WHERE entry_key = $1 || ':confirmed' AND debit = 'network_costs'
       AND credit = 'wallet' AND owner = 'house'`,
    [payoutId],
  )
  return found.map(({ units }) => units)
}

test('an ETH deposit is in the reserve after DONE, all but the gas', async () => {
  const sandbox = given()
  const reserve = await reserveOf(sandbox)
  const order = await createOrder(sandbox, ethToUsdc)
  await payAndBury(sandbox, order)
  const done = await expectPaidOut(sandbox, order)
  const sent = await waitForSweep(sandbox, order.deposit_address, 'broadcast')
  const before = await balanceOf(sandbox, reserve, 'ETH', 'ETH')
  await sandbox.bury('ETH')
  const sweep = await waitForSweep(sandbox, order.deposit_address, 'confirmed')
  expect(sweep).toMatchObject({
    address: reserve,
    from_address: order.deposit_address,
    tx_hash: sent.tx_hash,
  })

  const { value, cost } = await receiptOf(sandbox, sweep.tx_hash)
  const paid = chainUnits(order.deposit_amount, 'ETH', 'ETH')
  expect((await balanceOf(sandbox, reserve, 'ETH', 'ETH')) - before).toBe(value)
  expect(await balanceOf(sandbox, order.deposit_address, 'ETH', 'ETH')).toBe(paid - value - cost)
  expect(value).toBeGreaterThan((paid * 99n) / 100n)
  expect(await bookedCost(sandbox, sweep.payout_id)).toEqual([cost])
  await expectUnnoticed(sandbox, order, done)
})

test('a USDC deposit gets its gas from the reserve and is there whole', async () => {
  const sandbox = given()
  const reserve = await reserveOf(sandbox)
  const order = await createOrder(sandbox, usdcToBnb)
  await payAndBury(sandbox, order)
  const done = await expectPaidOut(sandbox, order)
  const gas = await waitForSweep(sandbox, order.deposit_address, 'broadcast')
  expect(gas).toMatchObject({ asset: 'ETH:ETH', address: order.deposit_address, from_address: null })
  const coinBefore = await balanceOf(sandbox, reserve, 'ETH', 'ETH')
  const tokensBefore = await balanceOf(sandbox, reserve, 'USDC', 'ERC20')
  await sandbox.bury('ETH')
  const sweep = await waitForSweep(sandbox, order.deposit_address, 'broadcast', 2)
  expect(sweep).toMatchObject({ asset: 'USDC:ERC20', address: reserve, from_address: order.deposit_address })
  await sandbox.bury('ETH')
  await waitForSweep(sandbox, order.deposit_address, 'confirmed', 2)

  const paid = chainUnits(order.deposit_amount, 'USDC', 'ERC20')
  expect((await balanceOf(sandbox, reserve, 'USDC', 'ERC20')) - tokensBefore).toBe(paid)
  expect(await balanceOf(sandbox, order.deposit_address, 'USDC', 'ERC20')).toBe(0n)
  const brought = await receiptOf(sandbox, gas.tx_hash)
  const swept = await receiptOf(sandbox, sweep.tx_hash)
  expect(coinBefore - (await balanceOf(sandbox, reserve, 'ETH', 'ETH'))).toBe(brought.value + brought.cost)
  const left = await balanceOf(sandbox, order.deposit_address, 'ETH', 'ETH')
  expect(left).toBe(brought.value - swept.cost)
  expect(await bookedCost(sandbox, gas.payout_id)).toEqual([brought.cost])
  expect(await bookedCost(sandbox, sweep.payout_id)).toEqual([swept.cost])
  await expectUnnoticed(sandbox, order, done)
  expect(await depositsOf(sandbox, order.order_id)).toHaveLength(1)
})

test('on BNB Smart Chain it is the same, with 18 decimals', async () => {
  const sandbox = given()
  const reserve = await reserveOf(sandbox)
  const token = await createOrder(sandbox, usdtToBtc)
  const coin = await createOrder(sandbox, bnbToEth)
  await sandbox.remote.pay(coin.order_id)
  const before = await balanceOf(sandbox, reserve, 'USDT', 'BEP20')
  await payAndBury(sandbox, token)
  await waitForSweep(sandbox, coin.deposit_address, 'broadcast')
  await waitForSweep(sandbox, token.deposit_address, 'broadcast')
  await sandbox.bury('BNB')
  await waitForSweep(sandbox, coin.deposit_address, 'confirmed')
  await waitForSweep(sandbox, token.deposit_address, 'broadcast', 2)
  await sandbox.bury('BNB')
  await waitForSweep(sandbox, token.deposit_address, 'confirmed', 2)
  const paid = chainUnits(token.deposit_amount, 'USDT', 'BEP20')
  expect((await balanceOf(sandbox, reserve, 'USDT', 'BEP20')) - before).toBe(paid)
  expect(await balanceOf(sandbox, coin.deposit_address, 'BNB', 'BNB')).toBeLessThan(10n ** 15n)
  for (const order of [token, coin]) await expectPaidOut(sandbox, order)
})

test('reserves that quotes are made from rise by what was swept', async () => {
  const sandbox = given()
  const spendable = async () => {
    await sandbox.settle('ETH')
    const [row] = await sandbox.rows<{ spendable: bigint }>(
      `SELECT spendable FROM reserves WHERE asset = 'ETH:ETH'`,
    )
    return row?.spendable ?? 0n
  }
  const order = await createOrder(sandbox, ethToUsdc, { amount: '1.5' })
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
  await waitForSweep(sandbox, order.deposit_address, 'broadcast')
  const reserve = await reserveOf(sandbox)
  const before = await balanceOf(sandbox, reserve, 'ETH', 'ETH')
  await sandbox.bury('ETH')
  const { tx_hash } = await waitForSweep(sandbox, order.deposit_address, 'confirmed')
  const { value } = await receiptOf(sandbox, tx_hash)
  await sandbox.eventually('the reserve says so', async () => {
    expect(await spendable()).toBe(before + value)
  })
})

test('a second deposit to the same address is swept as well, and stays unclaimed', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, ethToUsdc)
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
  await waitForSweep(sandbox, order.deposit_address, 'broadcast')
  await sandbox.bury('ETH')
  await waitForSweep(sandbox, order.deposit_address, 'confirmed')
  sandbox.log('the customer pays once more')
  await payAndBury(sandbox, order, '0.5')
  await waitForSweep(sandbox, order.deposit_address, 'broadcast', 2)
  await sandbox.bury('ETH')
  await waitForSweep(sandbox, order.deposit_address, 'confirmed', 2)
  expect(await bookedFor(sandbox, order.order_id, 'unclaimed', 'ETH:ETH')).toBe(-5n * 10n ** 17n)
  expect(await balanceOf(sandbox, order.deposit_address, 'ETH', 'ETH')).toBeLessThan(10n ** 16n)
})

test('what lies at the address of an order that waits for a choice is swept, and the choice is paid all the same', async () => {
  const sandbox = given()
  const order = await createUnderpaid(sandbox, ethToUsdc, '0.2')
  await waitForSweep(sandbox, order.deposit_address, 'broadcast')
  await sandbox.bury('ETH')
  await waitForSweep(sandbox, order.deposit_address, 'confirmed')
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('EMERGENCY')
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })
  await expectPaidOut(sandbox, order)
})

test('a stray token at an address that no order has is swept; one that is not worth its gas, never', async () => {
  const sandbox = given()
  const [next] = await sandbox.rows<{ address: string }>(
    `SELECT address FROM addresses WHERE family = 'evm' AND purpose = 'deposit' AND assigned_at_ms IS NULL
     ORDER BY key_index DESC LIMIT 1`,
  )
  const address = next?.address ?? ''
  const order = await createOrder(sandbox, ethToUsdc)
  await send(sandbox, 'ERC20', 'USDC', address, '500')
  sandbox.log('a cent is less than ten times its gas')
  await send(sandbox, 'ERC20', 'USDC', order.deposit_address, '0.01')
  await sandbox.bury('ETH')
  await waitForSweep(sandbox, address, 'broadcast')
  await sandbox.bury('ETH')
  await waitForSweep(sandbox, address, 'broadcast', 2)
  await sandbox.bury('ETH')
  await waitForSweep(sandbox, address, 'confirmed', 2)
  expect(await balanceOf(sandbox, address, 'USDC', 'ERC20')).toBe(0n)
  await expectRested(sandbox, order.deposit_address)
  expect(await sweepsOf(sandbox, order.deposit_address)).toEqual([])
})

test('while fees are high a deposit waits, and is swept when they have fallen', async () => {
  const sandbox = given()
  const { client } = sandbox.devnet.evm('ETH')
  const { baseFeePerGas } = await client.getBlock()
  const order = await createOrder(sandbox, ethToUsdc, { amount: '0.05' })
  await sandbox.remote.pay(order.order_id)
  await sandbox.mine('ETH', 11)
  sandbox.log('200 gwei: moving the deposit would cost more than a tenth of it')
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 200n * 10n ** 9n })
  await sandbox.mine('ETH', 1)
  await expectRested(sandbox, order.deposit_address)
  expect(await sweepsOf(sandbox, order.deposit_address)).toEqual([])
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas: baseFeePerGas ?? 1n })
  await sandbox.mine('ETH', 1)
  await waitForSweep(sandbox, order.deposit_address, 'broadcast')
  await sandbox.bury('ETH')
  await waitForSweep(sandbox, order.deposit_address, 'confirmed')
  await expectPaidOut(sandbox, order)
})

test('a sweep that waits too long pays a higher fee out of what it moves', async () => {
  const sandbox = given()
  const { client } = sandbox.devnet.evm('ETH')
  const reserve = await reserveOf(sandbox)
  const order = await createOrder(sandbox, ethToUsdc)
  await payAndBury(sandbox, order)
  const slow = await waitForSweep(sandbox, order.deposit_address, 'broadcast')
  sandbox.log('the base fee rises above what the sweep bids; four minutes pass')
  const { maxFeePerGas } = await client.getTransaction({ hash: slow.tx_hash as `0x${string}` })
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas: (maxFeePerGas ?? 0n) * 3n })
  await sandbox.mine('ETH', 1)
  await sandbox.remote.advanceClock(240)
  await sandbox.eventually('it was sent again', async () => {
    const attempts = await sweepsOf(sandbox, order.deposit_address)
    expect(attempts.map(({ state }) => state)).toEqual(['broadcast', 'broadcast'])
    expect(attempts[1]?.tx_hash).not.toBeNull()
    await client.getTransaction({ hash: attempts[1]?.tx_hash as `0x${string}` })
  })
  const before = await balanceOf(sandbox, reserve, 'ETH', 'ETH')
  await sandbox.bury('ETH')
  await sandbox.eventually('it is confirmed', async () => {
    const attempts = await sweepsOf(sandbox, order.deposit_address)
    expect(attempts.map(({ state }) => state)).toEqual(['confirmed', 'confirmed'])
  })
  const [, raised] = await sweepsOf(sandbox, order.deposit_address)
  const { value, cost } = await receiptOf(sandbox, raised?.tx_hash ?? '')
  expect((await balanceOf(sandbox, reserve, 'ETH', 'ETH')) - before).toBe(value)
  expect(await bookedCost(sandbox, raised?.payout_id)).toEqual([cost])
  await expectPaidOut(sandbox, order)
})

test('a sweep that a reorganisation takes out of its block is sent again and arrives once', async () => {
  const sandbox = given()
  const reserve = await reserveOf(sandbox)
  const order = await createOrder(sandbox, ethToUsdc)
  await payAndBury(sandbox, order)
  const done = await expectPaidOut(sandbox, order)
  const sent = await waitForSweep(sandbox, order.deposit_address, 'broadcast')
  const before = await balanceOf(sandbox, reserve, 'ETH', 'ETH')
  await sandbox.mine('ETH', 3)
  expect(await balanceOf(sandbox, reserve, 'ETH', 'ETH')).toBeGreaterThan(before)
  await sandbox.settle('ETH')
  await sandbox.remote.reorg('ETH', 3)
  expect(await balanceOf(sandbox, reserve, 'ETH', 'ETH')).toBe(before)
  await sandbox.eventually('it is mined again, and deep', async () => {
    await sandbox.mine('ETH', 1)
    expect(await sweepsOf(sandbox, order.deposit_address)).toMatchObject([
      { state: 'confirmed', tx_hash: sent.tx_hash },
    ])
  })
  const { value } = await receiptOf(sandbox, sent.tx_hash)
  expect((await balanceOf(sandbox, reserve, 'ETH', 'ETH')) - before).toBe(value)
  await expectUnnoticed(sandbox, order, done)
})

test('a sweep that was final and loses its block is sent again, and nothing else is swept before it', async () => {
  const sandbox = given()
  const reserve = await reserveOf(sandbox)
  const order = await createOrder(sandbox, usdcToBnb)
  await payAndBury(sandbox, order)
  const done = await expectPaidOut(sandbox, order)
  sandbox.log('the reserve brings gas, then the token is swept')
  const swept = () => sweepsOf(sandbox, order.deposit_address)
  for (const count of [1, 2]) {
    await waitForSweep(sandbox, order.deposit_address, 'broadcast', count)
    await sandbox.bury('ETH')
    // The token may be on its way before anybody has looked at what became of the gas.
    await sandbox.eventually(`step ${count} is final`, async () => {
      expect((await swept())[count - 1]?.state).toBe('confirmed')
    })
  }
  const before = await swept()
  const held = await balanceOf(sandbox, reserve, 'USDC', 'ERC20')
  sandbox.log('as deep as the gas lies')
  const { client } = sandbox.devnet.evm('ETH')
  const { blockNumber } = await client.getTransactionReceipt({ hash: before[0]?.tx_hash as `0x${string}` })
  await sandbox.remote.reorg('ETH', Number((await client.getBlockNumber()) - blockNumber) + 1)
  expect(await balanceOf(sandbox, reserve, 'USDC', 'ERC20')).toBeLessThan(held)
  const bothAre = (state: string) =>
    sandbox.eventually(`both are ${state}`, async () => {
      expect((await swept()).map((sweep) => sweep.state)).toEqual([state, state])
    })
  await bothAre('orphaned')
  await sandbox.eventually('both are mined again', async () => {
    await sandbox.mine('ETH', 1)
    expect(await balanceOf(sandbox, reserve, 'USDC', 'ERC20')).toBe(held)
  })
  await sandbox.bury('ETH')
  await bothAre('confirmed')
  expect(await swept()).toMatchObject(before.map(({ payout_id, tx_hash }) => ({ payout_id, tx_hash })))
  await expectUnnoticed(sandbox, order, done)
})

test('two engines sweep everything once', async () => {
  const sandbox = given()
  const other = await sandbox.startAnother(['engine', 'signer'])
  try {
    const orders = []
    for (let at = 0; at < 6; at += 1) {
      orders.push(await createOrder(sandbox, at % 2 === 0 ? ethToUsdc : usdcToBnb))
    }
    for (const order of orders) await sandbox.remote.pay(order.order_id)
    await sandbox.bury('ETH')
    for (const [at, order] of orders.entries()) {
      const steps = at % 2 === 0 ? 1 : 2
      await sandbox.eventually(`${order.deposit_address} is swept`, async () => {
        await sandbox.mine('ETH', 1)
        const sweeps = await sweepsOf(sandbox, order.deposit_address)
        expect(sweeps.map(({ state }) => state)).toEqual(Array(steps).fill('confirmed'))
      })
      const nonce = await sandbox.devnet
        .evm('ETH')
        .client.getTransactionCount({ address: order.deposit_address as `0x${string}` })
      expect(nonce).toBe(1)
    }
  } finally {
    await other.stop()
  }
})
