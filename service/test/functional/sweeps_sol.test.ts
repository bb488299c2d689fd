import type { CreatedOrder } from '@cambist/sdk'
import { expect, test } from 'vitest'
import { balanceOf } from '../harness/amounts.ts'
import { createOrder, expectPaidOut, type Pair, payAndBury } from '../harness/orders.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: on Solana what customers paid in moves from its deposit address to the reserve: SOL pays for itself, and the reserve
 * pays for a token, so that nothing is brought first; what the network loses is planned anew, and arrives once.
 * How: the devnet's Solana. After the file, ledger and chain agree to the unit.
 */
const given = useTestSandbox({
  networks: ['BTC', 'ETH', 'BNB', 'SOL'],
  policy: { restMs: 200, sweepCostMultiple: 2n, sweepRestMs: 200 },
})

const solToBnb: Pair = { from: 'SOL', from_network: 'SOL', to: 'BNB', to_network: 'BNB' }
const usdcToBnb: Pair = { from: 'USDC', from_network: 'SOL', to: 'BNB', to_network: 'BNB' }

/** Every sweep out of an address and everything that brought it coin. */
function sweepsOf({ rows }: TestSandbox, address: string) {
  return rows<{ asset: string; state: string; to: string }>(
    `SELECT asset, state, CASE WHEN from_address IS NULL THEN 'address' ELSE 'reserve' END AS to
     FROM outflows WHERE kind = 'sweep' AND $1 IN (from_address, address) AND state <> 'cancelled'
     ORDER BY planned_at_ms`,
    [address],
  )
}

async function pay(sandbox: TestSandbox, pair: Pair): Promise<CreatedOrder> {
  const order = await createOrder(sandbox, pair)
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
  return order
}

async function mineUntilSwept(
  sandbox: TestSandbox,
  address: string,
  currency: 'SOL' | 'USDC',
): Promise<void> {
  await sandbox.eventually(
    `${address} is empty`,
    async () => {
      await sandbox.mine('SOL', 1)
      expect(await balanceOf(sandbox, address, currency, 'SOL')).toBe(0n)
      const live = (await sweepsOf(sandbox, address)).filter(({ state }) => !/confirmed|failed/.test(state))
      expect(live).toEqual([])
    },
    { timeoutMs: 60_000 },
  )
}

test('SOL goes to the last lamport, less its fee', async () => {
  const sandbox = given()
  const { deposit_address: address } = await pay(sandbox, solToBnb)
  await mineUntilSwept(sandbox, address, 'SOL')
  expect(await sweepsOf(sandbox, address)).toEqual([{ asset: 'SOL:SOL', state: 'confirmed', to: 'reserve' }])
})

test('a token goes without SOL at its address, which never becomes an account', async () => {
  const sandbox = given()
  const { deposit_address: address } = await pay(sandbox, usdcToBnb)
  await mineUntilSwept(sandbox, address, 'USDC')
  expect(await sweepsOf(sandbox, address)).toEqual([{ asset: 'USDC:SOL', state: 'confirmed', to: 'reserve' }])
  expect(await balanceOf(sandbox, address, 'SOL', 'SOL')).toBe(0n)
})

test('a sweep that the network loses is planned anew when its blockhash is too old, and arrives once', async () => {
  const sandbox = given()
  sandbox.devnet.trouble('SOL', { submits: Array.from({ length: 500 }, () => 'drop' as const) })
  const { deposit_address: address } = await pay(sandbox, solToBnb)
  await sandbox.eventually('it was sent', async () => {
    expect(await sweepsOf(sandbox, address)).toMatchObject([{ state: 'broadcast' }])
  })
  await sandbox.mine('SOL', 151)
  sandbox.devnet.trouble('SOL', null)
  await mineUntilSwept(sandbox, address, 'SOL')
  expect((await sweepsOf(sandbox, address)).map(({ state }) => state)).toEqual(['failed', 'confirmed'])
})

test('who adds a few lamports to what is being swept, too few to be an account, has them swept too', async () => {
  const sandbox = given()
  const { devnet } = sandbox
  devnet.trouble('SOL', { submits: Array.from({ length: 500 }, () => 'drop' as const) })
  const { deposit_address: address } = await pay(sandbox, solToBnb)
  await sandbox.eventually('it was sent', async () => {
    expect(await sweepsOf(sandbox, address)).toMatchObject([{ state: 'broadcast' }])
  })
  await devnet.send('SOL', 'SOL', address, 1_000n)
  await sandbox.mine('SOL', 1)
  devnet.trouble('SOL', null)
  await sandbox.mine('SOL', 151)
  await mineUntilSwept(sandbox, address, 'SOL')
  expect((await sweepsOf(sandbox, address)).map(({ state }) => state)).toEqual(['failed', 'confirmed'])
})
