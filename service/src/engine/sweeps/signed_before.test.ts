import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import type { PayoutId } from '../../domain/payouts/intent.ts'
import { workPayouts } from '../payouts/work.ts'
import { type BooksStage, openBooksStage } from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { deepDeposit, openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { planSweeps } from './plan.ts'

/**
 * What: a sweep that a restored database plans under a name that the signer has signed before goes under the next name, and takes
 * neither a nonce of the reserve, which all payouts would wait behind, nor its address's only place.
 * How: a real PostgreSQL, a token's deposit that needs gas, a chain on paper, and a signer that knows names.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('signed_before')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const REST_MS = 600_000

/** A token at an address without gas. */
async function depositToken(): Promise<Chain> {
  await openReserve(stage)
  await deepDeposit(stage, 'USDT:ERC20')
  const paying = payingChain(stage)
  return {
    ...paying,
    draft: (outflow, bid, funds) =>
      outflow.from === undefined
        ? paying.draft(outflow, bid, funds)
        : refuse({ code: 'funds', message: 'there is no gas' }),
  }
}

/** It has signed these attempts in the hours that the database has lost; under their names it signs nothing else. */
function signingWorld(lost: readonly PayoutId[]): SigningWorld {
  return worldWithSigner(stage, {
    lastSigned: async (payoutId) => (lost.includes(payoutId) ? 1 : 0),
    lastOutflow: async (orderId) => (lost.includes(`${orderId}:1`) ? 1 : 0),
    sign: async ({ payoutId }) =>
      lost.includes(payoutId)
        ? refuse({ code: 'conflict', message: 'signed before' })
        : accept({ txHash: `tx-${payoutId}`, bytes: 'ff' }),
  })
}

function sweeps() {
  return stage.db.query('SELECT payout_id AS id, state, nonce FROM outflows ORDER BY payout_id')
}

test('gas that the signer has brought before is brought under the next name', async () => {
  const chain = await depositToken()
  await planSweeps(stage.world, chain)
  const [first] = await sweeps()
  const name = String(first?.id)
  const next = name.replace(/-1:1$/, '-2:1')
  const told: unknown[] = []
  const log = { ...stage.world.log, warn: (facts: object) => void told.push(facts) }
  const world = { ...signingWorld([name]), log }
  await workPayouts(world, chain)
  expect(await sweeps()).toEqual([{ id: name, state: 'cancelled', nonce: null }])
  expect(told).toMatchObject([{ payout: name, trouble: expect.stringContaining('the signer has signed') }])
  stage.advance(REST_MS)
  await planSweeps(stage.world, chain)
  await workPayouts(world, chain)
  expect(await sweeps()).toEqual([
    { id: name, state: 'cancelled', nonce: null },
    { id: next, state: 'broadcast', nonce: 0 },
  ])
})

test('while the signer does not say whether it has signed it, a sweep waits and takes nothing', async () => {
  const chain = await depositToken()
  await planSweeps(stage.world, chain)
  const world = signingWorld([])
  const lastOutflow = () => Promise.reject(new Error('no answer within 30000 ms'))
  await workPayouts({ ...world, signer: { ...world.signer, lastOutflow } }, chain)
  expect(await sweeps()).toMatchObject([{ state: 'planned', nonce: null }])
  stage.advance(REST_MS)
  await workPayouts(world, chain)
  expect(await sweeps()).toMatchObject([{ state: 'broadcast', nonce: 0 }])
})
