import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startMigratedPostgres } from '../../test/harness/migrated_postgres.ts'
import { readMarker, readUse } from './database_use.ts'

/**
 * What: whose a database is is known without a schema, and without waiting for a migration that holds the large tables.
 * How: a real PostgreSQL; a transaction of the test holds what such a migration holds.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-use-'))
const dataDir = join(folder, 'postgres')
let server: Postgres
let client: pg.Client

beforeAll(async () => {
  server = await startMigratedPostgres(dataDir)
  client = new pg.Client({ connectionString: server.url })
  await client.connect()
})
afterAll(async () => {
  await client?.end()
  await server?.stop()
  removePostgres(dataDir)
  rmSync(folder, { recursive: true, force: true })
})

test('a database without our schema is nobody’s', async () => {
  await client.query('CREATE DATABASE bare')
  const url = new URL('/bare', server.url).href
  expect([await readMarker(url), await readUse(url)]).toEqual([null, { isUsed: false, marker: null }])
})

test('the marker is told while another process migrates the large tables', async () => {
  expect(await readMarker(server.url)).toBeNull()
  await client.query(`INSERT INTO sandbox_settings (name, value) VALUES ('marker', '"one"')`)
  await client.query('BEGIN')
  await client.query('LOCK TABLE addresses, accounts, chain_heads IN ACCESS EXCLUSIVE MODE')
  expect(await readMarker(server.url)).toBe('one')
  await client.query('ROLLBACK')
  expect(await readUse(server.url)).toEqual({ isUsed: false, marker: 'one' })
})
