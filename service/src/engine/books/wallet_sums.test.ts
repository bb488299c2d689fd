import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { postForHouse, postForOrder } from '../../db/books.ts'
import {
  addUpWallet,
  findFalseWalletSums,
  mendWalletSums,
  readWallet,
  sumWalletMovements,
} from '../../db/wallet_sums.ts'
import { assetIdsOn } from '../../domain/catalog/assets.ts'
import type { Posting } from '../../domain/ledger/postings.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { type BooksStage, openBooksStage } from '../testing/books_stage.ts'

/**
 * What: whatever posts, sums and adds up at the same time, what comparisons take for the wallet is what the journal
 * adds up to, at every moment.
 * How: a real PostgreSQL; random rounds of transactions that run at once, some of which are rolled back, and an
 * observer that looks all the time. An independent sum of what was committed stands beside.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('wallet-sums')
})

afterAll(() => stage?.stop())

const ASSETS = assetIdsOn('ETH')
const EVERY_BUCKET = { first: 0, last: 99 }

type Step =
  | {
      readonly kind: 'post'
      readonly owner: number
      readonly units: readonly number[]
      readonly ends: boolean
    }
  | { readonly kind: 'sum' }
  | { readonly kind: 'mend'; readonly first: number; readonly count: number }
  | { readonly kind: 'look' }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('post' as const),
      owner: fc.integer({ min: 0, max: 5 }),
      // Negative: out of the wallet; 0: a movement that is none of the wallet's.
      units: fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 1, maxLength: 4 }),
      ends: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'sum' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('mend' as const),
      first: fc.integer({ min: 0, max: 99 }),
      count: fc.integer({ min: 1, max: 100 }),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'look' as const }) },
)

const assetAt = (index: number) => ASSETS[index % ASSETS.length] ?? 'ETH:ETH'

function toPosting(units: number, index: number): Posting {
  const amount = amountOf(assetAt(index), BigInt(Math.abs(units) || 1))
  if (units === 0) return { debit: 'customer_deposits', credit: 'payouts_owed', amount }
  return units > 0
    ? { debit: 'wallet', credit: 'customer_deposits', amount }
    : { debit: 'payouts_owed', credit: 'wallet', amount }
}

class Undone extends Error {}

let entries = 0

/** Answers what was committed, by asset. */
async function post({ owner, units, ends }: Step & { kind: 'post' }): Promise<readonly [string, bigint][]> {
  entries += 1
  const key = `entry-${entries}`
  const postings = units.map(toPosting)
  try {
    await stage.db.transaction(async (tx) => {
      const half = Math.ceil(postings.length / 2)
      const into = (name: string, some: readonly Posting[]) =>
        owner === 0
          ? postForHouse(tx, name, some, 1)
          : postForOrder(tx, `CB00000000000000${10 + owner}`, name, some, 1)
      await into(`${key}:a`, postings.slice(0, half))
      await into(`${key}:b`, postings.slice(half))
      if (!ends) throw new Undone()
    })
  } catch (error) {
    if (error instanceof Undone) return []
    throw error
  }
  return units.map((one, index) => [assetAt(index), BigInt(one)])
}

async function look(): Promise<void> {
  expect(await findFalseWalletSums(stage.db, EVERY_BUCKET, ASSETS)).toEqual([])
}

async function run(one: Step): Promise<readonly [string, bigint][]> {
  switch (one.kind) {
    case 'post':
      return post(one)
    case 'sum':
      await sumWalletMovements(stage.db, ASSETS)
      return []
    case 'mend': {
      const buckets = { first: one.first, last: Math.min(99, one.first + one.count - 1) }
      expect(await mendWalletSums(stage.db, buckets, ASSETS), 'there is nothing to mend').toEqual([])
      return []
    }
    case 'look':
      await look()
      return []
  }
}

test('the wallet by its sums is the wallet by its journal, at every moment', async () => {
  const committed = new Map<string, bigint>()
  const rounds = fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(rounds, async (all) => {
      for (const round of all) {
        for (const [asset, units] of (await Promise.all(round.map(run))).flat()) {
          committed.set(asset, (committed.get(asset) ?? 0n) + units)
        }
        await look()
      }
      const bySums = await readWallet(stage.db, ASSETS)
      const byJournal = await addUpWallet(stage.db, ASSETS)
      for (const asset of ASSETS) {
        const expected = committed.get(asset) ?? 0n
        expect(bySums.find((sum) => sum.asset === asset)?.units ?? 0n).toBe(expected)
        expect(byJournal.find((sum) => sum.asset === asset)?.units ?? 0n).toBe(expected)
      }
    }),
    { numRuns: 50 },
  )
})

test('a sum that is false is named with its bucket, and mended by the journal', async () => {
  await stage.reset()
  await stage.db.transaction((tx) => postForOrder(tx, 'CB0000000000000013', 'entry', [toPosting(7, 0)], 1))
  await sumWalletMovements(stage.db, ASSETS)
  const [asset] = ASSETS
  const falseSum = { bucket: 13, asset, summed: 6n, journal: 7n }
  await stage.corrupt('UPDATE wallet_sums SET units = units - 1')
  expect(await findFalseWalletSums(stage.db, EVERY_BUCKET, ASSETS)).toEqual([falseSum])
  expect(await mendWalletSums(stage.db, { first: 14, last: 99 }, ASSETS), 'not in turn').toEqual([])
  expect(await mendWalletSums(stage.db, { first: 13, last: 13 }, ASSETS)).toEqual([falseSum])
  await look()
  expect(await readWallet(stage.db, ASSETS)).toEqual([{ asset, units: 7n }])
})
