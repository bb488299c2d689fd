import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { readBalances } from '../../db/books.ts'
import { readOrphanedPayouts } from '../../db/figures.ts'
import { findOrder } from '../../db/orders.ts'
import { findOutflow } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { accept } from '../../domain/outcome.ts'
import { auditBooks } from '../books/audit_books.ts'
import { auditChain } from '../books/audit_chain.ts'
import { type BooksStage, lookAt, minePayout, openBooksStage, RESERVE } from '../testing/books_stage.ts'
import { failingDatabase } from '../testing/failing_database.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { pricedOrder } from '../testing/priced_order.ts'
import { tellOrderCommand } from '../testing/stage_commands.ts'
import { openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { giveUpOrphan, orphanOutflows } from './orphan.ts'
import { workPayouts } from './work.ts'

/**
 * What: a payout that was final, lost its block and had its nonce filled does not make the filler look needless, which is mined: what that
 * cost is booked, whenever the engine dies and whatever a node that is behind says of it. Where the filler loses its block and the payout
 * is mined in its place, that is found and told of.
 * How: a real PostgreSQL, orders moved by facts, a signer and a chain on paper, and a database that fails at the statement that is named.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('filled_gap')
})

beforeEach(async () => {
  await stage.reset()
  await stage.empty('audit_log', 'audit_heads')
})

afterAll(() => stage?.stop())

const COST = 21_000n
const FILLER = 'house-ETH-0:1'

/** Each attempt has a hash of its own. */
function signingWorld(): SigningWorld {
  return worldWithSigner(stage, {
    sign: async ({ payoutId, attempt }) => accept({ txHash: `tx-${payoutId}-${attempt}`, bytes: 'ff' }),
  })
}

/** The engine dies where the booking of an entry with this key begins: all of that transaction is lost. */
function dyingAt(world: SigningWorld, entryKey: string): SigningWorld {
  const db = failingDatabase(world.db, (text, values) => {
    if (text.includes('INSERT INTO journal') && JSON.stringify(values, textOfBigints).includes(entryKey))
      throw new Error('the engine dies')
  })
  return { ...world, db }
}

const textOfBigints = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)

async function work(world: SigningWorld, chain: Chain, times = 1): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    stage.advance(60_000)
    await lookAt(stage, 'BTC', 100)
    await workPayouts(world, chain)
  }
}

async function statesOf(): Promise<Record<string, string>> {
  const rows = await stage.db.query<{ kind: string; state: string }>('SELECT kind, state FROM outflows')
  return Object.fromEntries(rows.map(({ kind, state }) => [kind, state]))
}

async function costsBooked() {
  return stage.db.query(
    `SELECT entry_key, units FROM journal WHERE debit = 'network_costs' AND entry_key LIKE 'house-%'`,
  )
}

/** A payout that was final with the first nonce of the reserve, and whose block is another one by now. */
async function orphanPayout(world: SigningWorld): Promise<void> {
  await openReserve(stage)
  const { order, id } = await pricedOrder(stage)
  await work(world, payingChain(stage))
  minePayout(stage, order, { txHash: `tx-${id}:1-1`, height: 100, units: 10n ** 18n, cost: COST })
  await lookAt(stage, 'ETH', 112)
  await work(world, payingChain(stage))
  expect(await statesOf()).toEqual({ payout: 'confirmed' })
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, 10n ** 18n + COST)
  const lost = { height: 100, hash: (await stage.chain('ETH').blockHash(100)) ?? '' }
  await orphanOutflows(world, 'ETH', { kind: 'named', blocks: [lost] }, 1, nobodyElse)
}

/** The network takes fillers only. Its filler is sent. */
async function fillNonce(world: SigningWorld, payout = 'orphaned'): Promise<void> {
  const absent = async () => ({ where: 'absent' }) as const
  const chain = payingChain(stage, {
    broadcast: async ({ txHash }) => (txHash.startsWith('tx-house-') ? 'accepted' : 'refused'),
    lookup: absent,
  })
  await work(world, chain, 35)
  expect(await statesOf()).toEqual({ payout, filler: 'broadcast' })
}

/** The filler is deep in this block. Answers a chain that says so, but for `forgetful` looks. */
async function buryFiller(height: number): Promise<(forgetful?: number) => Chain> {
  const eth = stage.chain('ETH')
  eth.move(height, 'ETH:ETH', RESERVE, -COST)
  await lookAt(stage, 'ETH', height + 12)
  const block = { height, hash: (await eth.blockHash(height)) ?? '' }
  const cost = { asset: 'ETH:ETH', units: COST } as const
  return (forgetful = 0) => {
    let left = forgetful
    return payingChain(stage, {
      minedNonce: async () => 1,
      broadcast: async () => 'refused',
      lookup: async (txHash) => {
        if (txHash !== `tx-${FILLER}-1`) return { where: 'absent' }
        left -= 1
        return left >= 0 ? { where: 'absent' } : { where: 'block', block, succeeded: true, cost }
      },
    })
  }
}

test('a filler in a block that only some nodes have ends nothing, however high the others are', async () => {
  const world = signingWorld()
  await orphanPayout(world)
  await fillNonce(world)
  const chain = (await buryFiller(113))()
  const lookup: Chain['lookup'] = async (txHash) => {
    const status = await chain.lookup(txHash)
    return status.where === 'block' ? { ...status, block: { height: 113, hash: 'lost' } } : status
  }
  const blockHash: Chain['blockHash'] = async (height) => (height === 113 ? 'lost' : chain.blockHash(height))
  await work(world, { ...chain, lookup, blockHash })
  expect(await statesOf()).toEqual({ payout: 'orphaned', filler: 'broadcast' })
})

test('the engine dies between the end of the payout and that of its filler, which a node does not know then', async () => {
  const world = signingWorld()
  await orphanPayout(world)
  await fillNonce(world)
  const chain = await buryFiller(113)
  await work(dyingAt(world, `${FILLER}:confirmed`), chain())
  expect(await statesOf()).toEqual({ payout: 'failed', filler: 'broadcast' })
  expect(await costsBooked()).toEqual([])
  await work(world, chain(1))
  expect((await statesOf()).filler, 'it may be mined').toBe('broadcast')
  await work(world, chain())
  expect(await statesOf()).toEqual({ payout: 'failed', filler: 'confirmed' })
  expect(await costsBooked()).toEqual([{ entry_key: `${FILLER}:confirmed`, units: COST }])
  expect(await stage.db.query('SELECT 1 FROM outflows WHERE is_block_lost')).toEqual([])
})

test('a filler that loses its block as well, and that a node does not know then, is final once more', async () => {
  const world = signingWorld()
  await orphanPayout(world)
  await fillNonce(world)
  await work(world, (await buryFiller(113))())
  expect(await statesOf()).toEqual({ payout: 'failed', filler: 'confirmed' })
  const lost = { height: 113, hash: (await stage.chain('ETH').blockHash(113)) ?? '' }
  await orphanOutflows(world, 'ETH', { kind: 'named', blocks: [lost] }, 2, nobodyElse)
  stage.chain('ETH').move(113, 'ETH:ETH', RESERVE, COST)
  const chain = await buryFiller(114)
  await work(world, chain(1))
  expect((await statesOf()).filler, 'it may be mined').toBe('orphaned')
  await work(world, chain())
  expect((await statesOf()).filler).toBe('confirmed')
  const { problems } = await auditBooks(stage.db)
  expect(problems.filter(({ message }) => message.includes(FILLER))).toEqual([])
  expect(await stage.db.query('SELECT 1 FROM outflows WHERE is_block_lost')).toEqual([])
})

/**
 * The payout was given up and is owed, its filler has lost its block, and the payout is in one, deep. The chain says of it that this was
 * moved; null: what it was to move.
 */
async function minePayoutOfLostFiller(
  world: SigningWorld,
  moved: string | null,
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  await orphanPayout(world)
  await fillNonce(world)
  await work(world, (await buryFiller(113))())
  const { problems: owed } = await auditBooks(stage.db)
  expect(owed.map(({ message }) => message)).toContainEqual(expect.stringContaining('is not confirmed'))
  await meanwhile()
  const lost = { height: 113, hash: (await stage.chain('ETH').blockHash(113)) ?? '' }
  await orphanOutflows(world, 'ETH', { kind: 'named', blocks: [lost] }, 2, nobodyElse)
  stage.chain('ETH').move(113, 'ETH:ETH', RESERVE, COST)
  await buryPayout()
  stage.advance(60_000)
  await work(world, refusingChain(moved))
}

/** The first nonce is the payout's, in this block. */
async function buryPayout(height = 114): Promise<void> {
  const eth = stage.chain('ETH')
  const [payout] = await stage.db.query<{ id: string }>(
    "SELECT order_id AS id FROM outflows WHERE kind = 'payout'",
  )
  eth.mined(`tx-${payout?.id}:1-1`, height, COST)
  eth.move(height, 'ETH:ETH', RESERVE, -(10n ** 18n) - COST)
  await lookAt(stage, 'ETH', height + 12)
}

/** It has what is mined on paper, and takes nothing more with the first nonce. */
function refusingChain(moved: string | null = null): Chain {
  return payingChain(stage, {
    minedNonce: async () => 1,
    broadcast: async () => 'refused',
    lookup: async (txHash) => {
      const status = await stage.chain('ETH').lookup(txHash)
      return status.where === 'block' && moved !== null ? { ...status, movedOtherwise: moved } : status
    },
  })
}

test('the payout is mined when its filler has lost its block: it is owed no more', async () => {
  await minePayoutOfLostFiller(signingWorld(), null)
  expect(await statesOf()).toEqual({ payout: 'confirmed', filler: 'failed' })
  expect((await auditBooks(stage.db)).problems).toEqual([])
  expect((await auditChain(stage.db, stage.chain('ETH'), stage.world.clock)).problems).toEqual([])
  expect(stage.logged.at(-1)).toMatchObject({
    level: 'error',
    message:
      'an outflow that was given up and owed was mined after all: if it was paid by hand, it was paid twice',
  })
})

test('what was closed of the payout is turned round when that is mined after all: books and chain agree at every step', async () => {
  const world = signingWorld()
  const agree = async (what: string) => {
    expect((await auditBooks(stage.db)).problems, what).toEqual([])
    const { problems } = await auditChain(stage.db, stage.chain('ETH'), stage.world.clock)
    expect(problems, what).toEqual([])
  }
  const words = () => stage.db.query('SELECT number, units FROM operator_words ORDER BY number')
  await minePayoutOfLostFiller(world, null, async () => {
    const before = await capitalOf('ETH:ETH')
    expect(await close()).toContain('is closed: 1 ETH:ETH are capital')
    expect(await capitalOf('ETH:ETH')).toBe(before - 10n ** 18n)
    await agree('closed')
  })
  expect(await statesOf()).toEqual({ payout: 'confirmed', filler: 'failed' })
  await agree('mined after all')
  expect(await words()).toEqual([
    { number: 1, units: 10n ** 18n },
    { number: 2, units: -(10n ** 18n) },
  ])
  expect((await readOrphanedPayouts(stage.db)).map(({ amount }) => amount)).toEqual([0])
  expect(await close()).toMatch(
    /^Nothing is owed of CB\d+:1 that was final and lost its block: it is confirmed\.$/,
  )
  expect(stage.logged.at(-1)).toMatchObject({
    level: 'error',
    message: expect.stringContaining('was given up and owed was mined after all'),
  })
  const lost = { height: 114, hash: (await stage.chain('ETH').blockHash(114)) ?? '' }
  await orphanOutflows(world, 'ETH', { kind: 'named', blocks: [lost] }, 3, nobodyElse)
  stage.chain('ETH').move(114, 'ETH:ETH', RESERVE, 10n ** 18n + COST)
  const outflow = await findOutflow(stage.db, await payoutId())
  assert(outflow !== null, 'there is one')
  await giveUpOrphan(world, outflow, nobodyElse)
  expect(await close(), 'it is owed once more').toMatch(/operator:closed_owed:CB\d+:CB\d+:1:3\.$/m)
  await agree('closed once more')
})

test('nothing is closed as long as the payout may be mined: while it is sent again, and while its filler is not final', async () => {
  const world = signingWorld()
  await orphanPayout(world)
  await fillNonce(world)
  expect(await close()).toMatch(/^CB\d+:1 has lost its block and is sent again: it may be mined yet\.$/)
  const chain = await buryFiller(113)
  await work(dyingAt(world, `${FILLER}:confirmed`), chain())
  expect(await close(), 'the end of its filler is not written down').toMatch(
    /^CB\d+:1 may be mined yet: what stands in its way is not final\.$/,
  )
  await work(world, chain())
  const lost = { height: 113, hash: (await stage.chain('ETH').blockHash(113)) ?? '' }
  await orphanOutflows(world, 'ETH', { kind: 'named', blocks: [lost] }, 2, nobodyElse)
  expect(await close(), 'its filler has lost its block').toContain('may be mined yet: what stands')
  expect(await stage.db.query('SELECT 1 FROM operator_words')).toEqual([])
})

/** What `cambist order close-owed` says of the only payout. */
async function close(): Promise<string> {
  return tellOrderCommand(stage, ['close-owed', await payoutId(), '--because', 'to be paid by hand'])
}

async function payoutId(): Promise<string> {
  const [payout] = await stage.db.query<{ id: string }>(
    "SELECT payout_id AS id FROM outflows WHERE kind = 'payout'",
  )
  return payout?.id ?? ''
}

async function capitalOf(of: AssetId): Promise<bigint> {
  const balances = await readBalances(stage.db)
  return balances.find(({ asset, account }) => asset === of && account === 'capital')?.units ?? 0n
}

test('the payout is mined when its filler has lost its block, and moved otherwise: it stays owed', async () => {
  await minePayoutOfLostFiller(signingWorld(), 'it was to move 100 units and moved 99')
  expect(await statesOf()).toEqual({ payout: 'failed', filler: 'failed' })
  const { problems, balances } = await auditBooks(stage.db)
  expect(problems.map(({ message }) => message)).toContainEqual(expect.stringContaining('is not confirmed'))
  expect(balances.find(({ account }) => account === 'orphaned_payouts')?.units).toBe(-(10n ** 18n))
  expect(stage.logged.at(-1)).toMatchObject({
    level: 'error',
    message:
      'an outflow that was owed was mined after all and moved something else: it does not count as paid, and may have paid somebody',
  })
})

/** The engine dies where it has ended the payout and not its filler yet, whose block is lost before it is there again. */
async function dieAndLoseFiller(world: SigningWorld): Promise<void> {
  const chain = await buryFiller(113)
  await work(dyingAt(world, `${FILLER}:confirmed`), chain())
  expect(await statesOf()).toEqual({ payout: 'failed', filler: 'broadcast' })
  stage.chain('ETH').move(113, 'ETH:ETH', RESERVE, COST)
  await buryPayout()
  await work(world, refusingChain())
  expect(await stage.db.query('SELECT 1 FROM outflows WHERE is_block_lost')).toEqual([])
}

test('the engine dies between the two ends, and a payout that was owed is mined instead: it is owed no more', async () => {
  const world = signingWorld()
  await orphanPayout(world)
  await fillNonce(world)
  await dieAndLoseFiller(world)
  expect(await statesOf()).toEqual({ payout: 'confirmed', filler: 'failed' })
  expect((await auditBooks(stage.db)).problems).toEqual([])
  expect(stage.logged.at(-1)).toMatchObject({
    level: 'error',
    message: expect.stringContaining('was given up and owed was mined after all'),
  })
})

test('the engine dies between the two ends, and a payout whose customer was asked is mined instead: it is told of', async () => {
  const world = signingWorld()
  await openReserve(stage)
  const { id } = await pricedOrder(stage)
  await fillNonce(world, 'signed')
  await dieAndLoseFiller(world)
  expect((await findOrder(stage.db, id))?.state.status).toBe('EMERGENCY')
  expect(await statesOf()).toEqual({ payout: 'failed', filler: 'failed' })
  expect(stage.logged.at(-1)).toMatchObject({
    level: 'error',
    message: 'an outflow that had failed was mined again and paid: it may have been paid twice',
  })
})
