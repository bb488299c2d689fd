import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { insertAddresses } from '../../db/addresses.ts'
import { saveComparison } from '../../db/reconciliations.ts'
import { beginSweep, claimUnswept, leaveUnswept, noteUnswept, resumeSweep } from '../../db/unswept.ts'
import { assert } from '../../domain/assert.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { MINUTE_MS } from '../../domain/time.ts'
import { openTeller } from '../loop.ts'
import { type BooksStage, lookAt, openBooksStage, RESERVE } from '../testing/books_stage.ts'
import { deepDeposit } from '../testing/sweeping.ts'
import type { World } from '../world.ts'
import { planSweeps } from './plan.ts'

/**
 * What: when a deposit address that nothing leaves from now is looked at again.
 * How: a real PostgreSQL, a chain on paper whose answers the test gives, and a deposit of a month ago.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('plan_sweeps')
})

beforeEach(async () => {
  await stage.reset()
  await insertAddresses(stage.db, 'evm', 'reserve', 0, [RESERVE])
})

afterAll(() => stage?.stop())

const DAY_MS = 24 * 3_600_000

async function restAfter(
  answers: Partial<Chain>,
  asset: 'ETH:ETH' | 'USDT:ERC20' = 'ETH:ETH',
  prices: World['prices'] = stage.world.prices,
): Promise<number> {
  await deepDeposit(stage, asset)
  stage.advance(30 * DAY_MS)
  await lookAt(stage, 'ETH', 100)
  await planSweeps({ ...stage.world, prices }, { ...stage.chain('ETH'), ...answers })
  const [row] = await stage.db.query<{ due: number }>('SELECT due_at_ms AS due FROM unswept_addresses')
  return (row?.due ?? 0) - stage.world.clock.nowMs()
}

test('what is not worth it rests as long as it has lain there', async () => {
  const bid = async () => refuse({ code: 'funds', message: 'it does not pay for itself' } as const)
  expect(await restAfter({ bid })).toBe(30 * DAY_MS)
})

test('what could not be seen is looked at again soon', async () => {
  const { sweepRestMs } = stage.world.policy
  expect(await restAfter({ balance: () => Promise.reject(new Error('the node is away')) })).toBe(sweepRestMs)
})

test('a node that is away is told of once, and leaves the addresses that are due as they are', async () => {
  for (let made = 0; made < 3; made += 1) await deepDeposit(stage)
  await lookAt(stage, 'ETH', 100)
  const read = () => stage.db.query('SELECT address, due_at_ms FROM unswept_addresses ORDER BY address')
  const before = await read()
  expect(before).toHaveLength(3)
  const head = () => Promise.reject(new Error('the node is away'))
  await expect(planSweeps(stage.world, { ...stage.chain('ETH'), head })).rejects.toThrow('the node is away')
  expect(stage.logged).toEqual([])
  expect(await read()).toEqual(before)
})

test('a node that answers, but not what addresses hold, is told of once a chain, and again after a quiet minute', async () => {
  for (let made = 0; made < 50; made += 1) await deepDeposit(stage)
  await lookAt(stage, 'ETH', 100)
  const balance = () => Promise.reject(new Error('pruned'))
  const teller = openTeller(stage.world.clock)
  const told = () => stage.logged.filter(({ message }) => message === 'addresses could not be looked at')
  const plan = (answers: Partial<Chain>) =>
    planSweeps(stage.world, { ...stage.chain('ETH'), ...answers }, teller)
  for (const isMore of [true, true, false]) expect(await plan({ balance })).toBe(isMore)
  expect(told()).toMatchObject([{ level: 'warn', facts: { chain: 'ETH', others: 19, failures: 1 } }])
  stage.advance(MINUTE_MS)
  expect(await plan({}), 'nothing is due').toBe(false)
  stage.advance(stage.world.policy.sweepRestMs)
  await lookAt(stage, 'ETH', 100)
  await plan({ balance })
  expect(told()).toHaveLength(2)
})

test('no node is asked while nothing is due, or as much is under way as may be', async () => {
  const eth: Chain = {
    ...stage.chain('ETH'),
    head: () => Promise.reject(new Error('the node is asked')),
  }
  expect(await planSweeps(stage.world, eth)).toBe(false)
  await deepDeposit(stage)
  await stage.db.query(
    `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms)
     SELECT 0, 'sweep', 'sweep:' || n, 'sweep', 'ETH', 'ETH:ETH', 1, 'to-' || n, 'planned', $1, $1
     FROM generate_series(1, 100) AS n`,
    [stage.world.clock.nowMs()],
  )
  expect(await planSweeps(stage.world, eth)).toBe(false)
  await stage.db.query("UPDATE outflows SET state = 'cancelled' WHERE payout_id = 'sweep:1'")
  await expect(planSweeps(stage.world, eth)).rejects.toThrow('the node is asked')
})

test.each(['gas that it brings', 'what it pays for itself, as on Solana'])(
  'a token that waits for the reserve to have %s is looked at again soon',
  async (what) => {
    const tooLittle = refuse({ code: 'funds', message: 'there is too little' } as const)
    const answers: Partial<Chain> = {
      bid: async ({ from }) =>
        from === undefined || what !== 'gas that it brings'
          ? tooLittle
          : accept({ family: 'evm', gasLimit: 1n, maxFeePerGasWei: 1n, maxPriorityFeePerGasWei: 1n }),
      draft: () => tooLittle,
    }
    expect(await restAfter(answers, 'USDT:ERC20')).toBe(stage.world.policy.sweepRestMs)
  },
)

test('so is one that has no price, as when a process has just begun', async () => {
  const fees = { gasLimit: 1n, maxFeePerGasWei: 1n, maxPriorityFeePerGasWei: 1n }
  const answers: Partial<Chain> = {
    bid: async () => accept({ family: 'evm', ...fees }),
    draft: () => refuse({ code: 'funds', message: 'there is no gas' }),
  }
  const { sweepRestMs } = stage.world.policy
  expect(await restAfter(answers, 'USDT:ERC20', { usd: () => null })).toBe(sweepRestMs)
})

test('a token is worth moving at the prices of both, with what bringing its gas costs, and as much gas is brought as is missing', async () => {
  // 0.001 ether to move it and 0.00021 to bring the gas are 1.815 of a token that is worth two dollars; ten times that is asked.
  const enough = 18_150_000n * 10n ** 12n
  const gwei = 10n ** 9n
  const bid = {
    gasLimit: 100_000n,
    bringingGas: 21_000n,
    maxFeePerGasWei: 10n * gwei,
    maxPriorityFeePerGasWei: 1n,
  }
  const prices: World['prices'] = { usd: (currency) => (currency === 'ETH' ? 3_000n : 2n) }
  const holding = (units: bigint): Partial<Chain> => ({
    balance: async (asset) => (asset === 'USDT:ERC20' ? units : 400_000n * gwei),
    bid: async () => accept({ family: 'evm', ...bid }),
    draft: () => refuse({ code: 'funds', message: 'there is too little gas' }),
  })
  expect(await restAfter(holding(enough - 1n), 'USDT:ERC20', prices)).toBe(30 * DAY_MS)
  await stage.reset()
  await insertAddresses(stage.db, 'evm', 'reserve', 0, [RESERVE])
  await restAfter(holding(enough), 'USDT:ERC20', prices)
  expect(await stage.db.query("SELECT asset, units FROM outflows WHERE kind = 'sweep'")).toEqual([
    { asset: 'ETH:ETH', units: 600_000n * gwei },
  ])
})

test('a token that is not opened yet stays where it came', async () => {
  await deepDeposit(stage, 'USDT:ERC20')
  stage.advance(DAY_MS)
  await lookAt(stage, 'ETH', 100)
  await stage.db.query("DELETE FROM opened_assets WHERE asset = 'USDT:ERC20'")
  const asked: string[] = []
  const bid: Chain['bid'] = async ({ asset }) => {
    asked.push(asset)
    return refuse({ code: 'funds', message: 'there is too little' })
  }
  const balance: Chain['balance'] = async () => 1_000n
  await planSweeps(stage.world, { ...stage.chain('ETH'), balance, bid })
  expect(asked).toEqual(['USDC:ERC20', 'ETH:ETH'])
})

test('nothing is moved while nobody wants it to be, nor while books and chain differ', async () => {
  const answers: Partial<Chain> = {
    bid: async () =>
      accept({ family: 'evm', gasLimit: 1n, maxFeePerGasWei: 1n, maxPriorityFeePerGasWei: 1n }),
  }
  await deepDeposit(stage)
  await lookAt(stage, 'ETH', 100)
  const chain = { ...stage.chain('ETH'), ...answers }
  const planned = async (policy = stage.world.policy) => {
    await planSweeps({ ...stage.world, policy }, chain)
    return (await stage.db.query("SELECT payout_id FROM outflows WHERE kind = 'sweep'")).length
  }
  expect(await planned({ ...stage.world.policy, sweepCostMultiple: 0n })).toBe(0)
  const compared = (difference: bigint) =>
    saveComparison(
      stage.db,
      'ETH',
      {
        asset: 'USDT:ERC20',
        height: 100,
        ledgerUnits: 1n,
        inFlight: 0n,
        chainUnits: 1n + difference,
        difference,
      },
      { nowMs: 0, dueWallMs: 0 },
    )
  for (let times = 0; times < 3; times += 1) await compared(-1n)
  expect(await planned()).toBe(0)
  await compared(0n)
  expect(await planned()).toBe(1)
})

test('what came in above the newest final block is not moved', async () => {
  const heights: unknown[] = []
  const balance: Chain['balance'] = async (_asset, _addresses, height) => {
    heights.push(height)
    return 0n
  }
  await restAfter({ balance })
  expect(new Set(heights)).toEqual(new Set([100 + 1 - chainFacts.ETH.confirmations]))
})

test('what is booked while an address is looked at is looked at at once', async () => {
  const bid: Chain['bid'] = async ({ from }) => {
    await noteUnswept(stage.db, 'ETH', from?.address ?? '', stage.world.clock.nowMs())
    return refuse({ code: 'funds', message: 'it does not pay for itself' } as const)
  }
  expect(await restAfter({ bid })).toBe(0)
})

test('an address whose sweep was planned and has ended since it was taken is not swept by who took it', async () => {
  await deepDeposit(stage)
  const nowMs = stage.world.clock.nowMs()
  const [taken] = await claimUnswept(stage.db, 'ETH', { nowMs, dueAtMs: nowMs + 1 }, { step: 1, liveMax: 1 })
  assert(taken !== undefined, 'it is due')
  expect(await beginSweep(stage.db, taken, 'the first')).toBe(true)
  await leaveUnswept(stage.db, 'ETH', 'the first', nowMs)
  expect(await beginSweep(stage.db, taken, 'the second')).toBe(false)
})

test('nor is one swept whose earlier sweep lost its block since it was taken, and may be mined again', async () => {
  const { depositAddress } = (await deepDeposit(stage)).terms
  const nowMs = stage.world.clock.nowMs()
  const [taken] = await claimUnswept(stage.db, 'ETH', { nowMs, dueAtMs: nowMs + 1 }, { step: 1, liveMax: 1 })
  assert(taken !== undefined, 'it is due')
  await resumeSweep(stage.db, 'ETH', [depositAddress], 'the first')
  expect(await beginSweep(stage.db, taken, 'the second')).toBe(false)
  await resumeSweep(stage.db, 'ETH', [depositAddress], 'an even earlier one')
  expect(await stage.db.query('SELECT sweeping FROM unswept_addresses')).toEqual([{ sweeping: 'the first' }])
})

test.each(['ETH:ETH', 'USDT:ERC20'] as const)('so is %s while the node does not price it', async (asset) => {
  const bid = async () => refuse({ code: 'network', message: 'too many requests' } as const)
  expect(await restAfter({ bid }, asset)).toBe(stage.world.policy.sweepRestMs)
})

test('a look at another branch says nothing either', async () => {
  const bid = async () => refuse({ code: 'funds', message: 'it does not pay for itself' } as const)
  expect(await restAfter({ bid, blockHash: async () => 'another' })).toBe(stage.world.policy.sweepRestMs)
})

test('of sweeps that are under way there are a hundred at once, and those that wait for days keep no others from it', async () => {
  const swept = async () =>
    (await stage.db.query("SELECT payout_id FROM outflows WHERE kind = 'sweep' AND state = 'planned'")).length
  const eth: Chain = {
    ...stage.chain('ETH'),
    bid: async () =>
      accept({ family: 'evm', gasLimit: 1n, maxFeePerGasWei: 1n, maxPriorityFeePerGasWei: 1n }),
  }
  for (let made = 0; made < 105; made += 1) {
    await deepDeposit(stage)
  }
  while (await planSweeps(stage.world, eth)) {}
  expect(await swept()).toBe(100)

  await stage.db.query("UPDATE outflows SET state = 'broadcast' WHERE kind = 'sweep'")
  stage.advance(3_600_000)
  await lookAt(stage, 'ETH', 100)
  await planSweeps(stage.world, eth)
  expect(await swept()).toBe(5)
})
