import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removePostgres } from '@cambist/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startMigratedPostgres } from '../../test/harness/migrated_postgres.ts'
import { openTestDatabase } from '../../test/harness/test_database.ts'
import { HOUR_MS } from '../domain/time.ts'
import type { SignedRecord, SignedStore } from '../signer/signer.ts'
import {
  bitcoinIntent,
  coin,
  customerBitcoin,
  evmIntent,
  keys,
  sealed,
  solanaIntent,
  startSigner,
} from '../signer/testing/fixtures.ts'
import { memoryStore } from '../signer/testing/memory_store.ts'
import type { Database } from './database.ts'
import { signedTransactions } from './signed_transactions.ts'

/**
 * What: the signer's record in PostgreSQL holds what the one in memory, which most tests use, holds too.
 * How: the same questions to both.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-signed-'))
let server: Awaited<ReturnType<typeof startMigratedPostgres>>
let db: Database

beforeAll(async () => {
  server = await startMigratedPostgres(join(folder, 'postgres'))
  db = openTestDatabase(server.url, 'signed', 4)
})

afterAll(async () => {
  await db?.close()
  await server?.stop()
  removePostgres(join(folder, 'postgres'))
  rmSync(folder, { recursive: true, force: true })
})

const stores = { memory: memoryStore, postgres: () => signedTransactions(db) }

function recordOf(payoutId: string, attempt: number, asset: string, changes: Partial<SignedRecord> = {}) {
  const intent = solanaIntent({ payoutId, attempt })
  const tx = { txHash: `${asset}${payoutId}#${attempt}`, bytes: '00' }
  return { payoutId, attempt, intent, asset, units: 10n, tx, atMs: 1_000, ...changes }
}

test.each(Object.entries(stores))('in %s a limit counts first attempts, or every one', async (_, open) => {
  const store = open()
  for (const [asset, countsEveryAttempt] of [
    ['ETH:ETH', false],
    ['SOL:SOL', true],
  ] as const) {
    const limit = { asset, windowMs: HOUR_MS, unitsMax: 30n, countsEveryAttempt }
    const isRoom = async (payoutId: string, attempt: number, atMs = 1_000) =>
      (await store.insertOnce(recordOf(payoutId, attempt, asset, { atMs }), [limit])) !== 'limit_exceeded'
    const [one, other] = [`${asset.slice(0, 3)}A:1`, `${asset.slice(0, 3)}B:1`]
    expect(await isRoom(one, 1)).toBe(true)
    expect(await isRoom(one, 2)).toBe(true)
    expect(await isRoom(other, 1)).toBe(true)
    expect(await isRoom(other, 2), asset).toBe(!countsEveryAttempt)
    expect(await isRoom(one, 2), 'what is there is answered').toBe(true)
    expect(await isRoom(other, 2, 1_000 + HOUR_MS)).toBe(true)
  }
})

/** When it was really signed nobody knows: a moment ago, perhaps. */
test.each(Object.entries(stores))('in %s what a clock that was ahead has signed counts', async (_, open) => {
  const store = open()
  const limit = { asset: 'BNB:BNB', windowMs: HOUR_MS, unitsMax: 10n, countsEveryAttempt: false }
  const isRoom = async (payoutId: string, atMs: number) =>
    (await store.insertOnce(recordOf(payoutId, 1, 'BNB:BNB', { atMs }), [limit])) !== 'limit_exceeded'
  const aheadMs = 9_000 * HOUR_MS
  expect(await isRoom('AHEAD-A:1', aheadMs)).toBe(true)
  expect(await store.spent(limit, 0), 'the clock is right again').toBe(10n)
  expect(await isRoom('AHEAD-B:1', 0)).toBe(false)
  expect(await isRoom('AHEAD-B:1', aheadMs + HOUR_MS)).toBe(true)
})

test.each(Object.entries(stores))(
  'in %s nothing is signed for an outflow after a later one of its order',
  async (_, open) => {
    const store = open()
    const stored = (payoutId: string, attempt: number, asset: string) =>
      store.insertOnce(recordOf(payoutId, attempt, asset), [])
    const first = recordOf('CB7:2', 1, 'TRX:TRX')
    expect(await stored('CB7:2', 1, 'TRX:TRX')).toEqual(first)
    expect(await stored('CB7:10', 1, 'XRP:XRP')).toMatchObject({ payoutId: 'CB7:10' })
    expect(await stored('CB7:1', 1, 'EOS:EOS'), 'one that was never signed').toBe('overtaken')
    expect(await stored('CB7:9', 1, 'XRP:XRP'), 'ten comes after nine').toBe('overtaken')
    expect(await stored('CB7:2', 2, 'TRX:TRX'), 'another attempt').toBe('overtaken')
    expect(await stored('CB7:2', 1, 'TRX:TRX'), 'what is there is answered').toEqual(first)
    expect(await stored('CB7:10', 2, 'XRP:XRP')).toMatchObject({ attempt: 2 })
    expect(await stored('CB7:11', 1, 'TRX:TRX')).toMatchObject({ payoutId: 'CB7:11' })
    for (const other of ['CB70:1', 'CB:1', 'house-BTC-CB7-1:1'])
      expect(await stored(other, 1, 'TRX:TRX'), other).toMatchObject({ payoutId: other })
  },
)

test.each(Object.entries(stores))('%s says which outflow of an order is the last one', async (_, open) => {
  const store = open()
  expect(await store.lastOutflow('CB6'), 'nothing').toBe(0)
  for (const [payoutId, attempt, last] of [
    ['CB6:1', 1, 1],
    ['CB6:9', 1, 9],
    ['CB6:9', 2, 9],
    ['CB6:10', 1, 10],
    ['CB6:2', 1, 10],
    ['CB60:11', 1, 10],
    ['house-BTC-CB6-1:12', 1, 10],
  ] as const) {
    await store.insertOnce(recordOf(payoutId, attempt, 'TRX:TRX'), [])
    expect(await store.lastOutflow('CB6'), payoutId).toBe(last)
  }
})

type Insertion = Parameters<SignedStore['insertOnce']>

/** The answers when the first has written its record and is yet to commit it while the second one begins. */
async function atOnce(database: Database, first: Insertion, second: Insertion) {
  const written = Promise.withResolvers<void>()
  const committing = Promise.withResolvers<void>()
  const slow: Database = {
    ...database,
    transaction: (work) =>
      database.transaction(async (tx) => {
        const stored = await work(tx)
        written.resolve()
        await committing.promise
        return stored
      }),
  }
  const before = signedTransactions(slow).insertOnce(...first)
  await written.promise
  let isOver = false
  const after = signedTransactions(database)
    .insertOnce(...second)
    .finally(() => {
      isOver = true
    })
  const isWaiting = async () =>
    (await db.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")).length > 0
  while (!isOver && !(await isWaiting()));
  committing.resolve()
  return Promise.all([before, after])
}

test('of two outflows of an order that are signed at once, the earlier one waits for the later one, and is not signed', async () => {
  const later = recordOf('CB8:2', 1, 'XRP:XRP')
  const earlier = recordOf('CB8:1', 1, 'TRX:TRX')
  expect(await atOnce(db, [later, []], [earlier, []])).toMatchObject([{ payoutId: 'CB8:2' }, 'overtaken'])
})

/** An operator may say so of a server, a database or a user; here it is said of these connections. */
function openWith(setting: string): Database {
  const url = new URL(server.url)
  url.searchParams.set('options', `-c ${setting.replaceAll(' ', '\\ ')}`)
  return openTestDatabase(url.href, 'set', 4)
}

/** Without it a server that dies forgets the commits of its last moments, which it had told of. */
test('what is signed is on disk before anybody is told, also where a server is set to tell sooner', async () => {
  const hasty = openWith('synchronous_commit=off')
  try {
    expect(await hasty.query('SHOW synchronous_commit')).toEqual([{ synchronous_commit: 'on' }])
  } finally {
    await hasty.close()
  }
})

test.each([
  ['repeatable read', 'XLM:XLM'],
  ['serializable', 'EOS:EOS'],
])(
  'where transactions are %s by default, what is signed at once is counted all the same',
  async (isolation, asset) => {
    const isolated = openWith(`default_transaction_isolation=${isolation}`)
    const order = `CB-${isolation.replace(' ', '-')}`
    const limit = { asset, windowMs: HOUR_MS, unitsMax: 10n, countsEveryAttempt: false }
    try {
      expect(
        await atOnce(
          isolated,
          [recordOf(`${order}-A:1`, 1, asset), [limit]],
          [recordOf(`${order}-B:1`, 1, asset), [limit]],
        ),
      ).toMatchObject([{ payoutId: `${order}-A:1` }, 'limit_exceeded'])
      expect(
        await atOnce(
          isolated,
          [recordOf(`${order}:2`, 1, 'XRP:XRP'), []],
          [recordOf(`${order}:1`, 1, 'TRX:TRX'), []],
        ),
      ).toMatchObject([{ payoutId: `${order}:2` }, 'overtaken'])
    } finally {
      await isolated.close()
    }
  },
)

/**
 * A signature on Bitcoin says what its own coin holds. Out of two transactions that differ in what they say of their coins one
 * can be made that leaves the difference to miners (CVE-2020-14199), and both have its id, which signatures do not change.
 */
test('a transaction is signed for one payout only, so that two stories of its coins are never both signed', async () => {
  const [low, high] = [50_000_000n, 100_000_000n]
  const story = (payoutId: string, [first, second]: readonly [bigint, bigint]) =>
    bitcoinIntent({ payoutId, inputs: [coin(1, first), coin(2, second)] })
  const authority = sealed({ destination: customerBitcoin, payoutAsset: 'BTC:BTC' })
  const one = story('CB1:1', [high, low])
  const other = story('CB1:2', [low, high])
  const alone = await Promise.all([one, other].map((intent) => startSigner().signer.sign(intent, authority)))
  const ids = alone.map((answer) => answer.ok && answer.value.txHash)
  expect(new Set(ids).size).toBe(1)

  const { signer } = startSigner({}, { ...memoryStore(), ...signedTransactions(db) })
  expect(await signer.sign(one, authority)).toMatchObject({ ok: true })
  await expect(signer.sign(other, authority)).rejects.toThrow('was signed for attempt 1 of CB1:1 before')
})

/**
 * What: a sweep, or the gas for one, that a restored database plans under the next name is signed also when it is, but for its name, one
 * that was signed before; so is a dearer attempt after it. Two stories of coins are not one transaction, whatever they are called.
 */
test.each(Object.entries(stores))(
  'in %s a sweep that was signed under another name has its bytes',
  async (where, open) => {
    const { signer, store } = startSigner({}, { ...memoryStore(), ...open() })
    const key = { purpose: 'deposit', index: 7 } as const
    const sweep = { from: key, to: keys.address('evm', { purpose: 'reserve', index: 0 }) }
    const gas = { to: keys.address('evm', key), units: 1_000n }
    const dearer = { attempt: 2, maxFeePerGasWei: 40_000_000_000n, maxPriorityFeePerGasWei: 2_000_000_000n }
    for (const [name, moves, payeeKey] of [
      ['A', sweep, null],
      ['B', gas, key],
    ] as const) {
      const sign = (orderId: string, changes: Parameters<typeof evmIntent>[0] = {}) => {
        const payoutId = `${orderId}:1`
        return signer.sign(
          evmIntent({ ...moves, payoutId, ...changes }),
          sealed({ kind: 'sweep', orderId, payeeKey }),
        )
      }
      const [first, next] = [`${where}-${name}-1`, `${where}-${name}-2`]
      const signed = await sign(first)
      expect(signed).toMatchObject({ ok: true })
      for (const _ of ['once', 'and again']) expect(await sign(next)).toEqual(signed)
      expect(await store.attempts(`${next}:1`)).toEqual([])
      expect(await sign(next, dearer)).toMatchObject({ ok: true })
      expect(await sign(next, { ...dearer, attempt: 1 }), 'one that is over').toMatchObject({ ok: false })
      await expect(
        signer.sign(
          evmIntent({ ...moves, payoutId: `${next}:2` }),
          sealed({ kind: 'payout', orderId: next, destination: moves.to }),
        ),
        'as a payout',
      ).rejects.toThrow(`was signed for attempt 1 of ${first}:1 before`)
    }
  },
)
