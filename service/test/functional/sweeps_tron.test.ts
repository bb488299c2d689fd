import type { CreatedOrder } from '@cambist/sdk'
import { expect, test } from 'vitest'
import { balanceOf } from '../harness/amounts.ts'
import { createOrder, expectPaidOut, type Pair, payAndBury } from '../harness/orders.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: on TRON what customers paid in moves from its deposit address to the reserve, a token with coin for its energy that
 * is brought first; what the network loses is planned anew, and arrives once.
 * How: the wire simulator of TRON. After the file, ledger and chain agree to the unit.
 */
const given = useTestSandbox({
  networks: ['BTC', 'ETH', 'BNB', 'TRX'],
  policy: { restMs: 200, sweepCostMultiple: 2n, sweepRestMs: 200 },
})

const trxToBnb: Pair = { from: 'TRX', from_network: 'TRX', to: 'BNB', to_network: 'BNB' }
const usdtToBnb: Pair = { from: 'USDT', from_network: 'TRC20', to: 'BNB', to_network: 'BNB' }

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
  currency: 'TRX' | 'USDT',
): Promise<void> {
  await sandbox.eventually(
    `${address} is empty`,
    async () => {
      await sandbox.mine('TRX', 2)
      expect(await balanceOf(sandbox, address, currency, currency === 'TRX' ? 'TRX' : 'TRC20')).toBe(0n)
      const live = (await sweepsOf(sandbox, address)).filter(({ state }) => !/confirmed|failed/.test(state))
      expect(live).toEqual([])
    },
    { timeoutMs: 60_000 },
  )
}

test('TRX goes whole, because the bandwidth of the day is free', async () => {
  const sandbox = given()
  const { deposit_address: address } = await pay(sandbox, trxToBnb)
  await mineUntilSwept(sandbox, address, 'TRX')
  expect(await sweepsOf(sandbox, address)).toEqual([{ asset: 'TRX:TRX', state: 'confirmed', to: 'reserve' }])
})

test('a token goes with TRX that is brought first, to an address that was no account until then', async () => {
  const sandbox = given()
  const { deposit_address: address } = await pay(sandbox, usdtToBnb)
  await mineUntilSwept(sandbox, address, 'USDT')
  expect((await sweepsOf(sandbox, address)).slice(0, 2)).toEqual([
    { asset: 'TRX:TRX', state: 'confirmed', to: 'address' },
    { asset: 'USDT:TRC20', state: 'confirmed', to: 'reserve' },
  ])
})

test('a sweep that the network loses is planned anew when its time is over, and arrives once', async () => {
  const sandbox = given()
  sandbox.devnet.trouble('TRX', { submits: Array.from({ length: 200 }, () => 'drop' as const) })
  const { deposit_address: address } = await pay(sandbox, trxToBnb)
  await sandbox.eventually('it was sent', async () => {
    expect(await sweepsOf(sandbox, address)).toMatchObject([{ state: 'broadcast' }])
  })
  await sandbox.mine('TRX', 61)
  sandbox.devnet.trouble('TRX', null)
  await mineUntilSwept(sandbox, address, 'TRX')
  expect((await sweepsOf(sandbox, address)).map(({ state }) => state)).toEqual(['failed', 'confirmed'])
})
