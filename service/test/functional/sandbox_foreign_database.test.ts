import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import { runner } from 'node-pg-migrate'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { MIGRATIONS_FOLDER } from '../../src/db/migrations_done.ts'
import { openSandboxSeed } from '../../src/sandbox/keys.ts'
import { eventually } from '../harness/eventually.ts'
import { startMigratedPostgres } from '../harness/migrated_postgres.ts'
import { START_PATIENCE_MS } from '../harness/patience.ts'
import { killAll, launchSandbox, living, pidsOf } from './processes/running_sandbox.ts'

/**
 * What: the sandbox leaves a database alone that is not its own, also where its folder has been a sandbox before.
 * How: the real command, and databases that look as the service of somebody else leaves them.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-foreign-'))
const dataDir = join(folder, 'data')
const postgresDir = join(folder, 'postgres')
let server: Postgres
let superuser: pg.Client

beforeAll(async () => {
  server = await startMigratedPostgres(postgresDir)
  superuser = new pg.Client({ connectionString: server.url })
  await superuser.connect()
})

afterEach(() => {
  killAll(pidsOf(dataDir))
  rmSync(dataDir, { recursive: true, force: true })
})

afterAll(async () => {
  await superuser?.end()
  await server?.stop()
  removePostgres(postgresDir)
  rmSync(folder, { recursive: true, force: true })
})

async function makeDatabase(name: string): Promise<{ url: string; client: pg.Client }> {
  await superuser.query(`CREATE DATABASE ${name}`)
  const url = new URL(`/${name}`, server.url).href
  await migrate(url, () => {})
  const client = new pg.Client({ connectionString: url })
  // Of a test that failed it is still open when the server stops.
  client.on('error', () => {})
  await client.connect()
  return { url, client }
}

const insertAddress = `INSERT INTO addresses (family, address, purpose, key_index)
  VALUES ('evm', '0x1', 'reserve', 0)`

/** Waits until it says that it is ready, and stops it, or until it ends by itself. */
async function startOn(databaseUrl: string) {
  const { child, output, ended } = launchSandbox(dataDir, { DATABASE_URL: databaseUrl })
  await eventually(
    'it ends or is ready',
    () => {
      const isReady = /^Cambist sandbox ready/m.test(output())
      if (child.exitCode === null && child.signalCode === null && !isReady) throw new Error('not yet')
    },
    { timeoutMs: START_PATIENCE_MS, context: output },
  )
  child.kill('SIGTERM')
  return { code: await ended, output: output(), isReady: /^Cambist sandbox ready/m.test(output()) }
}

test("a folder that was a sandbox is no reason to work on somebody else's database", async () => {
  const { url, client } = await makeDatabase('production')
  await client.query(insertAddress)
  await client.query(
    "INSERT INTO accounts (account_id, name, created_at_ms) VALUES ('acc_production', 'A shop', 1)",
  )
  // Of an earlier version, which had no marker: an account, and then a keystore.
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'demo_account.json'), '{}')
  await openSandboxSeed(dataDir, Date.now())
  const { code, output } = await startOn(url)
  const { rows } = await client.query('SELECT account_id FROM accounts')
  await client.end()
  expect(rows).toEqual([{ account_id: 'acc_production' }])
  expect(output).toContain('DATABASE_URL names a database that is not of the sandbox in')
  expect(code).toBe(1)
  expect(living(pidsOf(dataDir))).toEqual([])
})

test('a database that is refused keeps the schema that it has', async () => {
  const { url, client } = await makeDatabase('earlier_release')
  await client.query(insertAddress)
  await runner({
    dbClient: client,
    dir: MIGRATIONS_FOLDER,
    migrationsTable: 'schema_migrations',
    direction: 'down',
    count: 1,
    logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  })
  const migrations = async () => (await client.query('SELECT name FROM schema_migrations ORDER BY id')).rows
  const before = await migrations()
  const { code, output } = await startOn(url)
  const after = await migrations()
  await client.end()
  expect(output).toContain('DATABASE_URL names')
  expect(code).toBe(1)
  expect(after).toEqual(before)
  expect(living(pidsOf(dataDir))).toEqual([])
})

test('an empty database becomes that of the folder, and stays so as long as both say it', async () => {
  await superuser.query('CREATE DATABASE empty')
  const url = new URL('/empty', server.url).href
  for (let start = 0; start < 2; start += 1) {
    const { output, ...end } = await startOn(url)
    expect(end, output).toEqual({ isReady: true, code: 0 })
  }
  rmSync(join(dataDir, 'marker.json'))
  expect(await startOn(url)).toMatchObject({ isReady: false, code: 1 })
})
