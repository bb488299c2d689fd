import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, Transfer } from '../../chains/chain.ts'
import { readHead } from '../../db/chain_heads.ts'
import { type Lease, takeLease } from '../../db/leases.ts'
import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { auditBooks } from '../books/audit_books.ts'
import { reconcileChain } from '../books/reconcile.ts'
import { type BooksStage, fundReserve, openBooksStage, placeOrder, RESERVE } from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import type { PaperChain } from '../testing/paper_chain.ts'
import { watchOnce } from '../testing/watch_once.ts'

/**
 * What: where another EVM chain is offered, what addresses of ours held there before is in the books from its first look on.
 * How: a real PostgreSQL and chains on paper; books and chain are compared as ever.
 */
let stage: BooksStage
let lease: Lease

beforeAll(async () => {
  stage = await openBooksStage('opening')
})

beforeEach(async () => {
  await stage.reset()
  const taken = await takeLease(stage.db, 'watch:BNB', 'me', stage.world.clock.wallMs(), 48 * HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  lease = taken
})

afterAll(() => stage?.stop())

/** One that nobody has looked at; `sent` is what its blocks bring, by their heights. */
async function neverLookedAt(
  height: number,
  sent: Record<number, Transfer> = {},
): Promise<Chain & PaperChain> {
  const bnb = stage.chain('BNB')
  bnb.setHead(height)
  await stage.db.query("DELETE FROM chain_heads WHERE chain = 'BNB'")
  const { balance } = bnb
  return Object.assign(bnb, {
    readMempool: async () => [],
    estimatePayout: async () => ({ cost: amountOf('BNB:BNB', 1n), isAboveFeeCap: false }),
    balance: async (asset: AssetId, addresses: readonly string[], at?: number) =>
      balance(asset, addresses, at ?? (await bnb.head()).height),
    readBlock: async (at: number, findOwn: (addresses: readonly string[]) => Promise<unknown>) => {
      const transfers = at in sent ? [sent[at] as Transfer] : []
      await findOwn(transfers.map(({ to }) => to))
      return {
        height: at,
        hash: (await bnb.blockHash(at)) ?? '',
        parentHash: (await bnb.blockHash(at - 1)) ?? '',
        timeMs: stage.world.clock.wallMs(),
        transfers,
      }
    },
  })
}

async function differences(chain: Chain) {
  const compared = await reconcileChain(stage.world, chain, { guard: nobodyElse })
  assert(compared?.kind === 'compared', 'both are at the same block')
  return compared.comparisons.map(({ difference }) => difference)
}

const house = () =>
  stage.db.query(
    'SELECT kind, address, asset, units, state FROM house_deposits WHERE chain = $1 ORDER BY units',
    ['BNB'],
  )

test('one wei that somebody sent to the reserve, and money at an address of an order, make no difference', async () => {
  await fundReserve(stage, 'ETH:ETH', 1_000n)
  const { terms } = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: 100n, promises: 10n })
  const bnb = await neverLookedAt(1_000)
  bnb.move(7, 'BNB:BNB', RESERVE, 1n)
  bnb.move(900, 'USDT:BEP20', terms.depositAddress, 5n)
  await watchOnce(stage.world, bnb, lease)
  expect(await house()).toEqual([
    { kind: 'reserve', address: RESERVE, asset: 'BNB:BNB', units: 1n, state: 'confirmed' },
    { kind: 'stray', address: terms.depositAddress, asset: 'USDT:BEP20', units: 5n, state: 'confirmed' },
  ])
  for (const difference of await differences(bnb)) expect(difference).toBe(0n)
  expect(await stage.db.query("SELECT address FROM unswept_addresses WHERE chain = 'BNB'")).toEqual([
    { address: terms.depositAddress },
  ])
  expect((await auditBooks(stage.db)).problems).toEqual([])
})

test('what came in the last blocks is read in them, and leaves with them', async () => {
  await fundReserve(stage, 'ETH:ETH', 1_000n)
  const last: Transfer = { id: '0xa:call:0', txHash: '0xa', to: RESERVE, asset: 'BNB:BNB', units: 30n }
  const sent: Record<number, Transfer> = { 995: last }
  const bnb = await neverLookedAt(1_000, sent)
  bnb.move(989, 'BNB:BNB', RESERVE, 2n)
  bnb.move(995, 'BNB:BNB', RESERVE, 30n)
  await watchOnce(stage.world, bnb, lease)
  expect(await house()).toMatchObject([
    { units: 2n, state: 'confirmed' },
    { units: 30n, state: 'mined' },
  ])
  for (const difference of await differences(bnb)) expect(difference).toBe(0n)
  bnb.fork(990)
  delete sent[995]
  bnb.move(995, 'BNB:BNB', RESERVE, -30n)
  bnb.setHead(1_001)
  await watchOnce(stage.world, bnb, lease)
  expect(await house()).toMatchObject([
    { units: 2n, state: 'confirmed' },
    { units: 30n, state: 'orphaned' },
  ])
  for (const difference of await differences(bnb)) expect(difference).toBe(0n)
})

test('a chain of which something is written down is not opened again, though its head is gone', async () => {
  await fundReserve(stage, 'BNB:BNB', 1_000n)
  const bnb = await neverLookedAt(1_000)
  await watchOnce(stage.world, bnb, lease)
  expect(await house()).toMatchObject([{ units: 1_000n }])
  for (const difference of await differences(bnb)) expect(difference).toBe(0n)
})

test('more addresses than one question is about are all asked for', async () => {
  await stage.db.query(
    `INSERT INTO addresses (family, address, purpose, key_index)
     SELECT 'evm', 'waiting-' || i, 'deposit', i FROM generate_series(0, 1200) AS i`,
  )
  const bnb = await neverLookedAt(1_000)
  for (const index of [0, 499, 500, 1_200]) bnb.move(5, 'BNB:BNB', `waiting-${index}`, BigInt(index + 1))
  await watchOnce(stage.world, bnb, lease)
  expect((await house()).map(({ units }) => units)).toEqual([1n, 500n, 501n, 1_201n])
  expect(await readHead(stage.db, 'BNB')).toMatchObject({ block: { height: 1_000 } })
})

test('holders among many addresses are found by halves, each with what it holds', async () => {
  await stage.db.query(
    `INSERT INTO addresses (family, address, purpose, key_index)
     SELECT 'evm', 'waiting-' || i, 'deposit', i FROM generate_series(0, 499) AS i`,
  )
  const few = await neverLookedAt(1_000)
  for (const index of [0, 250, 499]) few.move(5, 'USDT:BEP20', `waiting-${index}`, BigInt(index + 1))
  await watchOnce(stage.world, few, lease)
  expect((await house()).map(({ units }) => units)).toEqual([1n, 251n, 500n])
  // Of 500 together once an asset, and then nine halves a holder at most; figures for quotes ask for no waiting address.
  const questions = few.asked.filter((addresses) =>
    addresses.some((address) => address.startsWith('waiting-')),
  )
  expect(questions.length).toBeLessThanOrEqual(few.assets.length + 3 * 9)
})

test('where every address holds something each is found', async () => {
  await stage.db.query(
    `INSERT INTO addresses (family, address, purpose, key_index)
     SELECT 'evm', 'waiting-' || i, 'deposit', i FROM generate_series(0, 299) AS i`,
  )
  const bnb = await neverLookedAt(1_000)
  for (let index = 0; index < 300; index += 1) bnb.move(5, 'BNB:BNB', `waiting-${index}`, BigInt(index + 1))
  await watchOnce(stage.world, bnb, lease)
  expect((await house()).map(({ address, units }) => [address, units])).toEqual(
    [...Array(300).keys()].map((index) => [`waiting-${index}`, BigInt(index + 1)]),
  )
  expect(bnb.asked.length).toBeLessThanOrEqual(310)
})

test('a node whose parts hold more than the whole opens nothing', async () => {
  await fundReserve(stage, 'ETH:ETH', 1_000n)
  await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: 100n, promises: 10n })
  const bnb = await neverLookedAt(1_000)
  Object.assign(bnb, {
    balance: async (_: AssetId, addresses: readonly string[]) => 5n - BigInt(addresses.length) * 2n,
  })
  await expect(watchOnce(stage.world, bnb, lease)).rejects.toThrow('more than all of them together')
  expect(await house()).toEqual([])
})
