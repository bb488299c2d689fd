import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import { Command } from 'commander'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startMigratedPostgres } from '../../test/harness/migrated_postgres.ts'
import { openTestDatabase } from '../../test/harness/test_database.ts'
import { CommandRefused } from '../command_refused.ts'
import { registerKeysCommands } from '../commands/keys.ts'
import { operator, readAuditRows } from '../db/audit_log.ts'
import type { Database } from '../db/database.ts'
import { pagesTouched } from '../engine/testing/pages_touched.ts'
import { createAccount, findAccount } from './accounts.ts'
import { openApiKeys } from './api_keys.ts'
import { readAudit } from './audit_pages.ts'
import { type EmailPlace, setEmail } from './email.ts'
import { parseEmail } from './email_address.ts'
import {
  countLiveKeys,
  createKey,
  ensureAccount,
  type KeysPlace,
  listKeys,
  revokeKey,
  rotateKey,
} from './keys.ts'
import { createSecretBox } from './secret_box.ts'
import { verifyAudit } from './verify_audit.ts'

/**
 * What: keys are created, found, rotated and revoked, and a change holds within two seconds.
 * How: a real PostgreSQL with the service's own migrations; only the clock is ours.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-accounts-'))
const dataDir = join(folder, 'postgres')
let server: Postgres
let db: Database
let superuser: pg.Client
let place: KeysPlace & EmailPlace
let now = 1_700_000_000_000

beforeAll(async () => {
  server = await startMigratedPostgres(dataDir)
  db = openTestDatabase(server.url, 'accounts.test')
  superuser = new pg.Client({ connectionString: server.url })
  await superuser.connect()
  place = {
    db,
    box: createSecretBox([createSecretKey(randomBytes(32))]),
    wallMs: () => now,
    nowMs: () => now,
  }
})

afterAll(async () => {
  await superuser?.end()
  await db?.close()
  await server?.stop()
  removePostgres(dataDir)
  rmSync(folder, { recursive: true, force: true })
})

async function makeKey(ipAllow: string[] = [], box = place.box) {
  const account = await createAccount(place, operator, { name: 'My shop', email: null })
  if (!account.ok) throw new Error(account.rejection.message)
  const { accountId } = account.value
  const told = await createKey({ ...place, box }, operator, {
    accountId,
    label: 'test',
    scopes: ['trade', 'read'],
    ipAllow,
  })
  if (!told.ok) throw new Error(told.rejection.message)
  return { accountId, ...told.value }
}

async function rotated(keyId: string, overlapMs: number, replacesNewest = false) {
  const outcome = await rotateKey(place, operator, { keyId, accountId: null }, { overlapMs, replacesNewest })
  if (!outcome.ok) throw new Error(outcome.rejection.message)
  return outcome.value
}

/** Counts the questions that reach the database. */
function openStore(box = place.box) {
  const asked: string[] = []
  const failures: unknown[] = []
  const store = openApiKeys({
    db: {
      query: (text, values) => {
        asked.push(text)
        return db.query(text, values)
      },
    },
    box,
    wallMs: () => now,
    onTouchFailed: (error) => failures.push(error),
  })
  const reads = () => asked.filter((text) => text.startsWith('SELECT')).length
  const touches = () => asked.filter((text) => text.startsWith('UPDATE')).length
  return { store, reads, touches, failures }
}

const sign = (key: KeyObject | string) => createHmac('sha256', key).update('message').digest('hex')

test('a created key is found with its scopes, its IP list and a secret that signs', async () => {
  const { keyId, secret, accountId } = await makeKey(['203.0.113.0/24', '2001:DB8::1', '203.0.113.0/24'])
  expect(secret).toMatch(/^[0-9a-f]{64}$/)
  const key = await openStore().store.find(keyId)
  expect(key).toMatchObject({
    keyId,
    accountId,
    scopes: ['read', 'trade'],
    ipAllow: ['203.0.113.0/24', '2001:db8::1'],
  })
  expect(key?.secrets.map(sign)).toEqual([sign(secret)])
})

test('the database does not hold the secret in the clear, and a row moved to another key does not open', async () => {
  const [mine, other] = [await makeKey(), await makeKey()]
  const [row] = await db.query<{ sealed: Buffer }>('SELECT sealed FROM api_key_secrets WHERE key_id = $1', [
    mine.keyId,
  ])
  expect(row?.sealed.includes(mine.secret)).toBe(false)
  expect(row?.sealed.includes(Buffer.from(mine.secret, 'hex'))).toBe(false)
  await db.query('UPDATE api_key_secrets SET sealed = $2 WHERE key_id = $1', [other.keyId, row?.sealed])
  expect(await openStore().store.find(other.keyId)).toMatchObject({
    secrets: [],
    unopened: expect.any(Error),
  })
})

test('a new secret is good also while the one before it does not open any more', async () => {
  const lost = createSecretBox([createSecretKey(randomBytes(32))])
  const { keyId } = await makeKey([], lost)
  const found = async () => {
    const key = await openStore().store.find(keyId)
    return [key?.secrets.map(sign), key?.unopened?.message]
  }
  const why = expect.stringContaining('put it back into CAMBIST_ACCOUNT_KEY_FILE')
  expect(await found()).toEqual([[], why])
  const { secret } = await rotated(keyId, 60_000)
  expect(await found()).toEqual([[sign(secret)], why])
  now += 60_000
  expect(await found()).toEqual([[sign(secret)], undefined])
})

test('malformed keys are refused with the reason', async () => {
  const { accountId } = await makeKey()
  const wanted = { accountId, label: '', scopes: ['read'], ipAllow: [] as string[] }
  const refusals = [
    { ...wanted, scopes: [] },
    { ...wanted, scopes: ['read', 'admin'] },
    { ...wanted, ipAllow: ['10.0.0.1/8'] },
    { ...wanted, ipAllow: Array.from({ length: 51 }, (_, index) => `10.0.0.${index}`) },
    { ...wanted, label: 'x'.repeat(101) },
    { ...wanted, accountId: 'acc_0000000000000000' },
  ].map((each) => createKey(place, operator, each))
  const codes = (await Promise.all(refusals)).map((outcome) =>
    outcome.ok ? 'accepted' : outcome.rejection.code,
  )
  expect(codes).toEqual([
    'key_malformed',
    'key_malformed',
    'ip_range_malformed',
    'key_malformed',
    'key_malformed',
    'account_not_found',
  ])
  expect((await createAccount(place, operator, { name: ' ', email: null })).ok).toBe(false)
})

test('while rotating, two secrets live; after the overlap only the new one does', async () => {
  const { keyId, secret } = await makeKey()
  const { store } = openStore()
  const next = await rotated(keyId, 60_000)
  expect((await store.find(keyId))?.secrets.map(sign)).toEqual([sign(next.secret), sign(secret)])
  now += 59_999
  expect((await store.find(keyId))?.secrets).toHaveLength(2)
  now += 1
  expect((await store.find(keyId))?.secrets.map(sign)).toEqual([sign(next.secret)])
})

test('a third live secret is refused; a lost newest one can be replaced', async () => {
  const { keyId, secret } = await makeKey()
  const lost = await rotated(keyId, 3_600_000)
  const third = await rotateKey(
    place,
    operator,
    { keyId, accountId: null },
    { overlapMs: 0, replacesNewest: false },
  )
  expect(third).toMatchObject({ ok: false, rejection: { code: 'rotation_under_way' } })
  const replacement = await rotated(keyId, 0, true)
  expect(replacement.oldSecretUntilMs).toBe(lost.oldSecretUntilMs)
  expect((await openStore().store.find(keyId))?.secrets.map(sign)).toEqual([
    sign(replacement.secret),
    sign(secret),
  ])
})

test('a rotation with no overlap ends the old secret at once, and slots are used again', async () => {
  const { keyId } = await makeKey()
  for (let round = 0; round < 4; round += 1) {
    const { secret } = await rotated(keyId, 0)
    expect((await openStore().store.find(keyId))?.secrets.map(sign)).toEqual([sign(secret)])
  }
})

test('an old secret lives on for a week at most', async () => {
  const { keyId } = await makeKey()
  const weekMs = 7 * 24 * 3_600_000
  for (const overlapMs of [weekMs + 1, -1, Number.NaN]) {
    const options = { overlapMs, replacesNewest: false }
    expect(await rotateKey(place, operator, { keyId, accountId: null }, options)).toMatchObject({
      ok: false,
      rejection: { code: 'overlap_too_long' },
    })
  }
  expect((await rotated(keyId, weekMs)).oldSecretUntilMs).toBe(now + weekMs)
})

test('of rotations at the same moment one wins', async () => {
  const { keyId } = await makeKey()
  const options = { overlapMs: 60_000, replacesNewest: false }
  const outcomes = await Promise.all(
    [1, 2, 3, 4].map(() => rotateKey(place, operator, { keyId, accountId: null }, options)),
  )
  expect(outcomes.filter((outcome) => outcome.ok)).toHaveLength(1)
})

test('a revoked key is gone within two seconds, for good, and its secrets are erased', async () => {
  const { keyId } = await makeKey()
  const { store } = openStore()
  expect(await store.find(keyId)).not.toBeNull()
  expect(await revokeKey(place, operator, { keyId, accountId: null })).toEqual({ ok: true, value: null })
  now += 2_000
  expect(await store.find(keyId)).toBeNull()
  expect(await db.query('SELECT 1 FROM api_key_secrets WHERE key_id = $1', [keyId])).toEqual([])
  expect(await revokeKey(place, operator, { keyId, accountId: null })).toEqual({ ok: true, value: null })
  expect(
    await rotateKey(place, operator, { keyId, accountId: null }, { overlapMs: 0, replacesNewest: false }),
  ).toMatchObject({
    ok: false,
    rejection: { code: 'key_revoked' },
  })
  expect((await revokeKey(place, operator, { keyId: 'ck_nobodynobody', accountId: null })).ok).toBe(false)
})

test('answers are remembered for two seconds, also that there is no such key', async () => {
  const { keyId } = await makeKey()
  const { store, reads } = openStore()
  const first = await store.find(keyId)
  now += 1_999
  expect(await store.find(keyId)).toBe(first)
  expect(reads()).toBe(1)
  now += 1
  await store.find(keyId)
  expect(reads()).toBe(2)
  expect(await store.find('ck_nobodynobody')).toBeNull()
  expect(await store.find('ck_nobodynobody')).toBeNull()
  expect(reads()).toBe(3)
  expect(await store.find("ck_'; DROP TABLE")).toBeNull()
  expect(reads()).toBe(3)
})

test('a clock that was set back does not prolong what is remembered', async () => {
  const { keyId } = await makeKey()
  const { store } = openStore()
  await store.find(keyId)
  await revokeKey(place, operator, { keyId, accountId: null })
  now -= 3_600_000
  expect(await store.find(keyId)).toBeNull()
  now += 3_600_000
})

test('a revoked key does not come back when the clock is set back to when it was good', async () => {
  const { keyId } = await makeKey()
  const { store } = openStore()
  await store.find(keyId)
  await revokeKey(place, operator, { keyId, accountId: null })
  now += 2_000
  expect(await store.find(keyId)).toBeNull()
  now -= 1_000
  expect(await store.find(keyId)).toBeNull()
  now += 1_000
})

test('many who ask at once make one question', async () => {
  const { keyId } = await makeKey()
  const { store, reads } = openStore()
  const found = await Promise.all(Array.from({ length: 50 }, () => store.find(keyId)))
  expect(new Set(found).size).toBe(1)
  expect(reads()).toBe(1)
})

test('made-up key ids do not push out real keys, and do not fill the memory', async () => {
  const { keyId } = await makeKey()
  let reads = 0
  const store = openApiKeys({
    db: {
      query: (text, values) => {
        reads += 1
        return String(values?.[0]).startsWith('ck_made') ? Promise.resolve([]) : db.query(text, values)
      },
    },
    box: place.box,
    wallMs: () => now,
    onTouchFailed: () => {},
  })
  await store.find(keyId)
  await store.settle()
  const before = reads
  for (let index = 0; index < 10_001; index += 1) await store.find(`ck_made${String(index).padStart(8, '0')}`)
  await store.find(keyId)
  expect(reads - before).toBe(10_001)
  // The first made-up one had to make room; the last is still remembered.
  await store.find('ck_made00010000')
  expect(reads - before).toBe(10_001)
  await store.find('ck_made00000000')
  expect(reads - before).toBe(10_002)
})

test('to be looked for is no use of a key', async () => {
  const { keyId, accountId } = await makeKey()
  const { store, touches } = openStore()
  await store.find(keyId)
  await store.settle()
  expect(touches()).toBe(0)
  expect(await listKeys(place, accountId)).toMatchObject([{ keyId, lastUsedAtMs: null }])
})

test('the last use is written at most once a minute', async () => {
  const { keyId, accountId } = await makeKey()
  const { store, touches, failures } = openStore()
  const startMs = now
  for (let second = 0; second < 120; second += 3) {
    now = startMs + second * 1_000
    const key = await store.find(keyId)
    if (key === null) throw new Error('the key is there')
    for (let request = 0; request < 3; request += 1) store.noteUse(key)
    await store.settle()
  }
  expect(touches()).toBe(2)
  expect(failures).toEqual([])
  expect(await listKeys(place, accountId)).toMatchObject([{ keyId, lastUsedAtMs: startMs + 60_000 }])
})

test('a database that fails is an error to the caller, and is asked again', async () => {
  const { keyId } = await makeKey()
  let isBroken = true
  const store = openApiKeys({
    db: {
      query: (text, values) =>
        isBroken ? Promise.reject(new Error('connection lost')) : db.query(text, values),
    },
    box: place.box,
    wallMs: () => now,
    onTouchFailed: () => {},
  })
  await expect(store.find(keyId)).rejects.toThrow('connection lost')
  isBroken = false
  expect(await store.find(keyId)).not.toBeNull()
})

test('the sandbox account is the same after every start, even when its key was revoked', async () => {
  const key = { keyId: 'ck_sandboxsandbox', secret: 'a'.repeat(64) }
  const account = { accountId: 'acc_sandboxsandbox', name: 'Sandbox' }
  await ensureAccount(place, account, key)
  await ensureAccount(place, account, key)
  await rotated(key.keyId, 60_000)
  await revokeKey(place, operator, { keyId: key.keyId, accountId: null })
  await ensureAccount(place, account, key)
  expect((await openStore().store.find(key.keyId))?.secrets.map(sign)).toEqual([sign(key.secret)])
  expect(await listKeys(place, account.accountId)).toHaveLength(1)
  // The address that it was given since is its own.
  await ensureAccount(place, { ...account, email: 'sandbox@example.com' }, key)
  await setEmail(place, operator, account.accountId, 'mine@example.com')
  await ensureAccount(place, { ...account, email: 'sandbox@example.com' }, key)
  expect((await findAccount(place, account.accountId))?.email).toBe('mine@example.com')
})

test('the list has every live key of an account, and of its revoked ones the 100 that were revoked last', async () => {
  const { keyId, accountId } = await makeKey()
  const other = await makeKey()
  // All are younger than the live one; those that were made last were revoked first.
  await db.query(
    `INSERT INTO api_keys (key_id, account_id, label, scopes, ip_allow, created_at_ms, revoked_at_ms)
     SELECT 'ck_revoked' || lpad(n::text, 4, '0'), $1, '', '{read}', '{}', $2::bigint + n, $2::bigint + 1000 - n
     FROM generate_series(1, 105) AS n`,
    [accountId, now],
  )
  const listed = (await listKeys(place, accountId)).map((key) => key.keyId)
  const revoked = Array.from({ length: 100 }, (_, n) => `ck_revoked${String(100 - n).padStart(4, '0')}`)
  expect(listed).toEqual([...revoked, keyId])
  const all = (await listKeys(place, null)).map((key) => key.keyId)
  expect(all).toEqual(expect.arrayContaining([keyId, other.keyId]))
})

test('keys that were revoked cost nobody who lists keys or makes one', async () => {
  const pagesOf = async () => {
    const { accountId } = account
    const listed = await pagesTouched(db, async (sql) => {
      await listKeys({ ...place, db: { ...db, query: sql.query } }, accountId)
    })
    const counted = await pagesTouched(db, (sql) => countLiveKeys(sql, accountId))
    return { listed, counted }
  }
  const account = await makeKey()
  const revoke = async (from: number, to: number) => {
    await db.query(
      `INSERT INTO api_keys (key_id, account_id, label, scopes, ip_allow, created_at_ms, revoked_at_ms)
       SELECT 'ck_ended' || lpad(n::text, 6, '0'), $1, '', '{read}', '{}', $2::bigint + n, $2::bigint + n
       FROM generate_series($3::integer, $4::integer) AS n`,
      [account.accountId, now, from, to],
    )
    await superuser.query('VACUUM ANALYZE api_keys')
  }
  await revoke(1, 200)
  const few = await pagesOf()
  await revoke(201, 20_000)
  const many = await pagesOf()
  expect(many.listed).toBeLessThan(few.listed + 50)
  expect(many.counted).toBeLessThan(few.counted + 5)
  expect(await listKeys(place, account.accountId)).toHaveLength(101)
})

/** Runs `cambist keys …` and gives what it printed. */
async function runKeys(...args: string[]): Promise<string> {
  const printed: string[] = []
  const program = new Command().exitOverride()
  registerKeysCommands(program.command('keys'), {
    open: () => Promise.resolve({ place, close: () => Promise.resolve() }),
    print: (text) => printed.push(text),
  })
  await program.parseAsync(['keys', ...args], { from: 'user' })
  return printed.join('\n')
}

test('the commands create, list, rotate and revoke, and tell the secret once', async () => {
  const created = JSON.parse(
    await runKeys('create', 'Corner shop', '--scopes', 'read', '--ip', '10.0.0.0/8', '--json'),
  )
  expect(created).toMatchObject({
    accountId: expect.any(String),
    keyId: expect.any(String),
    secret: expect.any(String),
  })
  const { accountId, keyId, secret } = created as { accountId: string; keyId: string; secret: string }
  const listed = await runKeys('list', '--account', accountId)
  expect(listed).toMatch(/^KEY +ACCOUNT +LABEL +SCOPES +FROM +LAST USED +STATE\n/)
  expect(listed).toContain(`Corner shop (${accountId})`)
  expect(listed).not.toContain(secret)

  const rotation = await runKeys('rotate', keyId, '--overlap', '30m')
  expect(rotation).toMatch(/Old secret until .* UTC/)
  expect(rotation).toContain('cannot be read again')
  expect(await runKeys('list', '--account', accountId)).toContain('rotating until')
  expect(await runKeys('revoke', keyId)).toBe(`${keyId} is revoked.`)
  expect(await runKeys('list', '--account', accountId)).toContain('revoked 20')

  const second = await runKeys('create', '--account', accountId, '--label', 'second')
  expect(second).toMatch(/API secret +[0-9a-f]{64}/)
})

test('the commands do what their options say, and no more', async () => {
  const other = await makeKey()
  const ips = ['--ip', '10.0.0.0/8,203.0.113.7', '--ip', '2001:db8::/32']
  const { accountId, keyId } = JSON.parse(await runKeys('create', 'Kiosk', ...ips, '--json')) as {
    accountId: string
    keyId: string
  }
  const listed = JSON.parse(await runKeys('list', '--account', accountId, '--json'))
  expect(listed).toMatchObject([
    { keyId, accountId, scopes: ['read', 'trade'], ipAllow: ['10.0.0.0/8', '203.0.113.7', '2001:db8::/32'] },
  ])
  expect(await runKeys('list', '--account', other.accountId)).toMatch(/ anywhere +never +live$/)
  expect(await runKeys('list')).toContain(other.keyId)
  for (const mistyped of [`${accountId}0`, accountId.slice(0, -1), 'Kiosk'])
    for (const json of [[], ['--json']])
      await expect(runKeys('list', '--account', mistyped, ...json)).rejects.toThrow(
        `There is no account ${mistyped}: \`cambist keys accounts\` has them.`,
      )
  for (const [duration, overlapMs] of [
    ['0', 0],
    ['2m', 120_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
  ] as const) {
    const told = JSON.parse(await runKeys('rotate', keyId, '--overlap', duration, '--json'))
    expect(told.oldSecretUntilMs, duration).toBe(now + overlapMs)
    if (overlapMs === 0) continue
    await expect(runKeys('rotate', keyId, '--overlap', '0'), duration).rejects.toThrow(
      /two live secrets until .* Where the older one is in wrong hands, revoke the key, which ends both, and make another\.$/,
    )
    const replaced = JSON.parse(await runKeys('rotate', keyId, '--replace-newest', '--json'))
    expect(replaced.oldSecretUntilMs, duration).toBe(now + overlapMs)
    now += overlapMs
  }
  await expect(runKeys('rotate', keyId, '--overlap', '8d')).rejects.toThrow('at most 7 days')
})

test('a command makes webhook secrets and tells each once', async () => {
  const { accountId } = await makeKey()
  expect(await runKeys('webhook-secret', accountId)).toMatch(
    /Webhook secret +whsec_[\w+/]{32}\n +Old secret until none/,
  )
  const told = JSON.parse(await runKeys('webhook-secret', accountId, '--overlap', '30m', '--json'))
  expect(told).toEqual({ secret: expect.stringMatching(/^whsec_/), oldSecretUntilMs: now + 1_800_000 })
  await expect(runKeys('webhook-secret', accountId, '--overlap', '0')).rejects.toThrow(
    /two live secrets until .* Nothing ends the older one sooner: where it is in wrong hands, let receivers take only/,
  )
  await expect(runKeys('webhook-secret', 'acc_0000000000000000')).rejects.toThrow('there is no account')
  const rows = await readAuditRows(db, accountId, 0, 100)
  const rotated = ['webhook_secret_rotated', 'operator', accountId]
  expect(rows.slice(-2).map(({ act, actor, subject }) => [act, actor, subject])).toEqual([rotated, rotated])
})

test.each(['rotate', 'webhook-secret'])(
  '%s replaces the newest, or gives the older its time: not both',
  async (command) => {
    const { accountId, keyId } = await makeKey()
    const name = command === 'rotate' ? keyId : accountId
    await runKeys(command, name, '--overlap', '30m')
    await runKeys(command, name, '--replace-newest')
    const rows = () => readAuditRows(db, accountId, 0, 100)
    const before = await rows()
    await expect(runKeys(command, name, '--replace-newest', '--overlap', '0')).rejects.toThrow(
      'Either --overlap or --replace-newest: while two secrets live the older one keeps the time that it has.',
    )
    expect(await rows()).toEqual(before)
  },
)

test('the commands refuse in words', async () => {
  await expect(runKeys('create')).rejects.toThrow(CommandRefused)
  await expect(runKeys('create', 'Shop', '--ip', '10.0.0.300')).rejects.toThrow('is not an IP address')
  for (const none of ['', ' , ']) {
    await expect(runKeys('create', 'Shop', '--ip', none)).rejects.toThrow('--ip names no address')
  }
  await expect(runKeys('rotate', 'ck_nobodynobody')).rejects.toThrow('there is no key')
  await expect(runKeys('rotate', 'ck_nobodynobody', '--overlap', 'soon')).rejects.toThrow('is not a duration')
})

test('an account whose key is refused is not made either', async () => {
  const create = (...more: string[]) => runKeys('create', 'Half', '--email', 'half@example.com', ...more)
  await expect(create('--ip', '10.0.0.5/8')).rejects.toThrow(CommandRefused)
  await expect(create('--scopes', 'everything')).rejects.toThrow(CommandRefused)
  expect(await runKeys('accounts')).not.toContain('half@example.com')
  expect(await create('--ip', '10.0.0.0/8')).toContain('API secret')
  expect(await runKeys('accounts')).toContain('half@example.com')
})

test('an account that is named after its address is not once that is another, or none', async () => {
  const [old, next] = ['a', 'c'].map((letter) => `${letter.repeat(60)}@${'b'.repeat(60)}.example.com`) as [
    string,
    string,
  ]
  const named = async (name: string, email: string) =>
    JSON.parse(await runKeys('create', name, '--email', email, '--json')).accountId
  const nameOf = async (id: string) => (await findAccount(place, id))?.name
  const accountId = await named(old.slice(0, 100), old)
  await runKeys('email', accountId, next)
  expect(await nameOf(accountId)).toBe(next.slice(0, 100))
  await runKeys('email', accountId, '--none')
  expect(await nameOf(accountId)).toBe(accountId)
  await runKeys('email', accountId, 'again@example.com')
  expect(await nameOf(accountId)).toBe('again@example.com')
  const shop = await named('A shop', 'shop@example.com')
  await runKeys('email', shop, '--none')
  await runKeys('email', shop, 'shop@example.org')
  expect(await nameOf(shop)).toBe('A shop')
})

test('an account has one email address, no two have the same, and every act is written down', async () => {
  const created = await runKeys('create', 'Owned', '--email', ' Owner@Example.COM ', '--json')
  const { accountId, keyId } = JSON.parse(created) as { accountId: string; keyId: string }
  expect(await runKeys('accounts')).toMatch(new RegExp(`^${accountId} +Owned +owner@example.com `, 'm'))
  await expect(runKeys('create', 'Other', '--email', 'owner@example.com')).rejects.toThrow('another account')
  await expect(runKeys('create', 'Other', '--email', 'a@b')).rejects.toThrow('must be an email address')
  await expect(runKeys('create', '--account', accountId, '--email', 'x@example.com')).rejects.toThrow(
    '--email',
  )
  const other = JSON.parse(await runKeys('create', 'Other', '--json')) as { accountId: string }
  await expect(runKeys('email', other.accountId, 'OWNER@example.com')).rejects.toThrow('another account')
  expect(await runKeys('email', accountId, 'new@example.com')).toBe(
    `${accountId} has the email new@example.com.`,
  )
  expect(await runKeys('email', other.accountId, 'owner@example.com')).toContain('owner@example.com')
  expect(await runKeys('email', accountId, '--none')).toBe(`${accountId} has no email.`)
  await expect(runKeys('email', accountId)).rejects.toThrow('either')
  await expect(runKeys('email', 'acc_nobodynobody', 'x@example.com')).rejects.toThrow('no account')
  await runKeys('rotate', keyId)
  await runKeys('revoke', keyId)
  await runKeys('revoke', keyId)
  const rows = await readAuditRows(db, accountId, 0, 100)
  expect(rows.map(({ act, actor, subject }) => [act, actor, subject])).toEqual([
    ['account_created', 'operator', accountId],
    ['key_created', 'operator', keyId],
    ['email_set', 'operator', accountId],
    ['email_set', 'operator', accountId],
    ['key_rotated', 'operator', keyId],
    ['key_revoked', 'operator', keyId],
  ])
  expect(JSON.parse(rows[2]?.detail ?? '')).toEqual({
    ...{ from: 'owner@example.com', to: 'new@example.com' },
    ...{ os_user: userInfo().username, os_host: hostname() },
  })
  expect((await verifyAudit(db, [])).problems).toEqual([])
})

test('whoever acts at the command line is in the log with user and machine, which the owner of the account is not shown', async () => {
  const { accountId, keyId } = JSON.parse(await runKeys('create', 'Watched', '--label', 'till', '--json'))
  for (const act of ['rotate', 'revoke']) await runKeys(act, keyId)
  await runKeys('webhook-secret', accountId)
  await runKeys('email', accountId, 'watched@example.com')
  const here = { os_user: userInfo().username, os_host: hostname() }
  const rows = await readAuditRows(db, accountId, 0, 100)
  expect(rows).toHaveLength(6)
  for (const { act, detail } of rows) expect(JSON.parse(detail), act).toMatchObject(here)
  const shown = await readAudit(place, accountId, 100, 100)
  expect(shown).toHaveLength(6)
  expect(JSON.stringify(shown)).not.toMatch(/os_user|os_host/)
  expect(shown.at(-2)?.detail).toEqual({ label: 'till', scopes: 'read,trade', ip_allow: '' })
})

test('an address that the operator replaces or takes away is told so, and not of the next one', async () => {
  const { accountId } = JSON.parse(await runKeys('create', 'Told', '--email', 'first@example.com', '--json'))
  const saidTo = async (to: string) => {
    const mails = await db.query<{ kind: string; data: object }>(
      'SELECT kind, data FROM mails WHERE to_address = $1',
      [to],
    )
    return mails.map(({ kind, data }) => [kind, data])
  }
  await runKeys('email', accountId, 'second@example.com')
  now += 1
  await runKeys('email', accountId, 'second@example.com')
  now += 1
  await runKeys('email', accountId, '--none')
  const end = 'Nobody is signed in to it any more.'
  const replaced = `The operator of the service has given your account another email address. ${end}`
  const takenAway = `The operator of the service has taken the email address of your account away. ${end}`
  expect(await saidTo('first@example.com')).toEqual([
    ['security_notice', { what: replaced, is_former: true }],
  ])
  expect(await saidTo('second@example.com')).toEqual([
    ['security_notice', { what: takenAway, is_former: true }],
  ])
})

test('a key of another account does not exist', async () => {
  const { keyId, accountId } = await makeKey()
  const foreign = { keyId, accountId: 'acc_somebodyelse' }
  const nobodys = await revokeKey(place, operator, { keyId: 'ck_nobodynobody', accountId: null })
  const refusals = [
    await revokeKey(place, operator, foreign),
    await rotateKey(place, operator, foreign, { overlapMs: 0, replacesNewest: false }),
  ]
  for (const refusal of refusals) {
    const told = refusal.ok ? '' : refusal.rejection.message.replace(keyId, 'ck_nobodynobody')
    expect(told).toBe(nobodys.ok ? '' : nobodys.rejection.message)
  }
  expect(await listKeys(place, accountId)).toMatchObject([
    { keyId, revokedAtMs: null, oldSecretUntilMs: null },
  ])
})

test.each([
  'a',
  '@b.example',
  'a@',
  'a b@c.example',
  'a@b',
  'a@@b.example',
  'a@b..example',
  '.a@b.example',
  'a@-b.example',
  'a@b.example\nBcc: x@y.example',
  'ä@b.example',
  'a@b.example>',
  '"a"@b.example',
  'a@[127.0.0.1]',
  'a,b@c.example',
  `${'a'.repeat(65)}@b.example`,
  `a@${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(63)}.${'e'.repeat(63)}.example`,
])('%j is no email address', (text) => {
  expect(parseEmail(text).ok).toBe(false)
})

test('an email address is kept in small letters', () => {
  const wanted = { ok: true, value: "o'neil+shop@mail.example.com" }
  expect(parseEmail(" O'Neil+Shop@Mail.Example.com ")).toEqual(wanted)
})
