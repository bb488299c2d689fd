import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startMigratedPostgres } from '../../test/harness/migrated_postgres.ts'
import { openTestDatabase } from '../../test/harness/test_database.ts'
import { readAuditedHouseOutflows } from './false_books.ts'
import { migrate } from './migrate.ts'

/**
 * What: the audit reads the same books in a database that sorts text as people do, which is what most installations make.
 * How: a database with the order of ICU beside the one with that of bytes that all other tests use.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-audit-'))
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

test.each([
  ['bytes', "LOCALE 'C'"],
  ['people', "LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'"],
])('what is booked of an outflow that lost its block is found in the order of %s', async (name, locale) => {
  await superuser.query(`CREATE DATABASE audit_${name} TEMPLATE template0 ENCODING 'UTF8' ${locale}`)
  const url = new URL(`/audit_${name}`, server.url).href
  await migrate(url, () => {})
  const db = openTestDatabase(url, 'audit', 1)
  const payoutId = 'sweep-ETH-1-1:1'
  await db.query(
    `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms)
     VALUES (0, 'sweep-ETH-1-1', $1, 'sweep', 'ETH', 'ETH:ETH', 5, 'a', 'confirmed', 1, 1)`,
    [payoutId],
  )
  await db.query(
    `INSERT INTO journal VALUES (0, 'house', $1 || ':block_lost:0xab@0', 1, 'ETH:ETH', 'wallet', 'orphaned_payouts', 5, 1),
       (0, 'house', $1 || ':block_found:0xcd@1', 1, 'ETH:ETH', 'orphaned_payouts', 'wallet', 2, 1)`,
    [payoutId],
  )
  const read = await readAuditedHouseOutflows(db, '', 10)
  await db.close()
  expect(read).toMatchObject([{ payoutId, owedAgain: 3n }])
})
