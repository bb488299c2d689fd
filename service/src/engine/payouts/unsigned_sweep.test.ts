import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { insertAddresses } from '../../db/addresses.ts'
import { sealText } from '../../domain/orders/seal.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { MINUTE_MS } from '../../domain/time.ts'
import type { Signer, SignRejection } from '../../signer/signer.ts'
import { planSweeps } from '../sweeps/plan.ts'
import { type BooksStage, openBooksStage, RESERVE } from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { deepDeposit } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { workPayouts } from './work.ts'

/**
 * What: a sweep that was drafted and that the signer then refuses for good, because a cap was lowered meanwhile, say, ends, and the
 * next one leaves under its nonce: but only when nothing of it was ever signed.
 * How: a real PostgreSQL, a deposit on paper, a signer that refuses and says what it has signed.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('unsigned_sweep')
})

beforeEach(async () => {
  await stage.reset()
  await insertAddresses(stage.db, 'evm', 'reserve', 0, [RESERVE])
})

afterAll(() => stage?.stop())

function refusing(code: SignRejection['code'], parts: Partial<Signer> = {}): SigningWorld {
  return worldWithSigner(stage, { sign: async () => refuse({ code, message: 'not this one' }), ...parts })
}

async function planOne(): Promise<void> {
  await deepDeposit(stage)
  await planSweeps(stage.world, payingChain(stage))
}

async function stalledFor(world: SigningWorld, chain: Chain = payingChain(stage)): Promise<void> {
  for (let minute = 0; minute <= stage.world.policy.stallMs / MINUTE_MS + 1; minute += 1) {
    await workPayouts(world, chain, 'deposits')
    stage.advance(MINUTE_MS)
  }
}

function sweeps() {
  return stage.db.query('SELECT state, nonce FROM outflows ORDER BY payout_id')
}

async function planNext(): Promise<void> {
  stage.advance(24 * 60 * MINUTE_MS)
  await planSweeps(stage.world, payingChain(stage))
}

test.each(['limit_exceeded', 'malformed'] as const)(
  'a sweep that the signer refuses as %s ends, and the next one leaves under its nonce',
  async (code) => {
    await planOne()
    await stalledFor(refusing(code))
    expect(await sweeps()).toEqual([{ state: 'cancelled', nonce: 0 }])
    expect(stage.logged.filter(({ level }) => level === 'warn')).toContainEqual(
      expect.objectContaining({
        message: 'the signer refuses a sweep, of which nothing was signed: it has ended',
      }),
    )
    await planNext()
    await workPayouts(worldWithSigner(stage), payingChain(stage), 'deposits')
    expect(await sweeps()).toEqual([
      { state: 'cancelled', nonce: 0 },
      { state: 'broadcast', nonce: 0 },
    ])
  },
)

test('one that was drafted by a release that sealed it with other words is sealed anew, and signed', async () => {
  await planOne()
  const seals: string[] = []
  const oldSeal = { ...refusing('seal_broken'), seal: () => 'cambist-order-v2' }
  await workPayouts(oldSeal, payingChain(stage), 'deposits')
  expect(await stage.db.query('SELECT tx_hash FROM attempts')).toEqual([{ tx_hash: null }])
  stage.advance(MINUTE_MS)
  const sign: Signer['sign'] = async ({ payoutId }, authority) => {
    seals.push(authority.seal)
    return authority.seal === sealText(authority, 'own')
      ? accept({ txHash: `tx-${payoutId}`, bytes: 'ff' })
      : refuse({ code: 'seal_broken', message: 'not these words' })
  }
  await workPayouts({ ...worldWithSigner(stage, { sign }), seal: sealText }, payingChain(stage), 'deposits')
  expect(seals).toEqual([expect.stringContaining('"cambist-own-v1"')])
  expect(await sweeps()).toEqual([{ state: 'broadcast', nonce: 0 }])
})

const away = () => Promise.reject(new Error('nobody answers'))

test.each<[string, () => SigningWorld, Partial<Chain>]>([
  ['is away', () => worldWithSigner(stage, { sign: away }), {}],
  ['has signed something else under its name', () => refusing('conflict'), {}],
  ['has signed it', () => refusing('malformed', { lastSigned: async () => 1 }), {}],
  ['does not say whether it has signed it', () => refusing('malformed', { lastSigned: away }), {}],
  [
    'refuses it, whose nonce is used',
    () => refusing('malformed'),
    { minedNonce: async (_, at) => (at ? 0 : 1) },
  ],
])('it goes on while the signer %s', async (_what, open, parts) => {
  await planOne()
  await workPayouts(refusing('limit_exceeded'), payingChain(stage), 'deposits')
  await stalledFor(open(), payingChain(stage, parts))
  await planNext()
  expect(await sweeps()).toEqual([{ state: 'planned', nonce: 0 }])
})

test('nor does it end when a later nonce of its address was taken, which would wait behind this one', async () => {
  await planOne()
  await workPayouts(refusing('limit_exceeded'), payingChain(stage), 'deposits')
  await stage.db.query('UPDATE account_nonces SET next_nonce = next_nonce + 1')
  await stalledFor(refusing('limit_exceeded'))
  expect(await sweeps()).toEqual([{ state: 'planned', nonce: 0 }])
})

test('what a signer signs of it for a worker that has lost it is never sent', async () => {
  await planOne()
  const late = Promise.withResolvers<void>()
  const sent: string[] = []
  const chain = payingChain(stage, {
    broadcast: async ({ txHash }) => {
      sent.push(txHash)
      return 'accepted'
    },
  })
  const slow = worldWithSigner(stage, {
    sign: async () => {
      await late.promise
      return accept({ txHash: 'late', bytes: 'ff' })
    },
  })
  const working = workPayouts(slow, chain, 'deposits')
  const isDrafted = async () => (await stage.db.query('SELECT 1 FROM attempts')).length > 0
  while (!(await isDrafted()));
  stage.advance(MINUTE_MS)
  await stalledFor(refusing('limit_exceeded'), chain)
  expect(await sweeps()).toEqual([{ state: 'cancelled', nonce: 0 }])
  late.resolve()
  await working
  expect(sent).toEqual([])
  expect(await stage.db.query('SELECT tx_hash FROM attempts')).toEqual([{ tx_hash: null }])
  expect(await sweeps()).toEqual([{ state: 'cancelled', nonce: 0 }])
})
