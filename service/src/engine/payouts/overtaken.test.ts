import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, TxStatus } from '../../chains/chain.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { accept } from '../../domain/outcome.ts'
import { MINUTE_MS } from '../../domain/time.ts'
import { planSweeps } from '../sweeps/plan.ts'
import { type BooksStage, openBooksStage } from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { deepDeposit, openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { workPayouts } from './work.ts'

/**
 * What: a sweep ends when somebody else has used its address's key, and its nonce is used as deep as money has to be: no earlier,
 * and not when it is one of its own transactions that used it. Its address is looked at again.
 * How: a real PostgreSQL, a deposit on paper, a node that refuses what is sent and says what the test wants of nonces.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('overtaken')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const HEAD = 100

function signingWorld(): SigningWorld {
  return worldWithSigner(stage, {
    sign: async ({ payoutId, attempt }) => accept({ txHash: `tx-${payoutId}-${attempt}`, bytes: 'ff' }),
  })
}

/** Of the address's transactions one is mined, in block `usedAt`. */
function chainWhere(usedAt: number, lookup: () => TxStatus = () => ({ where: 'absent' })): Chain {
  return payingChain(stage, {
    head: async () => ({ height: HEAD, hash: 'head', parentHash: 'parent', timeMs: 0 }),
    minedNonce: async (_address, height = HEAD) => (height >= usedAt ? 1 : 0),
    broadcast: async () => 'refused',
    lookup: async () => lookup(),
  })
}

/** A deposit's sweep that was signed for nonce 0, refused, and is in trouble for as long as one is tried at all. */
async function sweepRefusedBy(chain: Chain) {
  await openReserve(stage)
  await deepDeposit(stage)
  await planSweeps(stage.world, chain)
  const world = signingWorld()
  await workPayouts(world, payingChain(stage, { broadcast: async () => 'refused' }), 'deposits')
  for (let minute = 0; minute <= stage.world.policy.stallMs / MINUTE_MS + 1; minute += 1) {
    stage.advance(MINUTE_MS)
    await workPayouts(world, chain, 'deposits')
  }
  const [sweep] = await stage.db.query('SELECT kind, state, nonce FROM outflows')
  const [address] = await stage.db.query('SELECT sweeping IS NULL AS "isFree" FROM unswept_addresses')
  return { sweep, address }
}

const DEEP = HEAD - chainFacts.ETH.confirmations + 1

test('a sweep whose nonce went to another transaction for good ends, and its address is looked at again', async () => {
  expect(await sweepRefusedBy(chainWhere(DEEP))).toEqual({
    sweep: { kind: 'sweep', state: 'failed', nonce: 0 },
    address: { isFree: true },
  })
})

test.each([
  ['the other transaction may lose its block', DEEP + 1],
  ['its nonce is not used', HEAD + 1],
] as const)('it goes on while %s', async (_what, usedAt) => {
  expect(await sweepRefusedBy(chainWhere(usedAt))).toEqual({
    sweep: { kind: 'sweep', state: 'signed', nonce: 0 },
    address: { isFree: false },
  })
})

test('it goes on with whoever has taken it while its node was asked', async () => {
  const chain = chainWhere(DEEP)
  const minedNonce: Chain['minedNonce'] = async (address, height) => {
    if (height !== undefined) await stage.db.query('UPDATE outflows SET claim_fence = claim_fence + 1')
    return chain.minedNonce(address, height)
  }
  expect(await sweepRefusedBy({ ...chain, minedNonce })).toEqual({
    sweep: { kind: 'sweep', state: 'signed', nonce: 0 },
    address: { isFree: false },
  })
})

test('one that is found to have used it itself, after all, has ended well', async () => {
  const block = { height: DEEP, hash: (await stage.chain('ETH').blockHash(DEEP)) ?? '' }
  const found = { where: 'block', block, succeeded: true, cost: amountOf('ETH:ETH', 21_000n) } as const
  let isShown = false
  const chain = chainWhere(DEEP, () => (isShown ? found : { where: 'absent' }))
  const minedNonce: Chain['minedNonce'] = (address, height) => {
    isShown ||= height !== undefined
    return chain.minedNonce(address, height)
  }
  expect(await sweepRefusedBy({ ...chain, minedNonce })).toEqual({
    sweep: { kind: 'sweep', state: 'confirmed', nonce: 0 },
    address: { isFree: true },
  })
})
