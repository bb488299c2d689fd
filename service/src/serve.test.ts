import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import pg from 'pg'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startMigratedPostgres } from '../test/harness/migrated_postgres.ts'
import { readServeConfig } from './config/serve_config.ts'
import { serve } from './serve.ts'

const folder = mkdtempSync(join(tmpdir(), 'cambist-serve-'))
const dataDir = join(folder, 'postgres')
let server: Postgres

beforeAll(async () => {
  server = await startMigratedPostgres(dataDir)
})
afterAll(async () => {
  await server?.stop()
  removePostgres(dataDir)
  rmSync(folder, { recursive: true, force: true })
})

/** A process that would ask no chain and no venue anything. */
async function startNotifier(network: Readonly<Record<string, string>>): Promise<string> {
  const key = join(folder, 'account.key')
  writeFileSync(key, '0123456789abcdef'.repeat(4))
  chmodSync(key, 0o644)
  const config = readServeConfig(
    { ...network, DATABASE_URL: server.url, PORT: '0', CAMBIST_ACCOUNT_KEY_FILE: key },
    'notifier',
  )
  let logged = ''
  const write = (line: string) => {
    logged += line
  }
  const service = await serve(config, pino({ level: 'warn' }, { write }))
  await service.stop()
  return logged
}

const regtest = { CAMBIST_BTC_URL: 'http://127.0.0.1:9', CAMBIST_BTC_NETWORK: 'regtest' }

test('a secret that everybody may read is warned of, where money is real', async () => {
  expect(await startNotifier({})).toMatch(/"file":"CAMBIST_ACCOUNT_KEY_FILE".*chmod 600/)
  expect(await startNotifier(regtest)).not.toContain('chmod')
})

test('where money is real no process works on the database of a sandbox', async () => {
  await startNotifier({})
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query(`INSERT INTO sandbox_settings (name, value) VALUES ('marker', '"one"')`)
  await client.end()
  await expect(startNotifier({})).rejects.toThrow('DATABASE_URL names the database of a sandbox')
  await startNotifier(regtest)
})
