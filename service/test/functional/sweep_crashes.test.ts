import { parseTransaction } from 'viem'
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest'
import type { Chain } from '../../src/chains/chain.ts'
import { auditBooks } from '../../src/engine/books/audit_books.ts'
import { auditChain } from '../../src/engine/books/audit_chain.ts'
import { type Life, type SweepStage, startSweepStage } from '../harness/sweep_stage.ts'

/**
 * What: a process that sweeps may end before or after any statement and any broadcast; whoever comes after it goes on,
 * every address is swept once, no nonce is taken twice or left out, and the books agree with the chain to the unit.
 * How: a real anvil and a real database; the engine's own steps are called by processes that each live for another
 * number of statements. The clock jumps over claims, so that the next one does not wait for the dead.
 */
let stage: SweepStage

beforeAll(async () => {
  stage = await startSweepStage()
})

afterAll(() => stage?.stop())

const LIVES = 240
const LONGEST_LIFE = 113
const LONGEST_PLAN = 30
/** Where it matters most. */
const PLACES = [
  'INSERT INTO outflows',
  'INSERT INTO attempts',
  'UPDATE attempts',
  'INSERT INTO signer.signed_transactions',
  'broadcast',
].flatMap((place) => [`before ${place}`, `after ${place}`])

test('240 processes live and die at different moments, and everything is swept once', {
  timeout: 900_000,
}, async () => {
  const deaths: string[] = []
  onTestFailed(() =>
    console.error(`they died at\n  ${deaths.join('\n  ')}\n${stage.logged.slice(-20).join('\n')}`),
  )
  const reserveBefore = await stage.held('USDC', stage.reserve)
  const paid: { readonly address: string; readonly currency: 'ETH' | 'USDC' }[] = []
  for (let number = 0; number < LIVES; number += 1) {
    // A third of them find a new deposit and die at one of the places that matter; a sixth find one and die while they
    // plan, one statement later each; the others die anywhere.
    const isAimed = number % 3 === 0
    const isPlanner = number % 6 === 1
    if (isAimed || isPlanner) {
      const currency = paid.length % 2 === 0 ? 'ETH' : 'USDC'
      paid.push({ address: await stage.deposit(currency), currency })
    }
    await stage.buryAndWatch()
    const turn = Math.floor(number / 3)
    const left = 1 + (isPlanner ? Math.floor(number / 6) % LONGEST_PLAN : (number * 37) % LONGEST_LIFE)
    const at = PLACES[turn % PLACES.length] ?? ''
    const life: Life = isAimed
      ? { left: Number.POSITIVE_INFINITY, at, endedAt: null }
      : { left, endedAt: null }
    await stage.liveOnce(life)
    if (life.endedAt !== null) deaths.push(life.endedAt)
  }
  // Enough of them, and in every place that matters.
  expect(deaths.length).toBeGreaterThan(LIVES / 3)
  for (const place of PLACES) {
    expect(
      deaths.filter((death) => death.startsWith(place)),
      place,
    ).not.toEqual([])
  }

  await stage.liveUntil('everything is swept', async () => {
    expect(await stage.live()).toEqual([])
    for (const { address } of paid) expect(await stage.held('USDC', address)).toBe(0n)
    for (const { address } of paid) expect(await stage.held('ETH', address)).toBeLessThan(10n ** 16n)
  })
  for (const { address, currency } of paid) {
    const ended = await stage.endedOf(address)
    expect(
      ended.filter((state) => state !== 'cancelled'),
      address,
    ).toEqual(currency === 'ETH' ? ['confirmed'] : ['confirmed', 'confirmed'])
    expect(await stage.nonce(address), address).toBe(1)
  }
  const tokens = paid.filter(({ currency }) => currency === 'USDC').length
  expect((await stage.held('USDC', stage.reserve)) - reserveBefore).toBe(
    BigInt(tokens) * stage.paidUnits.USDC,
  )
  expect(await stage.nonce(stage.reserve), 'one bringing of gas for each token').toBe(tokens)

  const { db, clock } = stage.world
  expect((await auditBooks(db)).problems).toEqual([])
  expect((await auditChain(db, stage.chain, clock)).problems).toEqual([])
})

test('gas that the network never takes gives its nonce to a filler, and is brought by the next transaction', async () => {
  const address = await stage.deposit('USDC')
  const nonceBefore = await stage.nonce(stage.reserve)
  await stage.buryAndWatch()
  let bannedNonce: number | undefined
  const refusing = (chain: Chain): Chain => ({
    ...chain,
    broadcast: async (tx) => {
      const { nonce, value = 0n } = parseTransaction(`0x${tx.bytes.replace(/^0x/, '')}`)
      bannedNonce ??= nonce
      // What fills the nonce moves nothing.
      return nonce === bannedNonce && value > 0n ? 'refused' : chain.broadcast(tx)
    },
  })
  // After a last look at the many that were swept before.
  await stage.liveUntil(
    'its gas is signed',
    async () => expect(await stage.live()).toMatchObject([expect.stringContaining('is signed')]),
    refusing,
  )
  stage.jump(stage.world.policy.stallMs)
  await stage.liveUntil(
    'it is swept all the same',
    async () => {
      expect(await stage.live()).toEqual([])
      expect(await stage.held('USDC', address)).toBe(0n)
    },
    refusing,
  )
  expect(await stage.endedOf(address)).toEqual(['failed', 'confirmed', 'confirmed'])
  expect(await stage.nonce(stage.reserve), 'the filler and the gas').toBe(nonceBefore + 2)
  const { db, clock } = stage.world
  expect((await auditBooks(db)).problems).toEqual([])
  expect((await auditChain(db, stage.chain, clock)).problems).toEqual([])
})

test('a sweep that the network never takes keeps nobody waiting and is sent when it does', async () => {
  const address = await stage.deposit('ETH')
  await stage.buryAndWatch()
  const forever = { left: Number.POSITIVE_INFINITY, endedAt: null }
  const refusing = (chain: Chain): Chain => ({ ...chain, broadcast: async () => 'refused' })
  await stage.liveOnce(forever, refusing)
  stage.jump(stage.world.policy.stallMs)
  for (let lives = 0; lives < 3; lives += 1) {
    await stage.liveOnce(forever, refusing)
    await stage.buryAndWatch()
  }
  expect(await stage.live(), 'no filler takes its nonce').toHaveLength(1)
  await stage.liveUntil('it is swept', async () => {
    expect(await stage.live()).toEqual([])
    expect(await stage.endedOf(address)).toEqual(['confirmed'])
  })
  expect(await stage.nonce(address)).toBe(1)
})
