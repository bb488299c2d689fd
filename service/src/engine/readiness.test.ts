import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Sql } from '../db/database.ts'
import { noteDifferences } from '../db/keystore_differences.ts'
import { within } from '../db/within.ts'
import { SECOND_MS } from '../domain/time.ts'
import { openReadiness, readReadiness } from './readiness.ts'
import { type BooksStage, lookAt, openBooksStage } from './testing/books_stage.ts'
import { watchedDatabase } from './testing/watched_database.ts'

/**
 * What: readiness names every part the process stands on, and is refused only when nothing could be served.
 * How: a real PostgreSQL whose chain heads and migrations the test bends.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('readiness')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

function watched() {
  const { db, asked, cut } = watchedDatabase(stage.db)
  return { world: { ...stage.world, db }, asked, cut }
}

test('ready: each check is named, and only what leaves nothing to serve makes it unready', async () => {
  const { world, cut } = watched()
  const all = [
    'chain_BNB',
    'chain_BTC',
    'chain_EOS',
    'chain_ETH',
    'chain_SOL',
    'chain_TRX',
    'chain_XLM',
    'chain_XRP',
    'database',
    'keystore',
    'migrations',
    'prices',
  ]
  const good = await readReadiness(world)
  expect(good.ready).toBe(true)
  expect(Object.keys(good.checks).sort()).toEqual(all)
  expect(Object.values(good.checks).every(({ ok }) => ok)).toBe(true)

  stage.advance(world.policy.chainTroubleMs)
  await lookAt(stage, 'ETH', 101)
  const oneChain = await readReadiness(world)
  expect(oneChain).toMatchObject({
    ready: true,
    checks: {
      chain_ETH: { ok: true },
      chain_BTC: { ok: false, detail: 'the last whole look was 60 s ago' },
    },
  })
  stage.advance(world.policy.chainTroubleMs)
  expect((await readReadiness(world)).ready, 'no chain is left').toBe(false)
  await lookAt(stage, 'ETH', 101)

  const noBitcoin = { ...world, prices: { usd: (code: string) => (code === 'BTC' ? null : 1n) } }
  expect(await readReadiness(noBitcoin)).toMatchObject({
    ready: true,
    checks: { prices: { ok: false, detail: 'no reliable price for BTC' } },
  })
  const why = (code: string) => `no quorum: kraken ${code} silent`
  expect(await readReadiness({ ...world, prices: { ...noBitcoin.prices, why } })).toMatchObject({
    checks: { prices: { detail: 'no reliable price for BTC (no quorum: kraken BTC silent)' } },
  })
  const noPrices = { ...world, prices: { usd: () => null } }
  expect((await readReadiness(noPrices)).ready).toBe(false)
  expect(await readReadiness(noPrices, { quotes: false })).toMatchObject({ ready: true })

  cut()
  expect(await readReadiness(world)).toMatchObject({
    ready: false,
    checks: { database: { ok: false, detail: 'Error: the database is away' } },
  })
})

test('whoever asks, and however often, the database is asked four things a second', async () => {
  const { world, asked } = watched()
  const readiness = openReadiness(world, { quotes: true })
  const all = await Promise.all(Array.from({ length: 20 }, readiness))
  expect(all.every(({ ready }) => ready)).toBe(true)
  expect(asked()).toBe(4)
  stage.advance(SECOND_MS - 1)
  await readiness()
  expect(asked()).toBe(4)
  stage.advance(1)
  await readiness()
  expect(asked()).toBe(8)
})

test('a database that has lost a migration since the start makes it unready', async () => {
  await stage.corrupt(`DELETE FROM schema_migrations WHERE name = '0004_reconciliation'`)
  const { ready, checks } = await readReadiness(stage.world)
  await stage.corrupt(`INSERT INTO schema_migrations (name, run_on) VALUES ('0004_reconciliation', now())`)
  expect(ready).toBe(false)
  expect(checks.migrations?.detail).toBe(
    'this process started on another schema (the database now lacks 0004_reconciliation); start it anew',
  )
})

test('a process of an earlier release is not ready once a later one has changed the schema beneath it', async () => {
  await stage.corrupt(`INSERT INTO schema_migrations (name, run_on) VALUES ('9999_later', now())`)
  const { ready, checks } = await readReadiness(stage.world)
  await stage.corrupt(`DELETE FROM schema_migrations WHERE name = '9999_later'`)
  expect(ready).toBe(false)
  expect(checks.migrations?.detail).toBe(
    'a later release has changed the schema (it also has: 9999_later); stop this process and start that release',
  )
  expect((await readReadiness(stage.world)).ready).toBe(true)
})

test('a role that may rewrite what is only added to is not ready, and what to take from it is named', async () => {
  const told = async () => {
    const { ready, checks } = await readReadiness(stage.world, { quotes: false, record: stage.db })
    return { ready, detail: checks.database?.detail, record: checks.signer_record?.ok }
  }
  const takenAs = async (grant: string, revoke: string) => {
    await stage.corrupt(`GRANT ${grant}`)
    const granted = await told()
    await stage.corrupt(`REVOKE ${revoke}`)
    expect(await told(), grant).toEqual({ ready: true, detail: undefined, record: true })
    expect(granted, grant).toMatchObject({ ready: false, record: false })
    return granted.detail
  }
  const all = 'UPDATE, DELETE, TRUNCATE'
  const revokes: readonly (readonly [grant: string, table: string, revoked: string])[] = [
    ['UPDATE', 'journal', all],
    ['DELETE', 'events', all],
    ['TRUNCATE', 'facts', all],
    ['UPDATE', 'audit_log', all],
    ['DELETE', 'operator_words', all],
    ['DELETE', 'order_seal_key', all],
    ['DELETE', 'verdicts', all],
    ['DELETE', 'audit_heads', 'DELETE, TRUNCATE'],
    ['INSERT', 'ledger_accounts', `INSERT, ${all}`],
    ['DELETE', 'signer.signed_transactions', all],
  ]
  for (const [grant, table, revoked] of revokes) {
    const revoke = `${revoked} ON ${table} FROM cambist_service, PUBLIC`
    expect(await takenAs(`${grant} ON ${table} TO cambist_service`, revoke)).toBe(
      `cambist_service may rewrite what is only ever added to, as after a GRANT on all tables; as the owner of the tables in the database of DATABASE_URL: REVOKE ${revoke}`,
    )
  }
  expect(await takenAs('UPDATE ON facts TO PUBLIC', `${all} ON facts FROM cambist_service, PUBLIC`)).toMatch(
    / REVOKE UPDATE, DELETE, TRUNCATE ON facts FROM /,
  )
  await stage.corrupt('GRANT ALL ON ALL TABLES IN SCHEMA public, signer TO cambist_service')
  const statements = (await told()).detail?.match(/REVOKE .*/)?.[0] ?? ''
  expect(statements.split('; ')).toHaveLength(revokes.length)
  await stage.corrupt(statements)
  expect(await told(), 'what it says to do is enough').toEqual({
    ready: true,
    detail: undefined,
    record: true,
  })
})

test('whoever is not the role that may not rewrite the books is not ready', async () => {
  const { ready, checks } = await readReadiness({ ...stage.world, db: { ...stage.db, ...stage.asOwner } })
  expect(ready).toBe(false)
  expect(checks.database?.detail).toMatch(
    /^the service works as \S+, who .*, instead of as cambist_service: .*PgBouncer/,
  )
})

test('the record of a signer is looked at as well, where it is in a database of its own', async () => {
  expect((await readReadiness(stage.world)).checks).not.toHaveProperty('signer_record')
  const withRecord = async (record: Sql) => {
    const { ready, checks } = await readReadiness(stage.world, { quotes: false, record })
    return { ready, record: checks.signer_record, database: checks.database }
  }
  const [good, database] = [{ ok: true }, { ok: true }]
  expect(await withRecord(stage.db)).toEqual({ ready: true, record: good, database })
  const { world, cut } = watched()
  cut()
  const away = { ok: false, detail: 'Error: the database is away' }
  expect(await withRecord(world.db)).toEqual({ ready: false, record: away, database })
  const asOwner = await withRecord(stage.asOwner)
  expect(asOwner).toMatchObject({ ready: false, record: { ok: false }, database })
  expect(asOwner.record?.detail).toMatch(/^the service works as \S+, .* the database of SIGNER_DATABASE_URL /)
})

test('whoever has reached a server that only reads is not ready', async () => {
  const { ready, checks } = await stage.db.transaction(async (tx) => {
    await tx.query('SET TRANSACTION READ ONLY')
    return readReadiness({ ...stage.world, db: within(tx) })
  })
  expect(ready).toBe(false)
  expect(checks.database?.detail).toMatch(/^the database is read only: /)
})

test.each([
  ['off', false],
  ['local', false],
  ['remote_write', false],
  ['remote_apply', true],
])('whose commits are answered with synchronous_commit = %s is ready: %s', async (setting, isReady) => {
  const { ready, checks } = await stage.db.transaction(async (tx) => {
    await tx.query(`SET LOCAL synchronous_commit = ${setting}`)
    return readReadiness({ ...stage.world, db: within(tx) })
  })
  expect(ready).toBe(isReady)
  expect(checks.database?.detail ?? '').toMatch(
    isReady ? /^$/ : /^a commit need not be on disk .* ALTER ROLE \S+ SET synchronous_commit = on$/,
  )
})

test('another keystore than that of the database makes every process unready, and both addresses are named', async () => {
  const difference = { purpose: 'reserve', index: 0, stored: 'ours', derived: 'another' } as const
  const noted = { holder: 'an engine', wallMs: stage.world.clock.wallMs(), keptMs: 0 }
  const keystoreWith = async (families: readonly ('evm' | 'bitcoin' | 'xrp')[]) => {
    await noteDifferences(
      stage.db,
      noted,
      families.map((family) => ({ family, ...difference })),
    )
    const { ready, checks } = await readReadiness(stage.world, { quotes: false })
    return { ready, keystore: checks.keystore }
  }
  expect(await keystoreWith(['evm', 'bitcoin'])).toEqual({
    ready: false,
    keystore: {
      ok: false,
      detail:
        "the signer derives another as evm reserve 0, which is ours in this database: it has another keystore (CAMBIST_KEYSTORE_FILE), or this is another's database (DATABASE_URL)",
    },
  })
  expect(await keystoreWith(['bitcoin', 'xrp']), 'the networks may be others').toEqual({
    ready: false,
    keystore: {
      ok: false,
      detail:
        'the signer derives another as bitcoin reserve 0, which is ours in this database: it has another CAMBIST_BTC_NETWORK and CAMBIST_XRP_NETWORK_ID than this database was filled with, or another keystore (CAMBIST_KEYSTORE_FILE)',
    },
  })
  expect(await keystoreWith([])).toEqual({ ready: true, keystore: { ok: true } })
})

test('a look that is still to come, because the clock was set back since, is no look of now', async () => {
  stage.advance(-stage.world.policy.chainTroubleMs)
  const { ready, checks } = await readReadiness(stage.world)
  stage.advance(stage.world.policy.chainTroubleMs)
  expect(ready).toBe(false)
  expect(checks.chain_ETH).toMatchObject({ ok: false })
})
