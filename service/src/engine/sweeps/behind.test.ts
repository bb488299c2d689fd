import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { refuse } from '../../domain/outcome.ts'
import { workPayouts } from '../payouts/work.ts'
import { type BooksStage, lookAt, openBooksStage } from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { deepDeposit, openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import { planSweeps } from './plan.ts'

/**
 * What: of several nodes behind one address one may be a block behind, and says of an address what it held before it was swept or
 * its gas came: nothing is swept and no gas is brought a second time on its word.
 * How: a real PostgreSQL, deposits on a chain on paper, whose head goes back by a block after what was sent is final.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('behind')
})

beforeEach(async () => {
  await stage.reset()
  await openReserve(stage)
})

afterAll(() => stage?.stop())

const MINED = 101
const FINAL = MINED + chainFacts.ETH.confirmations - 1

/** Nothing leaves an address where there is no coin. */
function chainOf(): Chain {
  const paying = payingChain(stage)
  return {
    ...paying,
    draft: (outflow, bid, funds) =>
      outflow.from !== undefined && funds.model === 'account' && funds.heldWei === 0n
        ? refuse({ code: 'funds', message: 'there is no gas' })
        : paying.draft(outflow, bid, funds),
  }
}

/** One question reaches the node that is behind, the next one that is not. */
function oneBehind(chain: Chain): Chain {
  return {
    ...chain,
    head: async () => ({ height: FINAL - 1, hash: (await chain.blockHash(FINAL - 1)) ?? '' }),
  }
}

async function deposit(asset: 'ETH:ETH' | 'USDT:ERC20'): Promise<string> {
  const order = await deepDeposit(stage, asset)
  return order.terms.depositAddress
}

type Row = { readonly id: string; readonly asset: string; readonly units: bigint; readonly state: string }

function sweeps() {
  return stage.db.query<Row>('SELECT payout_id AS id, asset, units, state FROM outflows ORDER BY payout_id')
}

/** Planned, sent, mined and final. */
async function bring(chain: Chain, from: 'reserve' | 'deposits', moved: (units: bigint) => void) {
  const world = worldWithSigner(stage)
  await planSweeps(world, chain)
  await workPayouts(world, chain, from)
  const [sent] = await sweeps()
  if (sent === undefined) throw new Error('nothing was planned')
  stage.chain('ETH').mined(`tx-${sent.id}`, MINED, 21_000n)
  moved(sent.units)
  await lookAt(stage, 'ETH', FINAL)
  stage.advance(1_000)
  await workPayouts(world, chain, from)
  return sent
}

test('gas that is there is brought once', async () => {
  const address = await deposit('USDT:ERC20')
  const chain = chainOf()
  const gas = await bring(chain, 'reserve', (units) =>
    stage.chain('ETH').move(MINED, 'ETH:ETH', address, units),
  )
  expect(gas.asset).toBe('ETH:ETH')
  await planSweeps(stage.world, oneBehind(chain))
  expect(await sweeps()).toEqual([{ ...gas, state: 'confirmed' }])
  stage.advance(stage.world.policy.sweepRestMs)
  await planSweeps(stage.world, chain)
  expect(await sweeps()).toMatchObject([{ id: gas.id }, { asset: 'USDT:ERC20', state: 'planned' }])
})

test('what is in the reserve is swept once', async () => {
  const address = await deposit('ETH:ETH')
  const chain = chainOf()
  const sweep = await bring(chain, 'deposits', (units) =>
    stage.chain('ETH').move(MINED, 'ETH:ETH', address, -units),
  )
  await planSweeps(stage.world, oneBehind(chain))
  expect(await sweeps()).toEqual([{ ...sweep, state: 'confirmed' }])
})

test('where no node says what block a balance is of, what may be older than the gas is not believed', async () => {
  const address = await deposit('USDT:ERC20')
  const chain = chainOf()
  const gas = await bring(chain, 'reserve', (units) =>
    stage.chain('ETH').move(MINED, 'ETH:ETH', address, units),
  )
  // The head is asked of one node and what is held of another one, which is a block behind.
  const mixed: Chain = {
    ...chain,
    balanceLagBlocks: 10,
    balance: (asset, addresses, height) => chain.balance(asset, addresses, (height ?? FINAL) - 1),
  }
  for (const height of [FINAL, FINAL + 9]) {
    await lookAt(stage, 'ETH', height)
    await planSweeps(stage.world, mixed)
    expect(await sweeps()).toEqual([{ ...gas, state: 'confirmed' }])
    stage.advance(5_000)
  }
  await lookAt(stage, 'ETH', FINAL + 10)
  await planSweeps(stage.world, mixed)
  expect(await sweeps()).toMatchObject([{ id: gas.id }, { asset: 'USDT:ERC20', state: 'planned' }])
})
