import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, Transfer } from '../../chains/chain.ts'
import { blockHashAt, noteTrouble, readHead } from '../../db/chain_heads.ts'
import { type Database, openDatabase } from '../../db/database.ts'
import { type Lease, requireLease, takeLease } from '../../db/leases.ts'
import { findOrder } from '../../db/orders.ts'
import { findOutflow } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Intent } from '../../domain/payouts/intent.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { reconcileChain } from '../books/reconcile.ts'
import { deepHeight } from '../deep_height.ts'
import { expireOrders } from '../expire.ts'
import { endAgain } from '../payouts/orphan.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
  strayDeposit,
} from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import type { PaperChain } from '../testing/paper_chain.ts'
import { watchOnce } from '../testing/watch_once.ts'
import { expectGrowth } from './growth.ts'
import { beginTurn } from './look.ts'
import { checkIdentity } from './watch.ts'

/**
 * What: a node that tells less than before, nothing new, or of another network is in trouble, and takes nothing back.
 * How: a real PostgreSQL and a chain on paper, looked at by hand.
 */
let stage: BooksStage
let lease: Lease

beforeAll(async () => {
  stage = await openBooksStage('watch')
})

beforeEach(async () => {
  await stage.reset()
  const taken = await takeLease(stage.db, 'watch:BTC', 'me', stage.world.clock.wallMs(), 48 * HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  lease = taken
})

afterAll(() => stage?.stop())

/** A chain on paper whose blocks bring nothing. */
function emptyChain(): PaperChain {
  const chain = stage.chain('BTC')
  return Object.assign(chain, {
    assets: [],
    readMempool: async () => [],
    readBlock: async (height: number) => ({
      height,
      hash: (await chain.blockHash(height)) ?? '',
      parentHash: (await chain.blockHash(height - 1)) ?? '',
      timeMs: stage.world.clock.wallMs(),
      transfers: [],
    }),
  })
}

/** All of them are looked at, and known from then on. */
async function grow(chain: PaperChain, height: number): Promise<void> {
  chain.setHead(height)
  await watchOnce(stage.world, chain, lease)
}

async function head() {
  const found = await readHead(stage.db, 'BTC')
  assert(found !== null, 'it was looked at')
  return { ...found, silentMs: stage.world.clock.wallMs() - found.lookedWallMs }
}

test('a node that is behind what it told is in trouble, and what it does not have stays', async () => {
  const chain = emptyChain()
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000n, promises: 1_000n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000n, 100))
  await grow(chain, 103)
  stage.advance(1_000)
  chain.setHead(101)
  await expect(watchOnce(stage.world, chain, lease)).rejects.toThrow('2 blocks behind what it told before')
  expect(await head()).toMatchObject({ block: { height: 103 }, silentMs: 1_000, reorganisations: 0 })
  expect((await head()).trouble).toContain('behind')
  const deposits = await stage.db.query<{ state: string }>('SELECT state FROM deposits')
  expect(deposits).toEqual([{ state: 'confirmed' }])
  await grow(chain, 104)
  expect(await head()).toMatchObject({ block: { height: 104 }, trouble: null, silentMs: 0 })
})

test('a node that stands still on a block that lost takes nothing back, and is not asked about each block', async () => {
  const chain = emptyChain()
  await grow(chain, 118)
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000n, promises: 1_000n })
  chain.setHead(140)
  await mineDeposit(stage, order, 1_000n, 120)
  await grow(chain, 140)
  let asked = 0
  const stands: Chain = {
    ...chain,
    head: async () => ({ height: 115, hash: 'lost 115' }),
    blockHash: async (height) => {
      asked += 1
      return height === 115 ? 'lost 115' : null
    },
  }
  await expect(watchOnce(stage.world, stands, lease)).rejects.toThrow('25 blocks behind what it told before')
  expect(asked).toBe(0)
  expect(await head()).toMatchObject({ block: { height: 140 }, reorganisations: 0 })
  expect(await depositStates()).toEqual([{ state: 'confirmed' }])
})

/** What is called final, and of which branch where not of the one that is read. */
type Final = { height: number; hash?: string | undefined }

function tellsFinal(chain: PaperChain, final: Final): PaperChain {
  const finalBlock = async () => {
    const { height, hash } = final
    return { height, hash: hash ?? (await chain.blockHash(height)) ?? `not read ${height}` }
  }
  return Object.assign(chain, { finalBlock })
}

/** The deposit of an order and money of nobody's, in one block, 22 blocks below the head, and not final. */
async function depositsAt103(final: Final) {
  const chain = tellsFinal(emptyChain(), final)
  await grow(chain, 102)
  chain.setHead(125)
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000n, promises: 1_000n })
  await mineDeposit(stage, order, 1_000n, 103)
  await strayDeposit(stage, {
    ...{ asset: 'BTC:BTC', units: 7n, address: 'stray', purpose: 'deposit', height: 103 },
  })
  await grow(chain, 125)
  return chain
}

async function allStates() {
  const ofHouse = await stage.db.query<{ state: string }>('SELECT state FROM house_deposits')
  return [...(await depositStates()), ...ofHouse].map(({ state }) => state)
}

test('however deep a block is, nothing in it is credited before its network says that it is final', async () => {
  const final = { height: 102 }
  const chain = await depositsAt103(final)
  expect(await allStates()).toEqual(['mined', 'mined'])
  final.height = 103
  await grow(chain, 125)
  expect(await allStates()).toEqual(['confirmed', 'confirmed'])
})

/** The same world, and what its database is told: the first words of each statement. */
function overheard() {
  const said: string[] = []
  const query: Database['query'] = (text, values) => {
    said.push(text.trim().split(/\s+/, 3).join(' '))
    return stage.db.query(text, values)
  }
  return { world: { ...stage.world, db: { ...stage.db, query } }, said }
}

test('a look that finds nothing new asks for little, and is noted once a second', async () => {
  const chain = Object.assign(emptyChain(), {
    assets: ['BTC:BTC' as const],
    estimatePayout: async () => ({ cost: amountOf('BTC:BTC', 1n), isAboveFeeCap: false }),
  })
  await grow(chain, 102)
  const { world, said } = overheard()
  const watcher = { waitingTurn: beginTurn(), untold: [] }
  const lookOnce = async () => {
    said.length = 0
    await watchOnce(world, chain, lease, watcher)
    return said.splice(0)
  }
  await lookOnce()
  expect(await lookOnce()).toEqual(['SELECT h.*, b.hash'])
  stage.advance(999)
  expect(await lookOnce()).toEqual(['SELECT h.*, b.hash'])
  stage.advance(1)
  expect(await lookOnce()).toEqual(['SELECT h.*, b.hash', 'UPDATE chain_heads SET'])
  expect(await head()).toMatchObject({ lookedAtMs: stage.world.clock.nowMs(), silentMs: 0 })
  // Another's note of trouble, or of a node that knew more, is put right at once.
  await noteTrouble(stage.db, 'BTC', 'it was away', stage.world.clock.nowMs())
  expect(await lookOnce()).toContain('UPDATE chain_heads SET')
  expect(await head()).toMatchObject({ trouble: null })
})

async function lag(): Promise<number> {
  const { nodeHeight, block } = await head()
  return nodeHeight - block.height
}

test('how far the node is ahead is known before it has been caught up with, also where nothing can be read', async () => {
  const chain = emptyChain()
  await grow(chain, 103)
  chain.setHead(200)
  const unread = { ...chain, readBlock: () => Promise.reject(new Error('too slow to trace')) }
  await expect(watchOnce(stage.world, unread, lease)).rejects.toThrow('too slow to trace')
  expect(await lag()).toBe(97)
  expect(await watchOnce(stage.world, { ...chain, readBlock: async () => null }, lease)).toBe(false)
  expect(await lag()).toBe(97)
  expect(await watchOnce(stage.world, chain, lease)).toBe(true)
  expect(await lag()).toBe(47)
  expect(await watchOnce(stage.world, chain, lease)).toBe(false)
  expect(await lag()).toBe(0)
})

test('the node is never behind what was read of it, however often a look fails at its end', async () => {
  const chain = emptyChain()
  await grow(chain, 103)
  const deaf = { ...chain, readMempool: () => Promise.reject(new Error('no mempool')) }
  for (const height of [104, 105, 106]) {
    chain.setHead(height)
    await expect(watchOnce(stage.world, deaf, lease)).rejects.toThrow('no mempool')
    expect(await head()).toMatchObject({ block: { height }, nodeHeight: height })
  }
})

test('who has lost the lease does not say how far the node is', async () => {
  const chain = emptyChain()
  await grow(chain, 103)
  chain.setHead(200)
  const late = { ...lease, fence: lease.fence - 1 }
  await expect(watchOnce(stage.world, chain, late)).rejects.toThrow('was lost')
  expect(await lag()).toBe(0)
})

test('what is final on a branch that the node goes over to says nothing of the one that it leaves', async () => {
  const final = { height: 102 }
  const chain = await depositsAt103(final)
  const leaving: Chain = {
    ...chain,
    head: async () => {
      const head = await chain.head()
      chain.fork(103)
      final.height = 110
      return head
    },
  }
  await watchOnce(stage.world, leaving, lease)
  expect(await allStates()).toEqual(['mined', 'mined'])
  await grow(chain, 126)
  expect(await allStates()).toEqual(['vanished', 'orphaned'])
})

test('what another node calls final on another branch says nothing of the one that is read', async () => {
  const final: Final = { height: 102 }
  const chain = await depositsAt103(final)
  Object.assign(final, { height: 103, hash: 'of another branch 103' })
  await grow(chain, 140)
  expect(await allStates()).toEqual(['mined', 'mined'])
  expect(await head()).toMatchObject({ finalHeight: 102 })
  Object.assign(final, { height: 110, hash: 'of another branch 110' })
  await grow(chain, 140)
  expect(await allStates()).toEqual(['mined', 'mined'])
  Object.assign(final, { height: 103, hash: undefined })
  await grow(chain, 140)
  expect(await allStates()).toEqual(['confirmed', 'confirmed'])
  expect(await head()).toMatchObject({ finalHeight: 103 })
})

test('what was final stays so for whoever watches next, and no further', async () => {
  const final: Final = { height: 102 }
  const chain = await depositsAt103(final)
  Object.assign(final, { height: 104, hash: 'of another branch 104' })
  for (const height of [125, 126]) await grow(chain, height)
  expect(await head()).toMatchObject({ finalHeight: 102 })
  expect(await deepHeight(stage.db, chain)).toBe(102)
  // A node that is behind says less than was known.
  Object.assign(final, { height: 90, hash: undefined })
  await grow(chain, 127)
  expect(await head()).toMatchObject({ finalHeight: 102 })
})

test('what is final on a branch that was left is final no more', async () => {
  const final: Final = { height: 102 }
  const chain = await depositsAt103(final)
  final.height = 110
  await grow(chain, 126)
  expect(await head()).toMatchObject({ finalHeight: 110 })
  Object.assign(final, { hash: await chain.blockHash(110) })
  chain.fork(106)
  await grow(chain, 127)
  expect(await head()).toMatchObject({ finalHeight: 105, reorganisations: 1 })
  // The look that finds the next branch may find as much of it final.
  Object.assign(final, { height: 108, hash: undefined })
  await grow(chain, 127)
  chain.fork(300)
  await grow(chain, 128)
  expect(await head()).toMatchObject({ finalHeight: 108, reorganisations: 2 })
})

test('what is final is known also where the node that says so is always ahead of the one whose blocks are read', async () => {
  const final: Final = { height: 102 }
  const chain = await depositsAt103(final)
  const finalAhead = { block: null }
  const hashes = new Map<number, string>()
  chain.setHead(200)
  for (let height = 126; height < 140; height += 1) hashes.set(height, (await chain.blockHash(height)) ?? '')
  const lookWhileAhead = async (height: number) => {
    Object.assign(final, { height: height + 3, hash: hashes.get(height + 3) })
    chain.setHead(height)
    await watchOnce(stage.world, chain, lease, { finalAhead })
    return (await head()).finalHeight
  }
  const known: (number | null)[] = []
  for (let height = 126; height < 134; height += 1) known.push(await lookWhileAhead(height))
  expect(known).toEqual([102, 102, 102, 129, 129, 129, 132, 132])
  expect(await allStates()).toEqual(['confirmed', 'confirmed'])
})

test('a chain does not begin with what another branch calls final', async () => {
  await stage.corrupt("DELETE FROM chain_heads WHERE chain = 'BTC'")
  const final: Final = { height: 98, hash: 'of another branch 98' }
  const chain = tellsFinal(emptyChain(), final)
  await expect(watchOnce(stage.world, chain, lease)).rejects.toThrow('calls block 98 final, and has another')
  expect(await readHead(stage.db, 'BTC')).toBeNull()
  final.hash = undefined
  await watchOnce(stage.world, chain, lease)
  expect(await head()).toMatchObject({ block: { height: 100 }, finalHeight: 98 })
})

test('of two nodes behind one address, the one that is behind takes nothing back', async () => {
  const chain = emptyChain()
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000n, promises: 1_000n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000n, 103))
  await grow(chain, 103)
  chain.setHead(104)
  const { blockHash } = chain
  const behind = {
    ...chain,
    blockHash: async (height: number) => (height > 102 ? null : blockHash(height)),
  }
  const refusal = 'tells of block 104 and does not have block 103'
  await expect(watchOnce(stage.world, behind, lease)).rejects.toThrow(refusal)
  expect(await head()).toMatchObject({ block: { height: 103 }, reorganisations: 0 })
  expect(stage.logged.map(({ message }) => message)).not.toContain('the chain was reorganised')
  expect(await depositStates()).toEqual([{ state: 'confirmed' }])
  await grow(chain, 104)
  expect(await head()).toMatchObject({ block: { height: 104 }, reorganisations: 0, trouble: null })
})

test('a node that tells of blocks and does not give them is not asked without rest', async () => {
  const chain = emptyChain()
  await grow(chain, 101)
  chain.setHead(200)
  const { readBlock } = chain
  const behind = {
    ...chain,
    readBlock: async (...asked: Parameters<typeof readBlock>) =>
      asked[0] > 160 ? null : readBlock(...asked),
  }
  expect(await watchOnce(stage.world, behind, lease)).toBe(true)
  expect(await watchOnce(stage.world, behind, lease)).toBe(true)
  expect(await head()).toMatchObject({ block: { height: 160 } })
  expect(await watchOnce(stage.world, behind, lease)).toBe(false)
  expect(await watchOnce(stage.world, chain, lease)).toBe(false)
  expect(await head()).toMatchObject({ block: { height: 200 } })
})

test('a shorter chain on another branch is a reorganisation all the same', async () => {
  const chain = emptyChain()
  await grow(chain, 103)
  chain.fork(102)
  await grow(chain, 102)
  expect(await head()).toMatchObject({ block: { height: 102 }, reorganisations: 1, trouble: null })
})

const { confirmations } = chainFacts.BTC
const HALF = Math.floor(confirmations / 2)

test.each([
  [HALF, 0],
  [HALF + 1, 110 + confirmations],
])(
  'of a reorganisation of %i blocks one waits until block %i before anything leaves',
  async (depth, height) => {
    const chain = emptyChain()
    await grow(chain, 110)
    chain.fork(111 - depth)
    await grow(chain, 111)
    expect(await head()).toMatchObject({ block: { height: 111 }, cautiousUntilHeight: height })
    const { blockHash } = chain
    Object.assign(chain, { blockHash: async (at: number) => (at === 111 ? 'a third one' : blockHash(at)) })
    await grow(chain, 112)
    expect(await head(), 'a small one since').toMatchObject({
      reorganisations: 2,
      cautiousUntilHeight: height,
    })
  },
)

test('what was paid is known up to when a look began, however long it takes', async () => {
  const chain = emptyChain()
  await grow(chain, 103)
  stage.advance(1_000)
  const startedAtMs = stage.world.clock.nowMs()
  const slow: Chain = {
    ...chain,
    readMempool: async () => {
      stage.advance(10_000)
      return []
    },
  }
  await watchOnce(stage.world, slow, lease)
  expect(await head()).toMatchObject({ lookedAtMs: startedAtMs, silentMs: 0 })
})

test('the very first block that was looked at may leave the chain', async () => {
  await stage.corrupt("DELETE FROM chain_heads WHERE chain = 'BTC'")
  const chain = emptyChain()
  await watchOnce(stage.world, chain, lease)
  expect(await head()).toMatchObject({ block: { height: 100 }, reorganisations: 0 })
  chain.fork(99)
  await grow(chain, 101)
  expect(await head()).toMatchObject({ block: { height: 101 }, reorganisations: 1, trouble: null })
})

const ETHER = 10n ** 18n

/** Two orders are paid in the block at 103, which nobody has looked at. */
async function payTwoAt103() {
  const orders = [1, 2].map(() => placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000n, promises: 1_000n }))
  const terms = (await Promise.all(orders)).map((order) => order.terms)
  const chain = emptyChain()
  chain.setHead(103)
  const block = { height: 103, hash: (await chain.blockHash(103)) ?? '' }
  for (const { id } of terms) chain.mined(id, block.height, 0n)
  const transfers = terms.map(({ id, depositAddress: to }): Transfer => {
    return { id: `${id}:0`, txHash: id, to, asset: 'BTC:BTC', units: 1_000n }
  })
  const { readBlock } = chain
  const paying: Chain['readBlock'] = async (height, findOurs) => {
    const read = await readBlock(height, findOurs)
    if (read?.hash !== block.hash) return read
    await findOurs(transfers.map(({ to }) => to))
    return { ...read, transfers }
  }
  return { chain: Object.assign(chain, { readBlock: paying }), block }
}

/** The same, looked at, and a payout became final there. */
async function beginAt103() {
  const { chain, block } = await payTwoAt103()
  await watchOnce(stage.world, chain, lease)
  const done = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: ETHER, promises: 1_000n })
  await confirmDeposit(stage, done, await mineDeposit(stage, done, ETHER, 100))
  const { payoutId, txHash } = await sendPayout(stage, done)
  await confirmPayout(stage, done, { payoutId, txHash, cost: 1n, height: block.height })
  return { chain, block, payoutId }
}

function depositStates() {
  return stage.db.query(`SELECT state FROM deposits WHERE chain = 'BTC' ORDER BY state`)
}

/** The block, the first order; by the second one the watcher is gone. */
async function lookHalf(chain: Chain): Promise<void> {
  let asked = 0
  const hold = async () => {
    asked += 1
    return asked < 3 ? lease : null
  }
  await expect(watchOnce(stage.world, chain, lease, { hold })).rejects.toThrow('lost')
}

/** Two orders are paid in the block at 103; the first of them hears of it, and then the watcher is gone. */
async function tellHalfOf103(): Promise<PaperChain> {
  const { chain } = await payTwoAt103()
  chain.setHead(102)
  await watchOnce(stage.world, chain, lease)
  chain.setHead(103)
  await lookHalf(chain)
  expect(await depositStates()).toEqual([{ state: 'mined' }])
  expect(await head()).toMatchObject({ block: { height: 102 } })
  return chain
}

test('what was told of a block is taken back also when another takes its place while it is read again', async () => {
  const chain = await tellHalfOf103()
  const readBlock: Chain['readBlock'] = (height, findOurs) => {
    // It was still there when that was asked.
    chain.fork(103)
    return chain.readBlock(height, findOurs)
  }
  expect(await watchOnce(stage.world, { ...chain, readBlock }, lease)).toBe(false)
  await grow(chain, 110)
  expect(await depositStates()).toEqual([{ state: 'seen' }])
  expect(await head()).toMatchObject({ block: { height: 110 }, reorganisations: 1 })
})

test('a block that does not stand on the last one that was read is not read before the fork is found', async () => {
  const { chain } = await payTwoAt103()
  await watchOnce(stage.world, chain, lease)
  chain.setHead(104)
  const readBlock: Chain['readBlock'] = (height, findOurs) => {
    // The last one was still there when that was asked.
    chain.fork(103)
    return chain.readBlock(height, findOurs)
  }
  expect(await watchOnce(stage.world, { ...chain, readBlock }, lease)).toBe(false)
  expect(await head()).toMatchObject({ block: { height: 103 }, reorganisations: 0 })
  await grow(chain, 104)
  expect(await depositStates()).toEqual([{ state: 'seen' }, { state: 'seen' }])
  expect(await stage.db.query('SELECT DISTINCT block_height FROM coins')).toEqual([{ block_height: null }])
  expect(await head()).toMatchObject({ block: { height: 104 }, reorganisations: 1 })
})

test('what was final in a block that was never read, because another is in its place, is sent again', async () => {
  const chain = emptyChain()
  await grow(chain, 103)
  const order = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: ETHER, promises: 1_000n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { payoutId, txHash } = await sendPayout(stage, order)
  chain.setHead(104)
  await confirmPayout(stage, order, { payoutId, txHash, cost: 1n, height: 104 })
  await grow(chain, 104)
  expect(await findOutflow(stage.db, payoutId)).toMatchObject({ state: 'confirmed' })
  await stage.db.query("UPDATE outflows SET mined_height = 105, mined_hash = 'of another branch'")
  await grow(chain, 105)
  expect(await findOutflow(stage.db, payoutId)).toMatchObject({ state: 'orphaned' })
})

test('a node that does not have a block of which was told already is behind, and nothing is taken back', async () => {
  const chain = await tellHalfOf103()
  chain.setHead(102)
  const refusal = '1 blocks behind what it told before'
  await expect(watchOnce(stage.world, chain, lease)).rejects.toThrow(refusal)
  expect(await depositStates()).toEqual([{ state: 'mined' }])
  chain.setHead(103)
  await watchOnce(stage.world, chain, lease)
  expect(await depositStates()).toEqual([{ state: 'mined' }, { state: 'mined' }])
  expect(await head()).toMatchObject({ block: { height: 103 }, reorganisations: 0, trouble: null })
})

test('a reorganisation that was told by half is told to its end, also when the chain has come back', async () => {
  const { chain, block, payoutId } = await beginAt103()
  chain.fork(103)
  await lookHalf(chain)
  expect(await depositStates()).toEqual([{ state: 'mined' }, { state: 'seen' }])
  const orphaned = await findOutflow(stage.db, payoutId)
  assert(orphaned?.state === 'orphaned', 'its block has left')

  chain.fork(Number.POSITIVE_INFINITY)
  const again = { txHash: 'again', intent: { family: 'bitcoin', inputs: [] } as unknown as Intent }
  await endAgain(stage.world, orphaned, again, { succeeded: true, block, cost: amountOf('BTC:BTC', 1n) })
  stage.advance(2_000)
  await watchOnce(stage.world, chain, lease)
  expect(await depositStates()).toEqual([{ state: 'mined' }, { state: 'mined' }])
  expect(await findOutflow(stage.db, payoutId)).toMatchObject({ state: 'confirmed' })
  expect(await head()).toMatchObject({ block, reorganisations: 1, leavingAboveHeight: null })

  chain.fork(103)
  await watchOnce(stage.world, chain, lease)
  expect(await depositStates()).toEqual([{ state: 'seen' }, { state: 'seen' }])
  expect(await findOutflow(stage.db, payoutId)).toMatchObject({ state: 'orphaned' })
})

test('a reorganisation that goes deeper after it was told by half is told whole', async () => {
  const { chain, payoutId } = await beginAt103()
  await grow(chain, 104)
  chain.fork(104)
  let transactions = 0
  const transaction: Database['transaction'] = (work) => {
    transactions += 1
    // That it leaves is noted; going back is not.
    return transactions === 2 ? Promise.reject(new Error('it dies')) : stage.db.transaction(work)
  }
  const dying = { ...stage.world, db: { ...stage.db, transaction } }
  await expect(watchOnce(dying, chain, lease)).rejects.toThrow('it dies')
  expect(await head()).toMatchObject({ block: { height: 104 }, leavingAboveHeight: 103 })

  chain.fork(103)
  await watchOnce(stage.world, chain, lease)
  expect(await head()).toMatchObject({ block: { height: 104 }, reorganisations: 1, leavingAboveHeight: null })
  expect(await depositStates()).toEqual([{ state: 'seen' }, { state: 'seen' }])
  expect(await findOutflow(stage.db, payoutId)).toMatchObject({ state: 'orphaned' })
})

test('a node that stands still for longer than its network ever did is in trouble until it goes on', async () => {
  const chain = emptyChain()
  const grows = { requireGrowth: expectGrowth(stage.world, 'BTC') }
  await watchOnce(stage.world, chain, lease, grows)
  stage.advance(2 * HOUR_MS)
  await watchOnce(stage.world, chain, lease, grows)
  expect(await head()).toMatchObject({ silentMs: 0, trouble: null })
  stage.advance(HOUR_MS)
  await expect(watchOnce(stage.world, chain, lease, grows)).rejects.toThrow('at block 100 for 10800 s')
  expect(await head()).toMatchObject({ silentMs: HOUR_MS })
  chain.setHead(101)
  await watchOnce(stage.world, chain, lease, grows)
  expect(await head()).toMatchObject({ silentMs: 0, trouble: null })
})

test('a node that is catching up has not been looked at: what was paid while it was away ends no order', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 100_000_000n, promises: 1_000n })
  const chain = emptyChain()
  const grows = { requireGrowth: expectGrowth(stage.world, 'BTC') }
  const startedAtMs = stage.world.clock.wallMs()
  const at = (timeMs: number): Chain => ({
    ...chain,
    head: async () => ({ ...(await chain.head()), timeMs }),
  })
  await watchOnce(stage.world, at(startedAtMs), lease, grows)
  stage.advance(3 * HOUR_MS)
  await expect(watchOnce(stage.world, at(startedAtMs), lease, grows)).rejects.toThrow(
    'at block 100 for 10800 s',
  )
  // Another life of this process, which has not seen it stand.
  const anew = { requireGrowth: expectGrowth(stage.world, 'BTC') }
  await expect(watchOnce(stage.world, at(startedAtMs), lease, anew)).rejects.toThrow(
    'at block 100 for 10800 s',
  )
  await expireOrders(stage.world)
  expect((await findOrder(stage.db, order.terms.id))?.state.status).toBe('NEW')
  await watchOnce(stage.world, at(stage.world.clock.wallMs()), lease, anew)
  await expireOrders(stage.world)
  expect((await findOrder(stage.db, order.terms.id))?.state.status).toBe('EXPIRED')
})

test("a node of another network is the chain's trouble", async () => {
  const stranger = { ...emptyChain(), checkIdentity: () => Promise.reject(new Error('another genesis')) }
  await expect(checkIdentity(stage.world, stranger, lease)).rejects.toThrow('another genesis')
  expect((await head()).trouble).toContain('another genesis')
})

test('what a node says is kept also where PostgreSQL keeps no such text', async () => {
  const garbled = { ...emptyChain(), checkIdentity: () => Promise.reject(new Error('HTTP 502 \0\0')) }
  await expect(checkIdentity(stage.world, garbled, lease)).rejects.toThrow('HTTP 502')
  expect((await head()).trouble).toBe('Error: HTTP 502 ')
})

/** The lease runs out, and another watcher looks at the chain. */
async function beOvertaken(chain: Chain, requireGrowth = () => {}): Promise<void> {
  stage.advance(49 * HOUR_MS)
  const other = await takeLease(stage.db, 'watch:BTC', 'another', stage.world.clock.wallMs(), HOUR_MS)
  assert(other !== null, 'the lease is over')
  await watchOnce(stage.world, chain, other, { requireGrowth })
}

test('a watcher that slept while another went back to an earlier block says that it is late, and no more', async () => {
  const chain = emptyChain()
  await grow(chain, 103)
  chain.fork(102)
  let hasSlept = false
  const blockHash = async (height: number) => {
    if (!hasSlept) {
      hasSlept = true
      // Has gone back, and not yet read what came instead.
      await beOvertaken({ ...chain, readBlock: async () => null })
      expect(await head()).toMatchObject({ block: { height: 101 }, reorganisations: 1 })
    }
    return chain.blockHash(height)
  }
  const late = watchOnce(stage.world, { ...chain, blockHash }, lease)
  await expect(late).rejects.toThrow('the lease watch:BTC was lost')
  expect((await head()).trouble).toBeNull()
})

test('a watcher that slept during its first look leaves the blocks that another noted', async () => {
  const chain = emptyChain()
  await stage.db.query("DELETE FROM chain_heads WHERE chain = 'BTC'")
  await stage.db.query("DELETE FROM chain_blocks WHERE chain = 'BTC'")
  let hasSlept = false
  const blockHash = async (height: number) => {
    const hash = await chain.blockHash(height)
    if (!hasSlept) {
      hasSlept = true
      chain.fork(99)
      await beOvertaken(chain)
    }
    return hash
  }
  const late = watchOnce(stage.world, { ...chain, blockHash }, lease)
  await expect(late).rejects.toThrow('the lease watch:BTC was lost')
  expect(await blockHashAt(stage.db, 'BTC', 99)).toBe(await chain.blockHash(99))
})

test('a watcher that slept while it read a block that brought nothing does not move the head', async () => {
  const chain = emptyChain()
  await grow(chain, 103)
  chain.setHead(104)
  const readBlock: Chain['readBlock'] = async (height, ours) => {
    const block = await chain.readBlock(height, ours)
    chain.fork(104)
    chain.setHead(106)
    await beOvertaken(chain)
    return block
  }
  const late = watchOnce(stage.world, { ...chain, readBlock }, lease)
  await expect(late).rejects.toThrow('the lease watch:BTC was lost')
  expect(await head()).toMatchObject({ block: { height: 106 } })
  expect(await blockHashAt(stage.db, 'BTC', 104)).toBe(await chain.blockHash(104))
})

test('a watcher that slept while another went on does not say that the node is behind', async () => {
  const chain = emptyChain()
  await grow(chain, 103)
  const lateHead = async () => {
    const told = await chain.head()
    chain.setHead(105)
    await beOvertaken(chain)
    return told
  }
  const late = watchOnce(stage.world, { ...chain, head: lateHead }, lease)
  await expect(late).rejects.toThrow('the lease watch:BTC was lost')
  expect(await head()).toMatchObject({ block: { height: 105 }, trouble: null })
})

test('a watcher that slept while another found the chain in trouble does not say that all is well', async () => {
  const chain = emptyChain()
  await grow(chain, 103)
  const lateHead = async () => {
    const overtaken = beOvertaken(chain, () => {
      throw new Error('it stands still')
    })
    await expect(overtaken).rejects.toThrow('it stands still')
    return chain.head()
  }
  const late = watchOnce(stage.world, { ...chain, head: lateHead }, lease)
  await expect(late).rejects.toThrow('the lease watch:BTC was lost')
  expect((await head()).trouble).toContain('it stands still')
})

test('a watcher frozen in the middle of a transaction does not keep others from taking over', async () => {
  // With the limits of the service, which are what ends it.
  const db = openDatabase({
    url: stage.databaseUrl,
    connectionsMax: 2,
    applicationName: 'frozen',
    onConnectionLost: () => {},
  })
  const thaw = Promise.withResolvers<void>()
  const locked = Promise.withResolvers<void>()
  const frozen = db.transaction(async (tx) => {
    await requireLease(tx, lease)
    locked.resolve()
    await thaw.promise
    await requireLease(tx, lease)
  })
  await locked.promise
  const laterMs = stage.world.clock.wallMs() + 49 * HOUR_MS
  // Waits behind the lock, and for no longer than a statement may take.
  const taken = await takeLease(db, 'watch:BTC', 'another', laterMs, HOUR_MS)
  expect(taken).toMatchObject({ holder: 'another', fence: lease.fence + 1 })
  thaw.resolve()
  await expect(frozen).rejects.toThrow()
  await db.close()
})

test('what a block gives an address by itself is unclaimed money, which no order counts and the books know', async () => {
  const order = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: 1_000n, promises: 1_000n })
  const { depositAddress } = order.terms
  const eth = stage.chain('ETH')
  const chain: Chain = {
    ...eth,
    readMempool: async () => [],
    estimatePayout: async (asset) => ({ cost: amountOf(asset, 1n), isAboveFeeCap: false }),
    balance: (asset, addresses, height) => eth.balance(asset, addresses, height ?? 100),
    readBlock: async (height, findOurs) => {
      await findOurs([depositAddress])
      const hash = (await eth.blockHash(height)) ?? ''
      const reward = { id: 'withdrawal:7', txHash: hash, to: depositAddress, isOfBlock: true } as const
      return {
        height,
        hash,
        parentHash: (await eth.blockHash(height - 1)) ?? '',
        timeMs: stage.world.clock.wallMs(),
        transfers: height === 101 ? [{ ...reward, asset: 'ETH:ETH', units: 1_000n }] : [],
      }
    },
  }
  eth.move(101, 'ETH:ETH', depositAddress, 1_000n)
  for (const height of [101, 112]) {
    eth.setHead(height)
    await watchOnce(stage.world, chain, lease)
    expect(await reconcileChain(stage.world, eth, { guard: nobodyElse })).toMatchObject({
      comparisons: eth.assets.map((asset) => ({ asset, difference: 0n })),
    })
  }
  expect((await findOrder(stage.db, order.terms.id))?.state.status).toBe('NEW')
  expect(await stage.db.query('SELECT kind, state, units FROM house_deposits')).toEqual([
    { kind: 'stray', state: 'confirmed', units: 1_000n },
  ])
  expect(await stage.db.query('SELECT address FROM unswept_addresses'), 'it is swept like any other').toEqual(
    [{ address: depositAddress }],
  )
})

/** Solana on paper: its blocks are told when they are final, and what each has of the time, and for whom, is given. */
function finalChain(
  blocks: ReadonlyMap<number, { readonly timeMs: number; readonly transfers: readonly Transfer[] }>,
) {
  const chain = stage.chain('SOL')
  const readBlock: Chain['readBlock'] = async (height, findOurs) => {
    const { timeMs, transfers } = blocks.get(height) ?? { timeMs: 0, transfers: [] }
    await findOurs(transfers.map(({ to }) => to))
    const [hash = '', parentHash = ''] = [await chain.blockHash(height), await chain.blockHash(height - 1)]
    return { height, hash: hash ?? '', parentHash: parentHash ?? '', timeMs, transfers }
  }
  return Object.assign(chain, { assets: [], readMempool: async () => [], readBlock })
}

test('where only what is final is told, no order ends before what was sent in time is', async () => {
  const taken = await takeLease(stage.db, 'watch:SOL', 'me', stage.world.clock.wallMs(), 48 * HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  const amounts = { asks: 10n ** 9n, promises: 1_000n }
  const [{ terms }, unpaid] = [
    await placeOrder(stage, 'SOL:SOL', 'BTC:BTC', amounts),
    await placeOrder(stage, 'SOL:SOL', 'BTC:BTC', amounts),
  ]
  const { expiresAtMs } = terms
  const payment = {
    id: 'paid:0',
    txHash: 'paid',
    to: terms.depositAddress,
    asset: 'SOL:SOL',
    units: 10n ** 9n,
  } as const
  const chain = finalChain(
    new Map([
      [101, { timeMs: expiresAtMs - 13_000, transfers: [] }],
      [102, { timeMs: expiresAtMs - 1_000, transfers: [payment] }],
      [103, { timeMs: expiresAtMs, transfers: [] }],
    ]),
  )
  const lookAndExpire = async (height: number) => {
    chain.setHead(height)
    await watchOnce(stage.world, chain, taken)
    await expireOrders(stage.world)
    const ends = [terms.id, unpaid.terms.id].map(async (id) => (await findOrder(stage.db, id))?.state)
    return (await Promise.all(ends)).map((state) => state?.status)
  }
  stage.advance(expiresAtMs - stage.world.clock.nowMs())
  expect(await lookAndExpire(101), 'the last block is of thirteen seconds ago').toEqual(['NEW', 'NEW'])
  expect(await lookAndExpire(101), 'and still is').toEqual(['NEW', 'NEW'])
  stage.advance(12_000)
  expect(await lookAndExpire(102)).toEqual(['EXCHANGE', 'NEW'])
  stage.advance(1_000)
  expect(await lookAndExpire(103)).toEqual(['EXCHANGE', 'EXPIRED'])
})
