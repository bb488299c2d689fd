import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startMigratedPostgres } from '../../test/harness/migrated_postgres.ts'
import { createAccount } from '../accounts/accounts.ts'
import { createKey } from '../accounts/keys.ts'
import { createSecretBox } from '../accounts/secret_box.ts'
import { sandboxKey } from '../config/sandbox_secrets.ts'
import { operator } from '../db/audit_log.ts'
import { findMissing, migrate } from '../db/migrate.ts'
import { createKeystore, newMnemonic } from '../signer/keystore.ts'
import { openAccounts, openAddresses, openOrders } from './places.ts'

const folder = mkdtempSync(join(tmpdir(), 'cambist-places-'))
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

async function tell(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(sql).finally(() => client.end())
}

test('a command refuses a database of another schema, says what to do, and changes nothing in it', async () => {
  await tell(server.url, 'CREATE DATABASE another')
  const url = new URL('/another', server.url).href
  const open = () => openOrders({ env: { DATABASE_URL: url }, isSandbox: false })
  const all = await findMissing(url)
  await expect(open()).rejects.toThrow(
    `The database does not have the schema of this release (missing: ${all.join(', ')}). Stop what still runs of an earlier one; then start this one, or run: cambist migrate`,
  )
  expect(await findMissing(url)).toEqual(all)
  await migrate(url, () => {})
  const newest = all.at(-1)
  await tell(url, `DELETE FROM schema_migrations WHERE name = '${newest}'`)
  await expect(open()).rejects.toThrow(`(missing: ${newest})`)
  expect(await findMissing(url)).toEqual([newest])
  await tell(url, `INSERT INTO schema_migrations (name, run_on) VALUES ('${newest}', now())`)
  const { db, close } = await open()
  expect(await db.query('SELECT count(*) AS orders FROM orders')).toEqual([{ orders: 0 }])
  await close()
  await tell(url, `INSERT INTO schema_migrations (name, run_on) VALUES ('9999_later', now())`)
  await expect(open()).rejects.toThrow('of a later release (it also has: 9999_later)')
})

test('whatever options its URL has, a process works as the role that cannot rewrite the books', async () => {
  const url = new URL(server.url)
  url.searchParams.set('options', '-c geqo=off -c role=none')
  const { db, close } = await openOrders({ env: { DATABASE_URL: url.href }, isSandbox: false })
  const [row] = await db.query(`SELECT current_user AS role, current_setting('geqo') AS geqo`)
  await close()
  expect(row).toEqual({ role: 'cambist_service', geqo: 'off' })
})

test('what reads all orders there ever were is not cut off after as long as a step of the service may take', async () => {
  const { db, close } = await openOrders({ env: { DATABASE_URL: server.url }, isSandbox: false })
  const [row] = await db.query(`SELECT current_setting('statement_timeout') AS most`)
  await close()
  expect(row).toEqual({ most: '1h' })
})

test('what a command makes in a sandbox, the sandbox opens', async () => {
  const place = { env: { CAMBIST_DATA_DIR: folder }, isSandbox: true }
  await expect(openAccounts(place)).rejects.toThrow('No sandbox runs in')
  const file = join(folder, 'sandbox.json')
  writeFileSync(file, JSON.stringify({ database_url: server.url }))
  const { place: opened, close } = await openAccounts(place)
  await close()
  rmSync(file)
  const theirs = createSecretBox([sandboxKey('account')])
  expect(theirs.open(opened.box.seal('secret', 'ck_one'), 'ck_one')).toBe('secret')
})

test('a command whose account key is another than that of the secrets in the database says so', async () => {
  const file = join(folder, 'account.key')
  const [theirs, own] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')]
  const open = (...keys: string[]) => {
    writeFileSync(file, keys.join('\n'))
    const env = { DATABASE_URL: server.url, CAMBIST_ACCOUNT_KEY_FILE: file }
    return openAccounts({ env, isSandbox: false })
  }
  const told = vi.spyOn(console, 'error').mockImplementation(() => {})
  const { place, close } = await open(theirs)
  const account = await createAccount(place, operator, { name: 'Shop', email: null })
  const accountId = account.ok ? account.value.accountId : ''
  await createKey(place, operator, { accountId, label: '', scopes: ['read'], ipAllow: [] })
  await close()
  await (await open(own, theirs)).close()
  expect(told.mock.calls).toEqual([])
  await (await open(own)).close()
  expect(told.mock.calls).toEqual([
    [expect.stringMatching(/^Warning: 1 secret .* account key [0-9a-f]{16}, .*CAMBIST_ACCOUNT_KEY_FILE/)],
  ])
  told.mockRestore()
})

test('addresses are derived for the chains that are configured, from the keystore of their kind of network', async () => {
  const at = (name: string) => join(folder, name)
  writeFileSync(at('passphrase'), 'correct horse battery staple')
  await createKeystore({
    path: at('keystore.json'),
    passphrase: 'correct horse battery staple',
    mnemonic: newMnemonic(),
    environment: 'sandbox',
    nowMs: 0,
    scryptN: 2 ** 10,
  })
  await expect(openAddresses({ DATABASE_URL: server.url })).rejects.toThrow(
    /CAMBIST_KEYSTORE_FILE: is needed by this command[\s\S]*this command needs the passphrase/,
  )
  const env = {
    DATABASE_URL: server.url,
    CAMBIST_KEYSTORE_FILE: at('keystore.json'),
    CAMBIST_KEYSTORE_PASSPHRASE_FILE: at('passphrase'),
    CAMBIST_BTC_URL: 'http://127.0.0.1:1',
    CAMBIST_XRP_URL: 'http://127.0.0.1:1',
  }
  await expect(openAddresses(env)).rejects.toThrow('holds sandbox keys, and this is production')
  const test = { CAMBIST_BTC_NETWORK: 'regtest', CAMBIST_XRP_NETWORK_ID: '1' }
  const { families, signer, close } = await openAddresses({ ...env, ...test })
  await close()
  expect(families).toEqual(['bitcoin', 'xrp'])
  expect(await signer.addresses('bitcoin', 'deposit', 7, 2)).toEqual([
    expect.stringMatching(/^bcrt1q/),
    expect.stringMatching(/^bcrt1q/),
  ])
  expect(await signer.addresses('xrp', 'deposit', 1, 1)).toEqual([expect.stringMatching(/^T/)])
})
