import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres, startPostgres } from '@cambist/devnet'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type Database, openDatabase, type Sql } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { chanceFrom } from '../harness/chance.ts'
import {
  type DatabaseFault,
  type DatabaseLine,
  databaseFaults,
  openDatabaseLine,
  type RequestKind,
} from '../harness/database_line.ts'
import { soon } from '../harness/eventually.ts'

/**
 * What: whatever becomes of a connection to PostgreSQL, its caller hears of it, the next statement works, and a
 * transaction happened or did not.
 * How: a real PostgreSQL behind a line that is cut, silent, slow or wrong at a connection's start, at a statement and at
 * a commit.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-database-'))
const dataDir = join(folder, 'postgres')
let server: Postgres
let line: DatabaseLine
let direct: Database

beforeAll(async () => {
  server = await startPostgres({ dataDir, settings: { fsync: 'off' } })
  await migrate(server.url, () => {})
  direct = open(server.url, 2)
})

beforeEach(async () => {
  line = await openDatabaseLine(server.url, chanceFrom(7))
})

afterEach(async () => {
  vi.useRealTimers()
  await line.stop()
})

afterAll(async () => {
  await direct?.close()
  await server?.stop()
  removePostgres(dataDir)
  rmSync(folder, { recursive: true, force: true })
})

function open(url: string, connectionsMax: number): Database {
  return openDatabase({ url, connectionsMax, applicationName: 'database.test', onConnectionLost: () => {} })
}

function insert(tx: Sql, name: string): Promise<unknown> {
  return tx.query("INSERT INTO sandbox_settings (name, value) VALUES ($1, '1')", [name])
}

/** Opening a connection may take ten seconds before it is given up. */
function isLongSilence(fault: DatabaseFault): boolean {
  return ['drop_request', 'stall', 'trickle', 'garbage'].includes(fault)
}

function hasArrived(fault: DatabaseFault): boolean {
  return !['reset', 'cut_in_request', 'drop_request'].includes(fault)
}

/** As the operator's URL may say: sooner than by default. */
function impatient(): string {
  return `${line.url}?query_timeout=1000`
}

const times = databaseFaults.flatMap((fault) =>
  (['connect', 'statement', 'commit'] as const satisfies readonly RequestKind[]).map((kind) => ({
    fault,
    kind,
  })),
)

test.each(times.filter(({ kind, fault }) => kind !== 'connect' || !isLongSilence(fault)))(
  '$fault at a $kind: the caller is told or has its answer, and the next one is served',
  async ({ fault, kind }) => {
    const db = open(isLongSilence(fault) ? impatient() : line.url, 1)
    try {
      if (kind !== 'connect') await soon(() => db.query('SELECT 1'))
      let rounds = 0
      // Done again where it was given up before anything happened to it.
      const { name, outcome } = await soon(async () => {
        const name = `${fault}_${kind}_${rounds++}`
        let left = 1
        line.meddle((seen) => (seen === kind && left-- > 0 ? fault : null))
        const outcome = await db
          .transaction((tx) => insert(tx, name))
          .then(
            () => 'done' as const,
            () => 'failed' as const,
          )
        expect([...line.happened().keys()]).toEqual([`${kind} ${fault}`])
        return { name, outcome }
      })
      if (fault === 'delay') expect(outcome).toBe('done')
      else expect(outcome).toBe('failed')
      line.meddle(null)
      await soon(async () => expect(await db.query('SELECT 1 AS one')).toEqual([{ one: 1 }]))
      const rows = () => direct.query('SELECT name FROM sandbox_settings WHERE name = $1', [name])
      if (fault === 'delay' || (kind === 'commit' && hasArrived(fault)))
        await expect.poll(rows, { message: 'it did happen' }).toHaveLength(1)
      else expect(await rows(), 'nothing happened').toHaveLength(0)
    } finally {
      await db.close()
    }
  },
)

/** Waits until the line has stalled so many requests, of which each is given up when its time is over, and lets time pass. */
async function passSeconds(stalled: RequestKind, times: number, seconds: number): Promise<void> {
  await soon(() => expect(line.happened().get(`${stalled} stall`)).toBe(times))
  for (let passed = 0; passed < seconds; passed += 1) await vi.advanceTimersByTimeAsync(1_000)
}

test('a statement that is never answered fails by itself, and its connection is given up', async () => {
  const db = open(line.url, 1)
  try {
    await db.query('SELECT 1')
    line.meddle((kind) => (kind === 'statement' ? 'stall' : null))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const asked = db.transaction((tx) => insert(tx, 'never')).catch((error: Error) => error)
    await passSeconds('statement', 1, 50)
    vi.useRealTimers()
    expect(await asked).toBeInstanceOf(Error)
    line.meddle(null)
    expect(await db.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
  } finally {
    await db.close()
  }
})

// A connection is tried once more.
test.each([
  ['connect', [25, 25]],
  ['statement', [50]],
] as const)('a start whose %s is never answered fails by itself', async (stalled, waits) => {
  line.meddle((kind) => (kind === stalled ? 'stall' : null))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const started = migrate(line.url, () => {}).catch((error: Error) => error)
  for (const [earlier, seconds] of waits.entries()) await passSeconds(stalled, earlier + 1, seconds)
  vi.useRealTimers()
  expect(await started).toBeInstanceOf(Error)
})

/** As a server is, for whoever connects, as long as it stands by: after a failover the name may lead there for a while. */
async function standingBy(work: () => Promise<void>): Promise<void> {
  const superuser = new pg.Client({ connectionString: server.url })
  await superuser.connect()
  try {
    await superuser.query('ALTER DATABASE postgres SET default_transaction_read_only = on')
    await work()
  } finally {
    await superuser.query('ALTER DATABASE postgres RESET default_transaction_read_only')
    await superuser.end()
  }
}

test('a connection to a server that only reads is given up as soon as that shows', async () => {
  const db = open(server.url, 1)
  try {
    await standingBy(async () => {
      const refused = db.transaction((tx) => insert(tx, 'stands_by'))
      await expect(refused).rejects.toMatchObject({ code: '25006' })
    })
    await db.transaction((tx) => insert(tx, 'writes'))
    expect(await db.query("SELECT 1 AS one FROM sandbox_settings WHERE name = 'writes'")).toEqual([
      { one: 1 },
    ])
  } finally {
    await db.close()
  }
})

test('a connection on which a statement was prepared before a migration is given up as soon as that shows', async () => {
  const db = open(server.url, 1)
  const superuser = new pg.Client({ connectionString: server.url })
  await superuser.connect()
  try {
    const look = () => db.transaction((tx) => tx.query('SELECT * FROM sandbox_settings LIMIT 0'))
    await look()
    await superuser.query('ALTER TABLE sandbox_settings ADD COLUMN migrated integer')
    await expect(look()).rejects.toMatchObject({ code: '0A000' })
    expect(await look()).toEqual([])
  } finally {
    await superuser.query('ALTER TABLE sandbox_settings DROP COLUMN IF EXISTS migrated')
    await superuser.end()
    await db.close()
  }
})
