import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import { runner } from 'node-pg-migrate'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { eventually } from '../../test/harness/eventually.ts'
import { startMigratedPostgres } from '../../test/harness/migrated_postgres.ts'
import { openTestDatabase } from '../../test/harness/test_database.ts'
import { connectionName } from './connected_roles.ts'
import { findMissing, LaterSchema, migrate, SchemaRefused } from './migrate.ts'
import { MIGRATIONS_FOLDER, ownMigrations } from './migrations_done.ts'

const folder = mkdtempSync(join(tmpdir(), 'cambist-migrate-'))
const dataDir = join(folder, 'postgres')
let server: Postgres
let superuser: pg.Client

beforeAll(async () => {
  server = await startMigratedPostgres(dataDir)
  superuser = new pg.Client({ connectionString: server.url })
  await superuser.connect()
})
afterAll(async () => {
  await superuser?.end()
  await server?.stop()
  removePostgres(dataDir)
  rmSync(folder, { recursive: true, force: true })
})

async function emptyDatabase(name: string): Promise<string> {
  await superuser.query(`CREATE DATABASE ${name}`)
  return new URL(`/${name}`, server.url).href
}

async function migrationsIn(url: string): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ name: string }>('SELECT name FROM schema_migrations ORDER BY name')
  await client.end()
  return rows.map(({ name }) => name)
}

test('processes that start at once on an empty database make the schema once', async () => {
  const url = await emptyDatabase('at_once')
  await Promise.all([migrate(url, () => {}), migrate(url, () => {}), migrate(url, () => {})])
  expect(await migrationsIn(url)).toEqual(await migrationsIn(server.url))
})

test('who finds nothing missing waits for nobody', async () => {
  // What node-pg-migrate holds for as long as it works.
  await superuser.query('SELECT pg_advisory_lock(7241865325823964)')
  try {
    const lines: string[] = []
    await migrate(server.url, (line) => lines.push(line))
    expect(lines).toEqual([])
  } finally {
    await superuser.query('SELECT pg_advisory_unlock_all()')
  }
})

test('a server that ends what takes long ends no migration, nor one that waits for another', async () => {
  const url = await emptyDatabase('impatient')
  const other = new pg.Client({ connectionString: url })
  await other.connect()
  await superuser.query(`ALTER DATABASE impatient SET statement_timeout = '1s'`)
  await superuser.query(`ALTER DATABASE impatient SET lock_timeout = '1s'`)
  await other.query('SELECT pg_advisory_lock(7241865325823964)')
  let failure: unknown = null
  const migrating = migrate(url, () => {}).catch((error: unknown) => {
    failure = error
  })
  await eventually('it has waited for longer than the server allows', async () => {
    if (failure !== null) return
    const { rowCount } = await superuser.query(
      `SELECT FROM pg_stat_activity WHERE datname = 'impatient' AND wait_event = 'advisory'
       AND clock_timestamp() - query_start > interval '1200ms'`,
    )
    if (rowCount !== 1) throw new Error('not yet')
  })
  await other.end()
  await migrating
  expect(failure).toBeNull()
  expect(await migrationsIn(url)).toEqual(await migrationsIn(server.url))
})

test('what goes wrong while it is asked what is missing is told', async () => {
  await expect(migrate(new URL('/nowhere', server.url).href, () => {})).rejects.toThrow('nowhere')
})

test('an answer that a busy process heard too late is asked for once more', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const asking = findMissing(server.url)
    // Synchronously, so that the timer is before the answer, as after a long load of modules.
    vi.advanceTimersByTime(10_000)
    await expect(asking).resolves.toEqual([])
  } finally {
    vi.useRealTimers()
  }
})

test('a release touches nothing where a later one has been', async () => {
  const url = await emptyDatabase('later')
  await migrate(url, () => {})
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const [newest] = (await migrationsIn(url)).slice(-1)
  // Nor does it bring what that one may have left out on purpose.
  await client.query('DELETE FROM schema_migrations WHERE name = $1', [newest])
  await client.query(`INSERT INTO schema_migrations (name, run_on) VALUES ('9999_later', now())`)
  await client.end()
  const before = await migrationsIn(url)
  await expect(migrate(url, () => {})).rejects.toThrow(LaterSchema)
  await expect(migrate(url, () => {})).rejects.toThrow('of a later release (it also has: 9999_later)')
  expect(await migrationsIn(url)).toEqual(before)
})

/** So many migrations, one way or the other. */
async function step(dbClient: pg.Client, direction: 'up' | 'down', count: number): Promise<void> {
  const logger = { debug() {}, info() {}, warn() {}, error() {} }
  const migrationsTable = 'schema_migrations'
  await runner({ dbClient, direction, count, dir: MIGRATIONS_FOLDER, migrationsTable, logger })
}

/** As a release without its newest migration leaves it. */
async function withoutNewest(name: string): Promise<pg.Client> {
  const url = await emptyDatabase(name)
  await migrate(url, () => {})
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await step(client, 'down', 1)
  return client
}

const urlOf = (name: string) => new URL(`/${name}`, server.url).href

test('a clock that was ahead when a migration was done holds up no later one', async () => {
  const client = await withoutNewest('ahead')
  await client.query(
    `UPDATE schema_migrations SET run_on = run_on + interval '1 day' WHERE name = '0001_core'`,
  )
  await client.end()
  const told: string[] = []
  await migrate(urlOf('ahead'), (line) => told.push(line))
  const [newest] = (await migrationsIn(server.url)).slice(-1)
  expect(told).toEqual([expect.stringMatching(`^the database lacks ${newest}: nothing listens until`)])
  expect(await migrationsIn(urlOf('ahead'))).toEqual(await migrationsIn(server.url))
})

test('nothing is changed where a migration is missing before one that is done', async () => {
  const client = await withoutNewest('gap')
  await client.query(`DELETE FROM schema_migrations WHERE name = '0004_reconciliation'`)
  await client.end()
  const before = await migrationsIn(urlOf('gap'))
  const failure = await migrate(urlOf('gap'), () => {}).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(SchemaRefused)
  expect(String(failure)).toContain(
    `The database has ${before.at(-1)}, and not what comes before it (0004_reconciliation)`,
  )
  expect(await migrationsIn(urlOf('gap'))).toEqual(before)
})

test('nothing is changed while a process works on the earlier tables, and those of other databases are none', async () => {
  const [newest] = (await migrationsIn(server.url)).slice(-1)
  const own = await withoutNewest('in_use')
  const elsewhere = await withoutNewest('not_in_use')
  await own.query(`SET application_name = '${connectionName(['api', 'engine'])}'`)
  const { rows } = await own.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const pid = rows[0]?.pid
  const failure = await migrate(urlOf('in_use'), () => {}).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(SchemaRefused)
  expect(String(failure)).toContain(`cambist api,engine (${pid})`)
  expect(String(failure)).toContain(`SELECT pg_terminate_backend(${pid})`)
  expect(await migrationsIn(urlOf('in_use'))).not.toContain(newest)
  await migrate(urlOf('not_in_use'), () => {})
  await own.query(`SET application_name = ''`)
  await migrate(urlOf('in_use'), () => {})
  // Where nothing is missing, whoever is connected is of this release.
  await own.query(`SET application_name = '${connectionName(['api', 'engine'])}'`)
  await migrate(urlOf('in_use'), () => {})
  expect(await migrationsIn(urlOf('in_use'))).toContain(newest)
  await Promise.all([own.end(), elsewhere.end()])
})

test('who has just been stopped may be seen at the server for a moment longer, and holds up nothing', async () => {
  const leaving = await withoutNewest('leaving')
  await leaving.query(`SET application_name = '${connectionName(['api'])}'`)
  const left: Promise<void>[] = []
  await migrate(urlOf('leaving'), (line) => {
    if (line.includes('waiting for them to leave')) left.push(leaving.end())
  })
  expect(left).toHaveLength(1)
  await Promise.all(left)
  expect(await migrationsIn(urlOf('leaving'))).toEqual(await migrationsIn(server.url))
})

test('who has waited for another finds what that one did, also when it works on it already', async () => {
  const holder = await withoutNewest('waited')
  await holder.query('SELECT pg_advisory_lock(7241865325823964)')
  const told: string[] = []
  const waiting = migrate(urlOf('waited'), (line) => told.push(line))
  await eventually('it waits', async () => {
    const { rowCount } = await superuser.query(
      `SELECT FROM pg_stat_activity WHERE datname = 'waited' AND wait_event = 'advisory'`,
    )
    if (rowCount !== 1) throw new Error('not yet')
  })
  expect(told).toEqual([expect.stringMatching(/^another process is changing the tables .* nothing listens/)])
  await holder.query('INSERT INTO schema_migrations (name, run_on) VALUES ($1, now())', [
    (await migrationsIn(server.url)).at(-1),
  ])
  await holder.query(`SET application_name = '${connectionName(['api'])}'`)
  await holder.query('SELECT pg_advisory_unlock_all()')
  await waiting
  expect(told).toHaveLength(1)
  await holder.end()
})

/** What there is in the database and who may do what to it, one thing a line, in whatever order it was made. */
async function describeSchema(client: pg.Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ line: string }>(
    `WITH spaces AS (SELECT * FROM pg_namespace WHERE nspname IN ('public', 'signer')),
       relations AS (SELECT * FROM pg_class WHERE relnamespace IN (SELECT oid FROM spaces)),
       columns AS (SELECT * FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped
         AND attrelid IN (SELECT oid FROM relations WHERE relkind IN ('r', 'p', 'v')))
     SELECT concat_ws(' ', oid::regclass, relkind, acl) AS line FROM relations,
       LATERAL (SELECT string_agg(concat_ws(' ', grantee::regrole, privilege_type), ',' ORDER BY grantee, privilege_type) AS acl
         FROM aclexplode(coalesce(relacl, acldefault('r', relowner)))) AS granted
     UNION ALL SELECT concat_ws(' ', attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull, attgenerated,
         attidentity, attacl, (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum))
       FROM columns
     UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
       WHERE connamespace IN (SELECT oid FROM spaces)
     UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid IN (SELECT oid FROM relations)
     UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
     UNION ALL SELECT concat_ws(' ', pg_get_functiondef(oid), proacl) FROM pg_proc WHERE pronamespace IN (SELECT oid FROM spaces)
     UNION ALL SELECT concat_ws(' ', nspname, nspacl) FROM spaces
     UNION ALL SELECT concat_ws(' ', defaclrole::regrole, defaclobjtype, defaclacl) FROM pg_default_acl`,
  )
  return rows.map(({ line }) => line).sort()
}

test('each migration is taken back to what was there before it', async () => {
  const client = new pg.Client({ connectionString: await emptyDatabase('back') })
  await client.connect()
  await step(client, 'up', 0)
  const before: { readonly name: string; readonly schema: readonly string[] }[] = []
  for (const name of ownMigrations) {
    before.push({ name, schema: await describeSchema(client) })
    await step(client, 'up', 1)
  }
  for (const { name, schema } of before.reverse()) {
    await step(client, 'down', 1)
    expect.soft(await describeSchema(client), name).toEqual(schema)
  }
  await client.end()
})

test('who was given the role of the service and owns nothing can start and add, and take away nothing', async () => {
  await superuser.query(`CREATE USER process PASSWORD 'secret'; GRANT cambist_service TO process`)
  const url = new URL(server.url)
  Object.assign(url, { username: 'process', password: 'secret' })
  await migrate(url.href, () => {})
  const db = openTestDatabase(url.href, 'process', 1)
  try {
    await db.query(
      `INSERT INTO signer.signed_transactions (payout_id, attempt, intent, asset, units, tx_hash, bytes, at_ms)
       VALUES ('CB1:1', 1, '{}', 'ETH:ETH', 1, '0x', '00', 1)`,
    )
    for (const role of ['cambist_service', 'none']) {
      await db.query("SELECT set_config('role', $1, false)", [role])
      for (const table of [
        'signer.signed_transactions',
        'journal',
        'events',
        'facts',
        'audit_log',
        'operator_words',
      ])
        await expect(db.query(`DELETE FROM ${table}`)).rejects.toThrow('permission denied')
      await expect(db.query('UPDATE signer.signed_transactions SET at_ms = 0')).rejects.toThrow('permission')
      await expect(db.query('ALTER TABLE signer.signed_transactions DISABLE TRIGGER ALL')).rejects.toThrow(
        'owner',
      )
    }
  } finally {
    await db.close()
  }
})
