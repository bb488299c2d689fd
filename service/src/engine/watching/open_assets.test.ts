import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, Transfer } from '../../chains/chain.ts'
import { readHead } from '../../db/chain_heads.ts'
import { type Lease, takeLease } from '../../db/leases.ts'
import { findOrder } from '../../db/orders.ts'
import { readReserves } from '../../db/reserves.ts'
import { assert } from '../../domain/assert.ts'
import { type AssetId, assetOf, nativeAsset } from '../../domain/catalog/assets.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { HOUR_MS, MINUTE_MS } from '../../domain/time.ts'
import { auditBooks } from '../books/audit_books.ts'
import { reconcileChain } from '../books/reconcile.ts'
import { isOutflowStopped } from '../books/stopped_outflows.ts'
import { leaseKeeper } from '../lease.ts'
import { marketBoard } from '../market.ts'
import { planSweeps } from '../sweeps/plan.ts'
import { type BooksStage, fundReserve, openBooksStage, placeOrder, RESERVE } from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { watchOnce } from '../testing/watch_once.ts'
import { lookedBefore } from './first_look.ts'

/**
 * What: a token that is listed on a chain that was looked at before has in the books what addresses of ours held of it.
 * How: a real PostgreSQL and a chain on paper that tells USDC as unlisted until the test lists it; books and chain are compared as ever.
 */
let stage: BooksStage
let lease: Lease
let eth: ReturnType<typeof openEth>

beforeAll(async () => {
  stage = await openBooksStage('open-assets')
})

beforeEach(async () => {
  await stage.reset()
  lease = await leaseOf('me')
  eth = openEth()
  await fundReserve(stage, 'ETH:ETH', 1_000n)
  // As after a first look, by which all that is listed is known.
  await stage.db.query("DELETE FROM opened_assets WHERE asset = 'USDC:ERC20'")
})

afterAll(() => stage?.stop())

async function leaseOf(holder: string): Promise<Lease> {
  const taken = await takeLease(stage.db, 'watch:ETH', holder, stage.world.clock.wallMs(), 48 * HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  return taken
}

const CONTRACT = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'
const USDC = 'USDC:ERC20'
/** Ledger units: no dust. */
const DEPOSIT = 300n * 10n ** 18n

function openEth() {
  const chain = stage.chain('ETH')
  const sent = new Map<number, Transfer[]>()
  const { balance, assets } = chain
  const before = assets.filter((asset) => asset !== USDC)
  const told = (transfer: Transfer): Transfer =>
    transfer.asset !== USDC || eth.chain.assets.includes(USDC)
      ? transfer
      : { ...transfer, asset: { unlisted: CONTRACT } }
  return {
    chain: Object.assign(chain, {
      assets: before,
      readMempool: async () => [],
      estimatePayout: async () => ({ cost: amountOf('ETH:ETH', 1n), isAboveFeeCap: false }),
      balance: async (asset: AssetId, addresses: readonly string[], at?: number) =>
        balance(asset, addresses, at ?? (await chain.head()).height),
      readBlock: async (at: number, findOwn: (addresses: readonly string[]) => Promise<unknown>) => {
        const transfers = (sent.get(at) ?? []).map(told)
        await findOwn(transfers.map(({ to }) => to))
        return {
          height: at,
          hash: (await chain.blockHash(at)) ?? '',
          parentHash: (await chain.blockHash(at - 1)) ?? '',
          timeMs: stage.world.clock.wallMs(),
          transfers,
        }
      },
    }),
    send: (height: number, asset: AssetId, to: string, units: bigint) => {
      chain.move(height, asset, to, units)
      const txHash = `0x${height}-${units}`
      const transfer: Transfer = { id: `${txHash}:log:0`, txHash, to, asset, units }
      sent.set(height, [...(sent.get(height) ?? []), transfer])
    },
    /** Another branch takes what was sent in a block into another. */
    mineElsewhere: (from: number, to: number) => {
      const moved = sent.get(from) ?? []
      sent.delete(from)
      sent.set(to, moved)
      for (const { asset, to: address, units } of moved) {
        assert(typeof asset === 'string', 'the chain knows what it is')
        chain.move(from, asset, address, -units)
        chain.move(to, asset, address, units)
      }
    },
    list: () => Object.assign(chain, { assets }),
  }
}

async function look(height: number): Promise<void> {
  eth.chain.setHead(height)
  await watchOnce(stage.world, eth.chain, lease)
}

async function differences() {
  stage.advance(3 * HOUR_MS)
  const compared = await reconcileChain(stage.world, eth.chain, { guard: nobodyElse })
  assert(compared?.kind === 'compared', 'both are at the same block')
  return Object.fromEntries(compared.comparisons.map(({ asset, difference }) => [asset, difference]))
}

const AGREED = { 'ETH:ETH': 0n, 'USDT:ERC20': 0n, [USDC]: 0n }

const usdcOfHouse = () =>
  stage.db.query(
    'SELECT kind, address, units, state FROM house_deposits WHERE asset = $1 ORDER BY units, address',
    [USDC],
  )

const opened = async () =>
  (await stage.db.query('SELECT height, is_read FROM opened_assets WHERE asset = $1', [USDC]))[0]

test('a token that came before it was listed is booked when it is, once, and stops nothing', async () => {
  const { terms } = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: 100n, promises: 10n })
  eth.send(101, USDC, RESERVE, 1n)
  eth.send(110, USDC, terms.depositAddress, 20n)
  // No block told of it.
  eth.chain.move(50, USDC, RESERVE, 4n)
  await look(112)
  expect(await usdcOfHouse()).toEqual([])
  eth.list()
  await look(112)
  expect(await usdcOfHouse()).toEqual([
    { kind: 'reserve', address: RESERVE, units: 5n, state: 'mined' },
    { kind: 'stray', address: terms.depositAddress, units: 20n, state: 'mined' },
  ])
  for (let time = 0; time < 3; time += 1) expect(await differences()).toEqual(AGREED)
  eth.send(113, USDC, terms.depositAddress, 300n)
  await look(122)
  await look(140)
  expect((await usdcOfHouse()).map(({ state }) => state)).toEqual(['confirmed', 'confirmed'])
  expect(await stage.db.query("SELECT units FROM deposits WHERE role = 'foreign'")).toEqual([{ units: 300n }])
  for (let time = 0; time < 3; time += 1) expect(await differences()).toEqual(AGREED)
  expect(await isOutflowStopped(stage.db, 'ETH')).toBe(false)
  expect(await stage.db.query("SELECT address FROM unswept_addresses WHERE chain = 'ETH'")).toEqual([
    { address: terms.depositAddress },
  ])
  expect((await auditBooks(stage.db)).problems).toEqual([])
})

test('what came while nobody looked is in the sum and is not told beside it', async () => {
  await look(102)
  eth.send(103, USDC, RESERVE, 1n)
  eth.list()
  // More blocks than one look reads: nothing is opened at a head that is not the chain's.
  eth.send(200, USDC, RESERVE, 2n)
  await look(200)
  expect(await opened()).toBeUndefined()
  expect(Object.keys(await differences().catch(() => ({})))).not.toContain(USDC)
  await look(200)
  expect(await opened()).toEqual({ height: 200, is_read: true })
  expect((await usdcOfHouse()).map(({ units }) => units)).toEqual([3n])
  expect(await differences()).toEqual(AGREED)
  await look(230)
  expect(await differences()).toEqual(AGREED)
})

test('a reorganisation takes the sum with its block, and it is read anew where the chain parted', async () => {
  eth.send(101, USDC, RESERVE, 1n)
  eth.send(111, USDC, RESERVE, 20n)
  await look(112)
  eth.list()
  await look(112)
  const order = await placeOrder(stage, USDC, 'BTC:BTC', { asks: DEPOSIT, promises: 10n })
  eth.send(113, USDC, order.terms.depositAddress, DEPOSIT)
  await look(126)
  expect(await usdcOfHouse()).toMatchObject([{ units: 21n, state: 'confirmed' }])
  expect(await differences()).toEqual(AGREED)

  // The deposit of the order comes into a block below the one that was opened, and is its deposit all the same.
  eth.chain.fork(105)
  eth.mineElsewhere(111, 108)
  eth.mineElsewhere(113, 109)
  await look(127)
  expect(await opened()).toEqual({ height: 104, is_read: true })
  expect((await usdcOfHouse()).map(({ units }) => units)).toEqual([1n, 20n])
  expect(await stage.db.query('SELECT role, units, block_height FROM deposits')).toEqual([
    { role: 'counted', units: DEPOSIT, block_height: 109 },
  ])
  expect(await differences()).toEqual(AGREED)
  await look(150)
  expect((await usdcOfHouse()).map(({ state }) => state)).toEqual(['confirmed', 'confirmed'])
  expect(await differences()).toEqual(AGREED)
  expect((await findOrder(stage.db, order.terms.id))?.deposits).toHaveLength(1)
  expect((await auditBooks(stage.db)).problems).toEqual([])
})

/** A node that fails at USDC, and has done so `failed` times. */
function failAtUsdc() {
  const { balance } = eth.chain
  const node = { failing: true, failed: 0 }
  const failing: Chain['balance'] = async (asset, addresses, at) => {
    if (asset !== USDC || !node.failing) return balance(asset, addresses, at)
    node.failed += 1
    throw new Error('missing trie node')
  }
  Object.assign(eth.chain, { balance: failing })
  return node
}

/** What could be quoted now, and of what there are figures. */
async function offered() {
  const { db, clock, prices, policy, market } = stage.world
  const board = marketBoard({ db, clock, prices, policy, assets: market.assets })
  await board.refresh()
  return eth.chain.assets.filter((asset) => board.isOffered(assetOf(asset)))
}

test('a token that the node fails at is opened later, once, and everything else of its chain goes on', async () => {
  const order = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: DEPOSIT, promises: 10n })
  eth.send(101, USDC, RESERVE, 1n)
  eth.send(102, 'ETH:ETH', order.terms.depositAddress, DEPOSIT)
  await look(102)
  eth.list()
  const node = failAtUsdc()
  eth.send(104, USDC, RESERVE, 20n)
  eth.send(104, USDC, order.terms.depositAddress, 4_000n)
  stage.advance(60_000)
  await look(120)
  expect(await opened()).toBeUndefined()
  expect(await usdcOfHouse()).toEqual([])
  expect(await stage.db.query('SELECT asset, state FROM deposits')).toEqual([
    { asset: 'ETH:ETH', state: 'confirmed' },
  ])
  expect(await readHead(stage.db, 'ETH')).toMatchObject({
    block: { height: 120 },
    lookedAtMs: stage.world.clock.nowMs(),
    trouble: null,
  })
  expect(await offered()).toEqual(['ETH:ETH', 'USDT:ERC20'])
  expect(stage.logged).toContainEqual(
    expect.objectContaining({ message: 'an asset could not be opened: not offered meanwhile' }),
  )
  // Nothing can be said of it meanwhile, and what the books do not know stops nothing.
  for (let time = 0; time < 3; time += 1)
    expect(await differences()).toEqual({ 'ETH:ETH': 0n, 'USDT:ERC20': 0n })
  expect(await isOutflowStopped(stage.db, 'ETH')).toBe(false)
  node.failing = false
  eth.send(121, USDC, RESERVE, 300n)
  await look(122)
  expect((await usdcOfHouse()).map(({ units }) => units)).toEqual([321n, 4_000n])
  await look(140)
  expect(await offered()).toEqual(['ETH:ETH', 'USDT:ERC20', USDC])
  expect(await differences()).toEqual(AGREED)
  expect((await auditBooks(stage.db)).problems).toEqual([])
})

test('figures of what is opened are young for as long as they are, whatever is not opened', async () => {
  await look(102)
  eth.list()
  failAtUsdc()
  await look(103)
  const before = await lookedBefore(
    { world: stage.world, chain: eth.chain, lease, hold: async () => lease },
    { nodeHead: await eth.chain.head(), toldFinal: null },
  )
  expect(before).toMatchObject({ hasUnopened: true, reservesAtMs: stage.world.clock.nowMs() })
})

test('a node that has just failed at a token is not asked for it by every look', async () => {
  await look(102)
  eth.list()
  const node = failAtUsdc()
  eth.send(103, USDC, RESERVE, 1n)
  const openingFailures = new Map()
  const lookOn = async (height: number) => {
    eth.chain.setHead(height)
    await watchOnce(stage.world, eth.chain, lease, { openingFailures })
  }
  for (const height of [103, 104, 105]) await lookOn(height)
  expect(node.failed).toBe(1)
  stage.advance(10_000)
  await lookOn(106)
  expect(node.failed).toBe(2)
  stage.advance(10_000)
  node.failing = false
  await lookOn(107)
  expect(await opened()).toEqual({ height: 107, is_read: true })
  expect(openingFailures.size).toBe(0)
})

/** Opened at block 112 with what came in blocks 101 and 111, and the chain has left everything above block 104 since. */
async function loseOpening(): Promise<void> {
  eth.send(101, USDC, RESERVE, 1n)
  eth.send(111, USDC, RESERVE, 20n)
  await look(112)
  eth.list()
  await look(112)
  await look(126)
  expect(await offered()).toContain(USDC)
  eth.chain.fork(105)
  eth.mineElsewhere(111, 108)
}

test('who dies on the way to the tip has read anew what a reorganisation took, before any new block', async () => {
  await loseOpening()
  const { readBlock } = eth.chain
  Object.assign(eth.chain, { readBlock: () => Promise.reject(new Error('the watcher has died')) })
  await expect(look(127)).rejects.toThrow('the watcher has died')
  expect(await opened()).toEqual({ height: 104, is_read: true })
  Object.assign(eth.chain, { readBlock })
  await look(127)
  expect(await differences()).toEqual(AGREED)
  await look(150)
  expect((await usdcOfHouse()).map(({ units }) => units)).toEqual([1n, 20n])
  expect(await differences()).toEqual(AGREED)
})

test('what cannot be read anew where the chain parted stops nothing, and is read there however late', async () => {
  await loseOpening()
  const node = failAtUsdc()
  const order = await placeOrder(stage, USDC, 'BTC:BTC', { asks: DEPOSIT, promises: 10n })
  eth.send(109, USDC, order.terms.depositAddress, DEPOSIT)
  await look(127)
  expect(await opened()).toEqual({ height: 104, is_read: false })
  expect(await offered()).toEqual(['ETH:ETH', 'USDT:ERC20'])
  // What later blocks bring is told as ever.
  expect(await stage.db.query('SELECT role, state FROM deposits')).toEqual([
    { role: 'counted', state: 'confirmed' },
  ])
  // Whoever sweeps finds nothing at its address that may be moved, and lets it rest; what it holds is not known all the same.
  stage.advance(4 * HOUR_MS)
  await planSweeps(stage.world, eth.chain)
  for (let time = 0; time < 3; time += 1)
    expect(await differences()).toEqual({ 'ETH:ETH': 0n, 'USDT:ERC20': 0n })
  expect(await isOutflowStopped(stage.db, 'ETH')).toBe(false)
  // So long after that the block is no longer remembered.
  await stage.db.query("DELETE FROM chain_blocks WHERE chain = 'ETH' AND height < 120")
  await look(127)
  node.failing = false
  await look(127)
  expect(await opened()).toEqual({ height: 104, is_read: true })
  // Its figure of hours ago is not offered beside those of the others, which are young.
  const figures = await readReserves(stage.db)
  expect(figures.find(({ asset }) => asset === USDC)?.atMs).toBe(stage.world.clock.nowMs())
  await look(150)
  expect(await offered()).toContain(USDC)
  expect(await differences()).toEqual(AGREED)
  expect((await auditBooks(stage.db)).problems).toEqual([])
})

/** As `docs/operating/running.md` has it. */
async function forgetOpening(): Promise<void> {
  const page = readFileSync(new URL('../../../../docs/operating/running.md', import.meta.url), 'utf8')
  const [statement] = page.match(/DELETE FROM opened_assets[^;]*;/) ?? []
  assert(statement !== undefined, 'the page tells how')
  await stage.corrupt(statement.replaceAll('USDT:TRC20', USDC))
}

test('what no node can tell any more is opened at a later head, where an operator forgets it and nothing came of it since', async () => {
  eth.send(101, USDC, RESERVE, 1n)
  await look(112)
  eth.list()
  await look(112)
  eth.chain.fork(105)
  const node = failAtUsdc()
  await look(127)
  node.failing = false
  await forgetOpening()
  await look(128)
  expect(await opened()).toEqual({ height: 128, is_read: true })
  expect((await usdcOfHouse()).map(({ units }) => units)).toEqual([1n])
  expect(await differences()).toEqual(AGREED)
})

test('it is not forgotten when something came of it since', async () => {
  await loseOpening()
  failAtUsdc()
  await look(127)
  await forgetOpening()
  expect(await opened()).toEqual({ height: 104, is_read: false })
})

test('a node that fails slowly at a token is asked again when the chain has been looked at for nine times as long', async () => {
  await look(102)
  eth.list()
  let failed = 0
  const { balance } = eth.chain
  const slow: Chain['balance'] = async (asset, addresses, at) => {
    if (asset !== USDC) return balance(asset, addresses, at)
    stage.advance(2 * MINUTE_MS)
    failed += 1
    throw new Error('timed out')
  }
  Object.assign(eth.chain, { balance: slow })
  const openingFailures = new Map()
  const lookAfter = async (passedMs: number) => {
    stage.advance(passedMs)
    await watchOnce(stage.world, eth.chain, lease, { openingFailures })
    return failed
  }
  expect(await lookAfter(0)).toBe(1)
  expect(await lookAfter(10_000)).toBe(1)
  expect(await lookAfter(17 * MINUTE_MS)).toBe(1)
  expect(await lookAfter(MINUTE_MS)).toBe(2)
})

test('the lease is kept while a node takes longer for a single answer than a lease lasts', async () => {
  await look(102)
  eth.list()
  await stage.db.query('DELETE FROM leases')
  const { hold } = leaseKeeper(stage.world, 'watch:ETH', 'me')
  const mine = await hold()
  assert(mine !== null, 'nobody else looks')
  const heldForMs = async () => {
    const [row] = await stage.db.query<{ until: number }>('SELECT expires_wall_ms AS until FROM leases')
    return (row?.until ?? 0) - stage.world.clock.wallMs()
  }
  const { balance } = eth.chain
  const slow: Chain['balance'] = async (asset, addresses, at) => {
    for (let part = 0; part < 3 && asset === USDC; part += 1) {
      stage.advance(3_000)
      await expect.poll(heldForMs).toBeGreaterThan(3_000)
    }
    return balance(asset, addresses, at)
  }
  Object.assign(eth.chain, { balance: slow })
  await watchOnce(stage.world, eth.chain, mine, { hold })
  expect(await opened()).toEqual({ height: 102, is_read: true })
})

test('a watcher that has lost its lease while it asked opens nothing', async () => {
  eth.send(101, USDC, RESERVE, 1n)
  await look(102)
  eth.list()
  let next: Lease | undefined
  const { balance } = eth.chain
  const slow: Chain['balance'] = async (asset, addresses, at) => {
    if (asset === USDC && next === undefined) {
      await stage.db.query("UPDATE leases SET fence = fence + 1, holder = 'you' WHERE name = 'watch:ETH'")
      next = await leaseOf('you')
    }
    return balance(asset, addresses, at)
  }
  Object.assign(eth.chain, { balance: slow })
  await expect(look(103)).rejects.toThrow('the lease watch:ETH was lost')
  expect(await opened()).toBeUndefined()
  expect(await usdcOfHouse()).toEqual([])
  assert(next !== undefined, 'another one has it')
  lease = next
  await look(103)
  expect(await usdcOfHouse()).toMatchObject([{ units: 1n }])
  expect(await differences()).toEqual(AGREED)
})

test('what is held on another branch than the one that was looked at opens nothing', async () => {
  eth.send(101, USDC, RESERVE, 1n)
  await look(102)
  eth.list()
  const { balance } = eth.chain
  const turning: Chain['balance'] = (asset, addresses, at) => {
    if (asset === USDC) eth.chain.fork(101)
    return balance(asset, addresses, at)
  }
  Object.assign(eth.chain, { balance: turning })
  await look(103)
  expect(stage.logged).toContainEqual(
    expect.objectContaining({
      facts: expect.objectContaining({
        err: new Error('ETH has left block 103 while USDC:ERC20 was opened there'),
      }),
    }),
  )
  expect(await opened()).toBeUndefined()
  expect(await usdcOfHouse()).toEqual([])
})

test.each([
  ['TRX', 'USDT:TRC20'],
  ['SOL', 'USDC:SOL'],
] as const)('a token of %s that is listed later is opened as well', async (id, token) => {
  const chain = stage.chain(id)
  const { terms } = await placeOrder(stage, `${id}:${id}`, 'BTC:BTC', { asks: 100n, promises: 10n })
  await stage.db.query('DELETE FROM opened_assets WHERE asset = $1', [token])
  chain.move(90, token, terms.depositAddress, 20n)
  const native = nativeAsset(id).id
  Object.assign(chain, {
    readMempool: async () => [],
    estimatePayout: async () => ({ cost: amountOf(native, 1n), isAboveFeeCap: false }),
  })
  const { balance } = chain
  const held: Chain['balance'] = async (asset, addresses, at) =>
    balance(asset, addresses, at ?? (await chain.head()).height)
  Object.assign(chain, { balance: held })
  const taken = await takeLease(stage.db, `watch:${id}`, 'me', stage.world.clock.wallMs(), HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  await watchOnce(stage.world, chain, taken)
  const compared = await reconcileChain(stage.world, chain, { guard: nobodyElse })
  assert(compared?.kind === 'compared', 'both are at the same block')
  const found = compared.comparisons.map(({ asset, chainUnits, difference }) => ({
    asset,
    chainUnits,
    difference,
  }))
  expect(found).toContainEqual({ asset: token, chainUnits: 20n, difference: 0n })
  expect(found).toContainEqual({ asset: native, chainUnits: 0n, difference: 0n })
})

test('coins are told from the first look on, and nothing is asked of them', async () => {
  const btc = stage.chain('BTC')
  await stage.db.query("DELETE FROM opened_assets WHERE asset = 'BTC:BTC'")
  Object.assign(btc, {
    readMempool: async () => [],
    estimatePayout: async () => ({ cost: amountOf('BTC:BTC', 1n), isAboveFeeCap: false }),
    balance: () => Promise.reject(new Error('it takes minutes')),
  })
  const taken = await takeLease(stage.db, 'watch:BTC', 'me', stage.world.clock.wallMs(), HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  await watchOnce(stage.world, btc, taken)
  expect(await stage.db.query("SELECT is_read FROM opened_assets WHERE asset = 'BTC:BTC'")).toEqual([
    { is_read: true },
  ])
})

test('what a database has looked at before it was written down is not opened again', async () => {
  await fundReserve(stage, 'USDT:ERC20', 5n)
  eth.send(101, USDC, RESERVE, 1n)
  await look(130)
  const migration = readFileSync(
    new URL('../../db/migrations/0034_opened_assets.sql', import.meta.url),
    'utf8',
  )
  const [up = '', down = ''] = migration.split('-- Down Migration')
  await stage.corrupt(down)
  await stage.corrupt(up)
  const known = await stage.db.query("SELECT asset FROM opened_assets WHERE asset LIKE '%:E%' ORDER BY asset")
  expect(known).toEqual([{ asset: 'ETH:ETH' }, { asset: 'USDT:ERC20' }])
  eth.list()
  await look(130)
  expect(await differences()).toEqual(AGREED)
})
