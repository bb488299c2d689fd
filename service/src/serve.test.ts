import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import pg from 'pg'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startMigratedPostgres } from '../test/harness/migrated_postgres.ts'
import { draft } from './chains/bitcoin/draft.ts'
import { explainFailure } from './commands/explain_failure.ts'
import { readServeConfig, type ServeConfig } from './config/serve_config.ts'
import { migrate } from './db/migrate.ts'
import { assert } from './domain/assert.ts'
import { defaultPolicy } from './engine/default_policy.ts'
import { serve, signerSettings } from './serve.ts'
import { createKeystore, newMnemonic } from './signer/keystore.ts'
import { socketSigner } from './signer/socket/socket_client.ts'
import { bitcoinIntent, coin, keys } from './signer/testing/fixtures.ts'
import { signBitcoin } from './signer/transactions/bitcoin_transaction.ts'

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

/** Of a process that would ask no chain and no venue anything. */
function configWith(network: Readonly<Record<string, string>>): ServeConfig {
  const key = join(folder, 'account.key')
  writeFileSync(key, '0123456789abcdef'.repeat(4))
  chmodSync(key, 0o644)
  return readServeConfig(
    { ...network, DATABASE_URL: server.url, PORT: '0', CAMBIST_ACCOUNT_KEY_FILE: key },
    'notifier',
  )
}

async function startNotifier(network: Readonly<Record<string, string>>): Promise<string> {
  const config = configWith(network)
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
  await expect(startNotifier({})).rejects.toThrow('DATABASE_URL names the database of a sandbox')
  // What a migration of another process holds for as long as it takes.
  await client.query('BEGIN')
  await client.query('LOCK TABLE addresses, accounts, chain_heads IN ACCESS EXCLUSIVE MODE')
  await expect(startNotifier({})).rejects.toThrow('DATABASE_URL names the database of a sandbox')
  await client.query('ROLLBACK')
  await client.end()
  await startNotifier(regtest)
})

test.each(['0.1', '0.4', '1', '2', '3', '300'])(
  'what is drafted under a cap of %s satoshi per vbyte the signer signs, also where the change was too small to make',
  (cap) => {
    const config = configWith({ ...regtest, CAMBIST_BTC_FEE_CAP_SAT_PER_VB: cap })
    const { BTC } = config.chains
    const { payoutId, payment, change } = bitcoinIntent()
    assert(change !== null, 'there is change')
    const { address, satoshi: units } = payment
    const payout = { payoutId, kind: 'payout', asset: 'BTC:BTC', units, address, tag: null } as const
    const bid = { family: 'bitcoin', milliSatPerVb: BTC.milliSatPerVbMax } as const
    const feeMost = (BTC.milliSatPerVbMax * 150n) / 1_000n
    for (let extra = 0n; extra < feeMost + 700n; extra += 37n + feeMost / 20n) {
      const coins = [coin(1, units + extra)]
      const drafted = draft({ ...BTC, id: 'BTC' }, payout, bid, { model: 'coins', coins, change })
      if (!drafted.ok) continue
      const signed = signBitcoin(drafted.value, keys, signerSettings(config, []).bitcoin)
      expect(signed, `${extra} satoshi more than the payment`).toMatchObject({ ok: true })
    }
  },
)

test('a venue that nobody can read is refused together with those to choose from', async () => {
  const config = configWith({ ...regtest, CAMBIST_PRICE_VENUES: 'kraken,coinbase,bitstamp,bitfinix' })
  await expect(serve(config, pino({ level: 'silent' }))).rejects.toThrow(
    'CAMBIST_PRICE_VENUES: no prices can be read from bitfinix; choose from binance, bitfinex, bitstamp, bybit, coinbase, gate, kraken, kucoin, okx',
  )
})

test('what nobody configures is what the sandbox and tests go by', () => {
  expect({ ...defaultPolicy, ...configWith(regtest).trading }).toEqual(defaultPolicy)
})

const silentSources = ['one', 'two', 'three'].map((name) => ({ name, read: async () => [] }))

function write(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

const hexKey = () => randomBytes(32).toString('hex')
const keystore = { path: join(folder, 'keystore.json'), passphrase: 'a passphrase of many words' }

/** Starts a process with these roles and stops it once it was looked at; answers what it logged. */
async function startRoles(
  roles: string,
  sealFile: string,
  more: Readonly<Record<string, string>> = {},
  look: (origin: string) => Promise<void> = async () => {},
): Promise<string> {
  if (!existsSync(keystore.path)) {
    const kind = { environment: 'sandbox', nowMs: 0, scryptN: 2 ** 10 } as const
    expect(await createKeystore({ ...keystore, ...kind, mnemonic: newMnemonic() })).toMatchObject({
      ok: true,
    })
  }
  const config = readServeConfig(
    {
      ...regtest,
      DATABASE_URL: server.url,
      PORT: '0',
      CAMBIST_BASE_URL: 'http://127.0.0.1',
      CAMBIST_ACCOUNT_KEY_FILE: write('account.key', hexKey()),
      CAMBIST_ORDER_TOKEN_KEY_FILE: write('token.key', hexKey()),
      CAMBIST_ORDER_SEAL_KEY_FILE: sealFile,
      CAMBIST_KEYSTORE_FILE: keystore.path,
      CAMBIST_KEYSTORE_PASSPHRASE_FILE: write('passphrase', keystore.passphrase),
      CAMBIST_SIGNER_SOCKET: join(folder, 'signer.sock'),
      ...more,
    },
    roles,
  )
  let logged = ''
  const log = (line: string) => {
    logged += line
  }
  const service = await serve(config, pino({ level: 'error' }, { write: log }), silentSources)
  try {
    await look(service.origin)
  } finally {
    await service.stop()
  }
  return logged
}

const sealOfDatabase = write('seal.key', hexKey())

test('a process whose seal key is not the one of the database does not start, whatever it seals or checks with it', async () => {
  const another = write('another_seal.key', hexKey())
  await startRoles('signer', sealOfDatabase)
  for (const roles of ['api', 'engine', 'signer', 'api,watcher,engine,notifier,signer']) {
    await expect(startRoles(roles, another), roles).rejects.toThrow(
      'CAMBIST_ORDER_SEAL_KEY_FILE: holds another key',
    )
  }
  await startRoles('api,engine,signer', sealOfDatabase)
  // They have no use for it.
  await startRoles('watcher,notifier', another)
})

test('a process with engine and signer serves the socket that it is given, for engines of other processes', async () => {
  const path = join(folder, 'signer.sock')
  await startRoles('engine,signer', sealOfDatabase, {}, async () => {
    const another = socketSigner({ path, timeoutMs: 60_000 })
    expect(await another.addresses('bitcoin', 'deposit', 0, 1)).toEqual([expect.stringMatching(/^bcrt1/)])
    await another.close()
  })
  expect(existsSync(path)).toBe(false)
  await startRoles('engine,signer', sealOfDatabase, { CAMBIST_SIGNER_SOCKET: '' }, async () => {
    expect(existsSync(path)).toBe(false)
  })
})

test('a signer on a record that does not know what was signed for the database says so', async () => {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query('CREATE DATABASE record')
  const own = new URL(server.url)
  own.pathname = '/record'
  const apart = { SIGNER_DATABASE_URL: own.href }
  expect(await startRoles('signer', sealOfDatabase, apart), 'nothing was signed yet').toBe('')
  await client.query(
    `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms)
     VALUES (0, 'one', 'one:1', 'filler', 'ETH', 'ETH:ETH', 0, 'a', 'broadcast', 1, 1)`,
  )
  await client.query(
    `INSERT INTO attempts (bucket, payout_id, attempt, intent, tx_hash, bytes, drafted_at_ms)
     VALUES (0, 'one:1', 1, '{}', 'hash', 'ff', 1)`,
  )
  expect(await startRoles('signer', sealOfDatabase, apart)).toMatch(
    /"count":1,"payouts":\["one:1"\].*the signer's record does not know/,
  )
  await client.end()
})

test('a signer whose record of its own can only be read is not ready', async () => {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query('CREATE DATABASE read_record')
  const own = new URL(server.url)
  own.pathname = '/read_record'
  const readiness = async (more: Readonly<Record<string, string>>) => {
    let told: unknown = null
    await startRoles('signer', sealOfDatabase, more, async (origin) => {
      told = await (await fetch(`${origin}/readyz`)).json()
    })
    return told
  }
  const apart = { SIGNER_DATABASE_URL: own.href }
  expect(await readiness({})).not.toHaveProperty('checks.signer_record')
  expect(await readiness(apart)).toMatchObject({ ready: true, checks: { signer_record: { ok: true } } })
  await client.query('ALTER DATABASE read_record SET default_transaction_read_only = on')
  await client.end()
  const detail = expect.stringContaining('SIGNER_DATABASE_URL leads to a server')
  expect(await readiness(apart)).toMatchObject({
    ready: false,
    checks: { database: { ok: true }, signer_record: { ok: false, detail } },
  })
})

const onMain = {
  CAMBIST_BTC_NETWORK: 'mainnet',
  CAMBIST_BASE_URL: 'https://exchange.example.org',
  CAMBIST_SPEND_LIMIT_BTC_BTC: '1 / 1 / 1',
}

async function run(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}

/** What a signer tells at the terminal whose record is in a database of its own. */
async function toldOfRecord(url: string, more: Readonly<Record<string, string>> = {}) {
  const starting = startRoles('signer', sealOfDatabase, { SIGNER_DATABASE_URL: url, ...more })
  return explainFailure(
    await starting.then(
      () => null,
      (error: unknown) => error,
    ),
  )
}

test("a signer's own database that does not answer, or is not there, is told as that of SIGNER_DATABASE_URL", async () => {
  const nobody = createServer().listen(0, '127.0.0.1')
  await once(nobody, 'listening')
  const address = nobody.address()
  assert(address !== null && typeof address === 'object', 'it listens on a port')
  nobody.close()
  await once(nobody, 'close')
  const silent = `postgres://127.0.0.1:${address.port}/record`
  const told = /^The database does not answer \(.*ECONNREFUSED.*and is SIGNER_DATABASE_URL right\?$/
  expect(await toldOfRecord(silent)).toMatch(told)
  await run(server.url, 'DELETE FROM sandbox_settings')
  expect(await toldOfRecord(silent, onMain), 'where sandboxes are looked for').toMatch(told)
  expect(await toldOfRecord(new URL('/nowhere', server.url).href)).toBe(
    'The database refuses: database "nowhere" does not exist. Is SIGNER_DATABASE_URL right?',
  )
})

test("a signer's own database of a later release is told as that of SIGNER_DATABASE_URL", async () => {
  await run(server.url, 'CREATE DATABASE later_record')
  const { href } = new URL('/later_record', server.url)
  await migrate(href, () => {})
  await run(href, "INSERT INTO schema_migrations (name, run_on) VALUES ('9999_later', now())")
  expect(await toldOfRecord(href)).toMatch(
    /^SIGNER_DATABASE_URL: The database has the schema of a later release/,
  )
})

test('a user that owns nothing, and may not make what a release brings, is told whose migration it is', async () => {
  await run(
    server.url,
    'CREATE DATABASE owned_record',
    "CREATE USER record_process PASSWORD 'secret'",
    'GRANT cambist_service TO record_process',
  )
  const { href } = new URL('/owned_record', server.url)
  const own = new URL(href)
  Object.assign(own, { username: 'record_process', password: 'secret' })
  const told =
    /The user in SIGNER_DATABASE_URL .*run cambist migrate, with this database as DATABASE_URL, before\./
  expect(await toldOfRecord(own.href), 'no release was there').toMatch(told)
  await migrate(href, () => {})
  expect(await toldOfRecord(own.href)).toBeNull()
  await run(href, 'DELETE FROM schema_migrations WHERE name = (SELECT max(name) FROM schema_migrations)')
  expect(await toldOfRecord(own.href), 'an earlier release was there').toMatch(told)
})

test('a server without the role of the service, on which a dump was restored, is told with what makes it', async () => {
  await run(server.url, 'ALTER ROLE cambist_service RENAME TO left_out')
  try {
    const failure: unknown = await startNotifier(regtest).catch((error: unknown) => error)
    expect(explainFailure(failure)).toMatch(
      /^The database refuses: role "cambist_service" does not exist\..*CREATE ROLE cambist_service NOLOGIN.*restored once more/,
    )
  } finally {
    await run(server.url, 'ALTER ROLE left_out RENAME TO cambist_service')
  }
  await startNotifier(regtest)
})
