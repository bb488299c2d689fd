import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { workPayouts } from '../payouts/work.ts'
import { type BooksStage, lookAt, openBooksStage } from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { deepDeposit, openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import { planSweeps } from './plan.ts'

/**
 * What: where prices creep up, gas is not brought crumb by crumb, each at the price of a transaction.
 * How: a real PostgreSQL, a token on a chain on paper that lives by the tip alone (as BNB Smart Chain does), which rises by
 * one per cent between any two looks.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('gas_room')
})

beforeEach(async () => {
  await stage.reset()
  await openReserve(stage)
})

afterAll(() => stage?.stop())

const GAS_LIMIT = 65_000n
const BLOCKS = chainFacts.ETH.confirmations

/** Every bid asks a tip of that moment, and a token leaves only for all of it. */
function chainAsking(tipWei: () => bigint): Chain {
  const paying = payingChain(stage)
  return {
    ...paying,
    bid: async () => {
      const tip = tipWei()
      return accept({
        family: 'evm',
        gasLimit: GAS_LIMIT,
        maxFeePerGasWei: tip,
        maxPriorityFeePerGasWei: tip,
      })
    },
    draft: (outflow, bid, funds) => {
      const isShort =
        outflow.from !== undefined &&
        bid.family === 'evm' &&
        funds.model === 'account' &&
        (funds.heldWei ?? 0n) < bid.gasLimit * bid.maxFeePerGasWei
      return isShort
        ? refuse({ code: 'funds', message: 'there is too little gas' })
        : paying.draft(outflow, bid, funds)
    },
  }
}

type Row = { readonly id: string; readonly asset: string; readonly units: bigint; readonly state: string }

function outflows() {
  return stage.db.query<Row>('SELECT payout_id AS id, asset, units, state FROM outflows ORDER BY payout_id')
}

test('gas that is a little short is brought once more, with room for the next rise', async () => {
  const order = await deepDeposit(stage, 'USDT:ERC20')
  let tipWei = 1_000_000_000n
  const [chain, world] = [chainAsking(() => tipWei), worldWithSigner(stage)]
  let head = 100
  for (let look = 0; look < 10; look += 1) {
    await planSweeps(world, chain)
    await workPayouts(world, chain)
    const gas = (await outflows()).find(({ state }) => state === 'broadcast')
    if (gas === undefined) break
    stage.chain('ETH').mined(`tx-${gas.id}`, head + 1, 21_000n)
    stage.chain('ETH').move(head + 1, 'ETH:ETH', order.terms.depositAddress, gas.units)
    head += BLOCKS
    stage.advance(1_000)
    await lookAt(stage, 'ETH', head)
    await workPayouts(world, chain)
    tipWei += tipWei / 100n
  }
  expect(await outflows()).toMatchObject([
    { asset: 'ETH:ETH', state: 'confirmed' },
    { asset: 'ETH:ETH', state: 'confirmed' },
    { asset: 'USDT:ERC20', state: 'planned' },
  ])
})
