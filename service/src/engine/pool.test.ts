import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { insertAddresses } from '../db/addresses.ts'
import type { Signer } from '../signer/signer.ts'
import { fillPools } from './pool.ts'
import { type BooksStage, openBooksStage } from './testing/books_stage.ts'
import type { SigningWorld } from './world.ts'

/**
 * What: a pool that has run low is a fourth full after one pass, and no derivation holds the process up for long; one that
 * is nearly full is filled in passing; and no key has two addresses.
 * How: a real PostgreSQL, a signer that notes how many it was asked for. Addresses are given away by hand.
 */
let stage: BooksStage
const asked: number[] = []

beforeAll(async () => {
  stage = await openBooksStage('pool')
})
beforeEach(async () => {
  await stage.reset()
  asked.length = 0
})
afterAll(() => stage?.stop())

const POOL_SIZE = 200

function world(): SigningWorld {
  const signer: Signer = {
    addresses: async (family, purpose, from, count) => {
      asked.push(count)
      return Array.from({ length: count }, (_, at) => `${family}-${purpose}-${from + at}`)
    },
    room: () => Promise.reject(new Error('nothing is signed here')),
    lastSigned: () => Promise.reject(new Error('nothing is signed here')),
    lastOutflow: () => Promise.reject(new Error('nothing is signed here')),
    sign: () => Promise.reject(new Error('nothing is signed here')),
  }
  const policy = { ...stage.world.policy, poolSize: POOL_SIZE }
  return { ...stage.world, policy, seal: () => 'seal', signer }
}

async function ready(): Promise<Record<string, number>> {
  const rows = await stage.db.query<{ family: string; free: number }>(
    `SELECT family, count(*)::int AS free FROM addresses
     WHERE purpose = 'deposit' AND assigned_at_ms IS NULL AND address LIKE family || '-deposit-%' GROUP BY family`,
  )
  return Object.fromEntries(rows.map(({ family, free }) => [family, free]))
}

test('after one pass every empty pool is a fourth full, in small steps, and more is wanted at once', async () => {
  await stage.db.query('DELETE FROM addresses')
  expect(await fillPools(world())).toBe(true)
  const families = new Set([...stage.chains.values()].map(({ family }) => family))
  expect(await ready()).toEqual(Object.fromEntries([...families].map((family) => [family, POOL_SIZE / 4])))
  expect(Math.max(...asked)).toBe(25)
})

test('a signer that derives nothing for one family keeps no other from its addresses, and says so', async () => {
  await stage.db.query('DELETE FROM addresses')
  const { signer, ...rest } = world()
  const addresses: Signer['addresses'] = (family, ...wanted) =>
    family === 'evm'
      ? Promise.reject(new Error('evm is not configured'))
      : signer.addresses(family, ...wanted)
  await expect(fillPools({ ...rest, signer: { ...signer, addresses } })).rejects.toThrow(
    'evm is not configured',
  )
  const { evm: _, ...others } = Object.fromEntries(
    [...stage.chains.values()].map(({ family }) => [family, POOL_SIZE / 4]),
  )
  expect(await ready()).toEqual(others)
})

test('pools are filled to their size, and no further', async () => {
  await stage.db.query('DELETE FROM addresses')
  for (let pass = 0; pass < 8; pass += 1) await fillPools(world())
  asked.length = 0
  expect(await fillPools(world())).toBe(false)
  expect(asked).toEqual([])
  expect(new Set(Object.values(await ready()))).toEqual(new Set([POOL_SIZE]))
})

test('a pool that many orders have emptied is filled again from where it ended', async () => {
  await stage.db.query('DELETE FROM addresses')
  for (let pass = 0; pass < 8; pass += 1) await fillPools(world())
  await stage.db.query(
    `UPDATE addresses SET assigned_at_ms = 1, order_id = 'CB', chain = 'ETH' WHERE family = 'evm' AND key_index >= 10`,
  )
  expect(await fillPools(world())).toBe(true)
  expect(await ready()).toMatchObject({ evm: 10 + 50 })
  const [last] = await stage.db.query<{ index: number }>(
    `SELECT max(key_index) AS index FROM addresses WHERE family = 'evm' AND purpose = 'deposit'`,
  )
  expect(last?.index).toBe(POOL_SIZE + 50 - 1)
})

test('the same addresses again change nothing; another address of the same key is refused, and so are all beside it', async () => {
  await stage.db.query('DELETE FROM addresses')
  await insertAddresses(stage.db, 'evm', 'deposit', 4, ['four', 'five'])
  await insertAddresses(stage.db, 'evm', 'deposit', 4, ['four', 'five'])
  await expect(insertAddresses(stage.db, 'evm', 'deposit', 5, ['other five', 'six'])).rejects.toThrow(
    'evm deposit 5 is five in this database, and the signer derives other five',
  )
  expect(await stage.db.query('SELECT address, key_index FROM addresses ORDER BY key_index')).toEqual([
    { address: 'four', key_index: 4 },
    { address: 'five', key_index: 5 },
  ])
})
