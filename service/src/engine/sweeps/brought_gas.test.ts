import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { noteUnswept } from '../../db/unswept.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { refuse } from '../../domain/outcome.ts'
import { workPayouts } from '../payouts/work.ts'
import { type BooksStage, lookAt, openBooksStage } from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { deepDeposit, openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { World } from '../world.ts'
import { planSweeps } from './plan.ts'

/**
 * What: gas that was brought for a token is not swept back while the token cannot be moved for a moment, and other coin is.
 * How: a real PostgreSQL, and a chain on paper that asks next to nothing for moving coin, so that it would be worth it.
 */
let stage: BooksStage
let chain: Chain

beforeAll(async () => {
  stage = await openBooksStage('brought_gas')
})

beforeEach(async () => {
  await stage.reset()
  await openReserve(stage)
  const paying = payingChain(stage)
  chain = {
    ...paying,
    draft: (outflow, bid, funds) =>
      outflow.from !== undefined && funds.model === 'account' && funds.heldWei === 0n
        ? refuse({ code: 'funds', message: 'there is no gas' })
        : paying.draft(outflow, bid, funds),
  }
})

afterAll(() => stage?.stop())

const MINED = 101
const FINAL = MINED + chainFacts.ETH.confirmations - 1

function sweeps() {
  type Sweep = { id: string; asset: string; units: bigint; state: string; from: string | null }
  return stage.db.query<Sweep>(
    `SELECT payout_id AS id, asset, units, state, from_address AS "from" FROM outflows
     WHERE kind = 'sweep' ORDER BY payout_id`,
  )
}

async function restMs(): Promise<number> {
  const [row] = await stage.db.query<{ due: number }>('SELECT due_at_ms AS due FROM unswept_addresses')
  return (row?.due ?? 0) - stage.world.clock.nowMs()
}

/**
 * A token whose gas is there: as much as it takes, which is many times what moving that back would cost. Answers the address.
 */
async function bringGas(): Promise<string> {
  const { depositAddress } = (await deepDeposit(stage, 'USDT:ERC20')).terms
  const world = worldWithSigner(stage)
  await planSweeps(world, chain)
  await workPayouts(world, chain, 'reserve')
  const [gas] = await sweeps()
  if (gas === undefined) throw new Error('no gas was planned')
  stage.chain('ETH').mined(`tx-${gas.id}`, MINED, 21_000n)
  stage.chain('ETH').move(MINED, 'ETH:ETH', depositAddress, gas.units)
  await lookAt(stage, 'ETH', FINAL)
  stage.advance(1_000)
  await workPayouts(world, chain, 'reserve')
  expect(await sweeps()).toEqual([{ ...gas, asset: 'ETH:ETH', state: 'confirmed' }])
  return depositAddress
}

type Hindrance = { readonly prices?: World['prices']; readonly bid?: Chain['bid'] }

const coinIsCheap: Chain['bid'] = async () => ({
  ok: true,
  value: { family: 'evm', gasLimit: 1n, maxFeePerGasWei: 1n, maxPriorityFeePerGasWei: 1n },
})

const refused: Chain['bid'] = async (outflow) =>
  outflow.asset === 'ETH:ETH'
    ? coinIsCheap(outflow)
    : refuse({ code: 'network', message: 'too many requests' })

const hindrances: [string, Hindrance][] = [
  ['the token has no price', { prices: { usd: () => null } }],
  ['the node does not say what the token costs', { bid: refused }],
]

function plan({ prices = stage.world.prices, bid = coinIsCheap }: Hindrance) {
  return planSweeps({ ...stage.world, prices }, { ...chain, bid })
}

test.each(hindrances)('gas waits where it was brought while %s', async (_what, hindrance) => {
  await bringGas()
  const before = await sweeps()
  await plan(hindrance)
  expect([await sweeps(), await restMs()]).toEqual([before, stage.world.policy.sweepRestMs])
  stage.advance(stage.world.policy.sweepRestMs)
  await plan({})
  expect(await sweeps()).toMatchObject([...before, { asset: 'USDT:ERC20', state: 'planned' }])
})

test.each(hindrances)(
  'nor is it swept back after a sweep that was cancelled, while %s',
  async (_what, hindrance) => {
    await bringGas()
    await plan({})
    const silent: Chain = { ...chain, bid: refused }
    await workPayouts(worldWithSigner(stage), silent, 'deposits')
    const before = await sweeps()
    expect(before).toMatchObject([{ state: 'confirmed' }, { asset: 'USDT:ERC20', state: 'cancelled' }])
    stage.advance(stage.world.policy.sweepRestMs)
    await plan(hindrance)
    expect(await sweeps()).toEqual(before)
  },
)

test.each(hindrances)(
  'coin that was deposited beside a token is swept while %s',
  async (_what, hindrance) => {
    const { depositAddress } = (await deepDeposit(stage, 'USDT:ERC20')).terms
    stage.chain('ETH').move(80, 'ETH:ETH', depositAddress, 10n ** 18n)
    await plan(hindrance)
    expect(await sweeps()).toMatchObject([{ asset: 'ETH:ETH', units: 10n ** 18n, state: 'planned' }])
  },
)

test.each(hindrances)('so is coin that came after gas was brought, while %s', async (_what, hindrance) => {
  const address = await bringGas()
  await noteUnswept(stage.db, 'ETH', address, stage.world.clock.nowMs())
  await plan(hindrance)
  expect(await sweeps()).toMatchObject([
    { state: 'confirmed' },
    { asset: 'ETH:ETH', state: 'planned', from: address },
  ])
})
