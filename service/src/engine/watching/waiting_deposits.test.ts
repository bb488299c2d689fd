import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Chain, NodeTrouble, type Transfer } from '../../chains/chain.ts'
import { type Lease, takeLease } from '../../db/leases.ts'
import { findOrder } from '../../db/orders.ts'
import { assert } from '../../domain/assert.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { HOUR_MS, SECOND_MS } from '../../domain/time.ts'
import { type BooksStage, lookAt, openBooksStage, placeOrder } from '../testing/books_stage.ts'
import { watchOnce } from '../testing/watch_once.ts'
import { beginTurn } from './look.ts'

/**
 * What: whoever makes much wait in a mempool does not make a look long, and everything that waits has its turn.
 * How: a real PostgreSQL and a chain on paper that counts what it is asked for.
 */
let stage: BooksStage
let lease: Lease

beforeAll(async () => {
  stage = await openBooksStage('waiting')
})

beforeEach(async () => {
  await stage.reset()
  const taken = await takeLease(stage.db, 'watch:BTC', 'me', stage.world.clock.wallMs(), HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  lease = taken
})

afterAll(() => stage?.stop())

/** A mempool with these transfers; `asked` has the transactions that were looked up since it was emptied. */
function crowdedChain(transfers: readonly Transfer[]) {
  const asked: string[] = []
  const lookup: Chain['lookup'] = async (txHash) => {
    asked.push(txHash)
    return { where: 'mempool' }
  }
  const chain: Chain = {
    ...stage.chain('BTC'),
    assets: [],
    readMempool: async (findOurs) => {
      await findOurs(transfers.map(({ to }) => to))
      return transfers
    },
    lookup,
  }
  return { chain, asked }
}

/** The same chain with a block at 101 that has these transfers. */
function mining(chain: Chain, transfers: readonly Transfer[]): Chain {
  stage.chain('BTC').setHead(101)
  return {
    ...chain,
    readBlock: async (height, findOurs) => {
      await findOurs(transfers.map(({ to }) => to))
      const [hash, parentHash] = [await chain.blockHash(height), await chain.blockHash(height - 1)]
      const timeMs = stage.world.clock.wallMs()
      return { height, hash: hash ?? '', parentHash: parentHash ?? '', timeMs, transfers }
    },
  }
}

/** Two seconds later, so that it is time to ask again. */
async function look(chain: Chain, watcher = {}): Promise<void> {
  stage.advance(2 * SECOND_MS)
  await watchOnce(stage.world, chain, lease, watcher)
}

async function placeAddress(): Promise<string> {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 100_000n, promises: 1_000n })
  return order.terms.depositAddress
}

function output(txHash: string, index: number, to: string): Transfer {
  return { id: `${txHash}:${index}`, txHash, to, asset: 'BTC:BTC', units: 1_000n }
}

function readStates() {
  return stage.db.query<{ state: string; count: number }>(
    'SELECT state, count(*)::int AS count FROM deposits GROUP BY state ORDER BY state',
  )
}

test('a transaction that waits is asked for once, however many of its outputs are ours', async () => {
  const addresses = [await placeAddress(), await placeAddress()]
  const transfers = addresses.flatMap((to, at) =>
    Array.from({ length: 20 }, (_, index) => output('aa', 20 * at + index, to)),
  )
  const { chain, asked } = crowdedChain(transfers)
  await look(chain)
  expect(asked).toEqual(['aa'])
  expect(await readStates()).toEqual([{ state: 'seen', count: 40 }])
  const gone: Chain = { ...chain, readMempool: async () => [], lookup: async () => ({ where: 'absent' }) }
  await look(gone)
  expect(await readStates()).toEqual([{ state: 'vanished', count: 40 }])
})

/** Transactions of one output each, to two orders in turn. */
async function manyWaiting(count: number) {
  const addresses = [await placeAddress(), await placeAddress()]
  const hashes = Array.from({ length: count }, (_, index) => index.toString(16).padStart(64, '0'))
  const transfers = hashes.map((txHash, index) => output(txHash, 0, addresses[index % 2] ?? ''))
  return { hashes, ...crowdedChain(transfers) }
}

test('a look asks for fifty transactions that wait, and each has its turn', async () => {
  const { chain, asked, hashes } = await manyWaiting(120)
  const watcher = { waitingTurn: beginTurn() }
  await look(chain, watcher)
  expect(asked).toHaveLength(50)
  await look(chain, watcher)
  expect(asked).toHaveLength(100)
  await look(chain, watcher)
  expect(asked).toHaveLength(150)
  expect(new Set(asked)).toEqual(new Set(hashes))
  // Round again, from where it was.
  const [first = ''] = hashes
  expect(asked.filter((hash) => hash === first)).toHaveLength(2)
})

test('a transaction that the node fails at keeps no other from its turn', async () => {
  const { chain, asked, hashes } = await manyWaiting(3)
  const failing: Chain = {
    ...chain,
    lookup: async (txHash) => {
      if (txHash === hashes[1]) throw new NodeTrouble('ask again')
      return chain.lookup(txHash)
    },
  }
  const watcher = { waitingTurn: beginTurn() }
  await look(failing, watcher)
  expect(asked).toEqual([hashes[0]])
  await look(failing, watcher)
  expect(asked).toEqual([hashes[0], hashes[2], hashes[0]])
})

test('a node that cannot tell what waits makes no look fail: nothing vanishes, and the chain is in no trouble', async () => {
  const { chain } = await manyWaiting(2)
  await look(chain)
  let asked = 0
  const indexing: Chain = {
    ...chain,
    lookup: async () => {
      asked += 1
      throw new NodeTrouble('transaction indexing is in progress')
    },
  }
  await look(indexing)
  expect(asked).toBe(1)
  expect(await readStates()).toEqual([{ state: 'seen', count: 2 }])
  expect(await stage.db.query("SELECT trouble FROM chain_heads WHERE chain = 'BTC'")).toEqual([
    { trouble: null },
  ])
})

test('what fails and is not of the node ends the look, and so does a lease that was lost while the node failed', async () => {
  const { chain } = await manyWaiting(2)
  const broken: Chain = { ...chain, lookup: () => Promise.reject(new Error('assertion failed')) }
  await expect(look(broken)).rejects.toThrow('assertion failed')
  let isHeld = true
  const slow: Chain = {
    ...chain,
    lookup: async () => {
      isHeld = false
      throw new NodeTrouble('no answer')
    },
  }
  await expect(look(slow, { hold: async () => (isHeld ? lease : null) })).rejects.toThrow('lost')
})

test('what a mempool promised and a block did not do is gone, also when that block is no longer remembered', async () => {
  const { chain } = await manyWaiting(1)
  await look(chain)
  const lookedUp = async (block: { height: number; hash: string }, overrides: Partial<Chain> = {}) => {
    const cost = amountOf('BTC:BTC', 0n)
    const lookup: Chain['lookup'] = async () => ({ where: 'block', block, succeeded: false, cost })
    await look({ ...chain, readMempool: async () => [], lookup, ...overrides })
    return (await readStates()).map(({ state }) => state)
  }
  const blockAt = async (height: number) => ({ height, hash: (await chain.blockHash(height)) ?? '' })
  // Caught up with what came while nobody looked.
  await lookAt(stage, 'BTC', 2_101)
  expect(await lookedUp(await blockAt(102)), 'it was never read').toEqual(['seen'])
  expect(await lookedUp({ height: 101, hash: 'of another branch' })).toEqual(['seen'])
  const silent = () => Promise.reject(new NodeTrouble('no answer'))
  expect(await lookedUp(await blockAt(101), { blockHash: silent })).toEqual(['seen'])
  expect(await lookedUp(await blockAt(101))).toEqual(['vanished'])
})

test('what vanished, and is in the mempool all the same, is seen again at the next block', async () => {
  const [to, txHash] = [await placeAddress(), 'aa']
  const told = new Set<string>()
  let where: 'mempool' | 'absent' = 'mempool'
  const onPaper = stage.chain('BTC')
  const chain: Chain = {
    ...onPaper,
    assets: [],
    readBlock: async (height) => ({
      height,
      hash: (await onPaper.blockHash(height)) ?? '',
      parentHash: (await onPaper.blockHash(height - 1)) ?? '',
      timeMs: stage.world.clock.wallMs(),
      transfers: [],
    }),
    readMempool: async (findOurs, again) => {
      if (again?.has(txHash)) told.delete(txHash)
      if (told.has(txHash)) return []
      await findOurs([to])
      told.add(txHash)
      return [output(txHash, 0, to)]
    },
    lookup: async () => ({ where }),
  }
  const watcher = { waitingTurn: beginTurn(), vanished: new Map() }
  await look(chain, watcher)
  expect(await readStates()).toEqual([{ state: 'seen', count: 1 }])
  where = 'absent'
  await look(chain, watcher)
  expect(await readStates()).toEqual([{ state: 'vanished', count: 1 }])
  where = 'mempool'
  await look(chain, watcher)
  expect(await readStates()).toEqual([{ state: 'vanished', count: 1 }])
  onPaper.setHead((await onPaper.head()).height + 1)
  await look(chain, watcher)
  expect(await readStates()).toEqual([{ state: 'seen', count: 1 }])
  // Nodes that do not agree about it have its order told so once, and not at every block.
  where = 'absent'
  await look(chain, watcher)
  expect(await readStates()).toEqual([{ state: 'vanished', count: 1 }])
  onPaper.setHead((await onPaper.head()).height + 1)
  await look(chain, watcher)
  expect(await readStates()).toEqual([{ state: 'vanished', count: 1 }])
  expect([...watcher.vanished]).toEqual([[txHash, null]])
})

test('what a mempool tells once is told to its order when it could not be told at once, and as of when it was seen', async () => {
  const to = await placeAddress()
  const { chain } = crowdedChain([{ ...output('aa', 0, to), units: 100_000n }])
  let looks = 0
  const once: Chain = {
    ...chain,
    readMempool: async (findOurs) => {
      looks += 1
      return looks === 1 ? chain.readMempool(findOurs) : []
    },
  }
  const watcher = { untold: [] }
  let isHeld = false
  const hold = async () => (isHeld ? lease : null)
  await expect(look(once, { ...watcher, hold })).rejects.toThrow('lost')
  const seenAtMs = stage.world.clock.nowMs()
  expect(await readStates()).toEqual([])

  isHeld = true
  await look(once, { ...watcher, hold })
  expect(await stage.db.query('SELECT state, seen_at_ms, is_late FROM deposits')).toEqual([
    { state: 'seen', seen_at_ms: seenAtMs, is_late: false },
  ])
  expect(watcher.untold).toEqual([])
})

test('thousands of crumbs in a mempool are nothing that any order hears of, and the payment among them is', async () => {
  const to = await placeAddress()
  const crumbs = Array.from({ length: 2_000 }, (_, index) => ({ ...output('aa', index, to), units: 999n }))
  const { chain, asked } = crowdedChain([...crumbs, output('bb', 0, to)])
  await look(chain)
  expect(await readStates()).toEqual([{ state: 'seen', count: 1 }])
  expect(asked).toEqual(['bb'])
})

test('of promises without end an order hears a hundred, whatever becomes of them, and of the payment that is mined all the same', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 100_000n, promises: 1_000n })
  const to = order.terms.depositAddress
  const promises = (name: string) => Array.from({ length: 150 }, (_, index) => output(name, index, to))
  const first = promises('aa')
  await look(crowdedChain(first).chain)
  expect(await readStates()).toEqual([{ state: 'seen', count: 100 }])
  const gone: Partial<Chain> = { lookup: async () => ({ where: 'absent' }) }
  const { chain } = crowdedChain(promises('bb'))
  await look({ ...chain, ...gone })
  await look({ ...chain, ...gone })
  expect(await readStates()).toEqual([{ state: 'vanished', count: 100 }])

  const payment = { ...output('cc', 0, to), units: 100_000n }
  // One that was known before comes again, and takes nobody's place.
  const again = crowdedChain([...first.slice(99, 101), payment]).chain
  await look(mining(again, [payment]))
  expect(await readStates()).toEqual([
    { state: 'mined', count: 1 },
    { state: 'seen', count: 1 },
    { state: 'vanished', count: 99 },
  ])
  expect(
    (await findOrder(stage.db, order.terms.id))?.deposits.find(({ state }) => state === 'mined'),
  ).toMatchObject({
    amount: order.terms.asks,
    role: 'counted',
    isLate: false,
  })
})

test('promises of less than is asked take no place of a payment of all of it, and of such payments a hundred are heard', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 100_000n, promises: 1_000n })
  const to = order.terms.depositAddress
  const outputs = (name: string, units: bigint) =>
    Array.from({ length: 150 }, (_, index) => ({ ...output(name, index, to), units }))
  const heard = () =>
    stage.db.query(
      `SELECT tx_hash AS tx, count(*)::int AS count FROM deposits WHERE state = 'seen' GROUP BY 1 ORDER BY 1`,
    )
  const parts = { tx: 'aa', count: 100 }
  await look(crowdedChain(outputs('aa', 99_999n)).chain)
  expect(await heard()).toEqual([parts])
  const payment = { ...output('bb', 0, to), units: 100_000n }
  await look(crowdedChain([...outputs('cc', 99_999n), payment]).chain)
  expect(await heard()).toEqual([parts, { tx: 'bb', count: 1 }])
  await look(crowdedChain([...outputs('cc', 99_999n), ...outputs('dd', 200_000n)]).chain)
  expect(await heard()).toEqual([parts, { tx: 'bb', count: 1 }, { tx: 'dd', count: 99 }])
})
