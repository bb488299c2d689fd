import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import { Command } from 'commander'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startMigratedPostgres } from '../../test/harness/migrated_postgres.ts'
import { openTestDatabase } from '../../test/harness/test_database.ts'
import { CommandRefused } from '../command_refused.ts'
import { registerAuditCommands } from '../commands/audit.ts'
import { appendAudit, type By, houseChain, readAuditBackwards, readAuditHeads } from '../db/audit_log.ts'
import type { Database } from '../db/database.ts'
import { verifyAudit } from './verify_audit.ts'

/**
 * What: whatever somebody does to the audit log, `cambist audit verify` names the row.
 * How: the service writes chains to a real PostgreSQL; a superuser does what the service may not.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-audit-'))
const dataDir = join(folder, 'postgres')
let server: Postgres
let db: Database
let superuser: pg.Client
let chainsMade = 0

beforeAll(async () => {
  server = await startMigratedPostgres(dataDir)
  db = openTestDatabase(server.url, 'verify_audit.test')
  superuser = new pg.Client({ connectionString: server.url })
  await superuser.connect()
})

afterAll(async () => {
  await superuser?.end()
  await db?.close()
  await server?.stop()
  removePostgres(dataDir)
  rmSync(folder, { recursive: true, force: true })
})

const owner: By = { actor: 'owner', address: '192.0.2.7', sessionId: 'ses_1' }

function write(chain: string, subject: string): Promise<void> {
  return db.transaction((tx) =>
    appendAudit(tx, {
      chain,
      atMs: 1_800_000_000_000,
      act: 'key_created',
      by: owner,
      subject,
      detail: { label: `"\\é\u0000\ud800 ${subject}`.replace('\u0000', '') },
    }),
  )
}

/** A chain of four rows, and what may be done to it; its problems after that, then it is gone. */
async function problemsAfter(tamper: (chain: string) => Promise<unknown>): Promise<string[]> {
  chainsMade += 1
  const chain = `acc_chain${String(chainsMade).padStart(4, '0')}`
  for (const subject of ['a', 'b', 'c', 'd']) await write(chain, subject)
  expect((await verifyAudit(db, [])).problems).toEqual([])
  await tamper(chain)
  const { problems } = await verifyAudit(db, [])
  expect(problems.every((problem) => problem.chain === chain)).toBe(true)
  await superuser.query('DELETE FROM audit_log WHERE chain = $1', [chain])
  await superuser.query('DELETE FROM audit_heads WHERE chain = $1', [chain])
  return problems.map(({ sequence, message }) => `${sequence} ${message}`)
}

const changed = 'was changed: its hash is not that of what it says'
const replaced = 'does not follow the row before it: one of them was replaced'

test.each([
  ['at_ms', 'at_ms + 1'],
  ['act', `'key_revoked'`],
  ['actor', `'operator'`],
  ['subject', `'x'`],
  ['subject', 'NULL'],
  ['address', `'192.0.2.8'`],
  ['address', 'NULL'],
  ['detail', `detail || ' '`],
])('a row whose %s became %s is named', async (column, value) => {
  const told = await problemsAfter((chain) =>
    superuser.query(`UPDATE audit_log SET ${column} = ${value} WHERE chain = $1 AND sequence = 2`, [chain]),
  )
  expect(told).toEqual([`2 ${changed}`])
})

test('a row with another hash, or another hash before, is named', async () => {
  const other = '\\x00'
  const told = (column: string) =>
    problemsAfter((chain) =>
      superuser.query(`UPDATE audit_log SET ${column} = '${other}' WHERE chain = $1 AND sequence = 2`, [
        chain,
      ]),
    )
  expect(await told('hash')).toEqual([`2 ${changed}`, `3 ${replaced}`])
  expect(await told('previous_hash')).toEqual([`2 ${replaced}`, `2 ${changed}`])
})

test('a row that moved to another number or another chain is named', async () => {
  const moved = await problemsAfter((chain) =>
    superuser.query('UPDATE audit_log SET sequence = 9 WHERE chain = $1 AND sequence = 4', [chain]),
  )
  expect(moved).toEqual([
    '9 lacks 5 rows before it',
    `9 ${changed}`,
    '9 was added behind the end of its chain',
  ])
  const chain = 'acc_from00000'
  await write(chain, 'a')
  await superuser.query(`UPDATE audit_log SET chain = 'acc_to0000000' WHERE chain = $1`, [chain])
  const { problems } = await verifyAudit(db, [])
  expect(problems.map((each) => `${each.chain} ${each.sequence} ${each.message}`)).toEqual([
    'acc_from00000 1 is missing: the chain was cut off after row 0',
    `acc_to0000000 1 ${changed}`,
    'acc_to0000000 1 ends a chain whose head is missing',
  ])
  await superuser.query(`DELETE FROM audit_log WHERE chain = 'acc_to0000000'`)
  await superuser.query(`DELETE FROM audit_heads WHERE chain = 'acc_from00000'`)
})

function remove(chain: string, ...sequences: number[]) {
  return superuser.query('DELETE FROM audit_log WHERE chain = $1 AND sequence = ANY($2)', [chain, sequences])
}

test('rows that were deleted are noticed: at the beginning, amid, at the end, all', async () => {
  expect(await problemsAfter((chain) => remove(chain, 1))).toEqual(['2 lacks the row before it'])
  expect(await problemsAfter((chain) => remove(chain, 2, 3))).toEqual(['4 lacks 2 rows before it'])
  const cutOff = (after: number) => [`4 is missing: the chain was cut off after row ${after}`]
  expect(await problemsAfter((chain) => remove(chain, 4))).toEqual(cutOff(3))
  expect(await problemsAfter((chain) => remove(chain, 3, 4))).toEqual(cutOff(2))
  expect(await problemsAfter((chain) => remove(chain, 1, 2, 3, 4))).toEqual(cutOff(0))
})

test('a deleted row is noticed when those behind it are given its number', async () => {
  const told = await problemsAfter(async (chain) => {
    await remove(chain, 2)
    await superuser.query('UPDATE audit_log SET sequence = 2 WHERE chain = $1 AND sequence = 3', [chain])
    await superuser.query('UPDATE audit_log SET sequence = 3 WHERE chain = $1 AND sequence = 4', [chain])
  })
  expect(told).toEqual([
    `2 ${replaced}`,
    `2 ${changed}`,
    `3 ${changed}`,
    '4 is missing: the chain was cut off after row 3',
  ])
})

test('two rows that changed places are named', async () => {
  const told = await problemsAfter(async (chain) => {
    for (const [from, to] of [
      [2, 100],
      [3, 2],
      [100, 3],
    ]) {
      await superuser.query('UPDATE audit_log SET sequence = $3 WHERE chain = $1 AND sequence = $2', [
        chain,
        from,
        to,
      ])
    }
  })
  expect(told).toEqual([`2 ${replaced}`, `2 ${changed}`, `3 ${replaced}`, `3 ${changed}`, `4 ${replaced}`])
})

test('a row that was inserted is named, and a head that was changed', async () => {
  const inserted = await problemsAfter((chain) =>
    superuser.query(
      `INSERT INTO audit_log SELECT chain, 5, at_ms, act, actor, subject, address, detail, hash, hash
       FROM audit_log WHERE chain = $1 AND sequence = 4`,
      [chain],
    ),
  )
  expect(inserted).toEqual([`5 ${changed}`, '5 was added behind the end of its chain'])
  const head = (change: string) =>
    problemsAfter((chain) => superuser.query(`${change} WHERE chain = $1`, [chain]))
  expect(await head(`UPDATE audit_heads SET hash = '\\x00'`)).toEqual([
    '4 is not the row that ended its chain',
  ])
  expect(await head('DELETE FROM audit_heads')).toEqual(['4 ends a chain whose head is missing'])
  expect(await head('UPDATE audit_heads SET sequence = 3')).toEqual([
    '3 is not the row that ended its chain',
    '4 was added behind the end of its chain',
  ])
})

test('a chain that was cut off together with its head agrees with itself, but not with a noted head', async () => {
  const chain = 'acc_noted0000'
  for (const subject of ['a', 'b', 'c']) await write(chain, subject)
  const noted = await readAuditHeads(db)
  await write(chain, 'd')
  expect((await verifyAudit(db, noted)).problems).toEqual([])
  await remove(chain, 3, 4)
  await superuser.query(
    `UPDATE audit_heads SET sequence = 2, hash = (SELECT hash FROM audit_log WHERE chain = $1 AND sequence = 2)
     WHERE chain = $1`,
    [chain],
  )
  expect((await verifyAudit(db, [])).problems).toEqual([])
  const missing = { chain, sequence: 3, message: 'is missing: the chain was cut off after row 2' }
  expect((await verifyAudit(db, noted)).problems).toEqual([missing])
  await write(chain, 'another c')
  const otherwise = { chain, sequence: 3, message: 'is not the row whose hash was noted' }
  expect((await verifyAudit(db, noted)).problems).toEqual([otherwise])
  expect((await verifyAudit(db, [])).problems).toEqual([])
})

test('a chain that is gone altogether, head and all, is missed by its noted head', async () => {
  const chain = 'acc_wiped0000'
  for (const subject of ['a', 'b']) await write(chain, subject)
  const noted = await readAuditHeads(db)
  await superuser.query('DELETE FROM audit_log WHERE chain = $1', [chain])
  await superuser.query('DELETE FROM audit_heads WHERE chain = $1', [chain])
  expect((await verifyAudit(db, [])).problems).toEqual([])
  const missing = { chain, sequence: 2, message: 'is missing: the chain was cut off after row 0' }
  expect((await verifyAudit(db, noted)).problems).toEqual([missing])
})

test('a chain of more rows than are read at once is gone through to its end', async () => {
  const told = await problemsAfter(async (chain) => {
    const entry = { chain, atMs: 1, act: 'key_revoked', by: owner, subject: null, detail: {} } as const
    await db.transaction(async (tx) => {
      for (let row = 5; row <= 1_002; row += 1) await appendAudit(tx, entry)
    })
    const { problems, rowCount } = await verifyAudit(db, [])
    expect(problems).toEqual([])
    expect(rowCount).toBeGreaterThanOrEqual(1_002)
    await superuser.query('UPDATE audit_log SET at_ms = 2 WHERE chain = $1 AND sequence = 1001', [chain])
  })
  expect(told).toEqual([`1001 ${changed}`])
})

test('many writers of one chain leave no gap, and a transaction that fails leaves nothing', async () => {
  const chain = 'acc_many00000'
  const failing = db.transaction(async (tx) => {
    await appendAudit(tx, {
      chain,
      atMs: 1,
      act: 'key_revoked',
      by: owner,
      subject: null,
      detail: {},
    })
    throw new Error('the act failed')
  })
  await Promise.all([
    expect(failing).rejects.toThrow('the act failed'),
    ...Array.from({ length: 20 }, (_, index) => write(chain, `s${index}`)),
    ...Array.from({ length: 5 }, () =>
      verifyAudit(db, []).then(({ problems }) => expect(problems).toEqual([])),
    ),
  ])
  const rows = await db.query('SELECT 1 FROM audit_log WHERE chain = $1', [chain])
  expect(rows).toHaveLength(20)
  expect((await verifyAudit(db, [])).problems).toEqual([])
})

test('the service may add to the log and nothing else', async () => {
  await write('acc_append000', 'a')
  for (const statement of [
    `UPDATE audit_log SET act = 'x'`,
    'DELETE FROM audit_log',
    'TRUNCATE audit_log',
    'DELETE FROM audit_heads',
    'TRUNCATE audit_heads',
  ]) {
    await expect(db.query(statement), statement).rejects.toThrow('permission denied')
  }
})

test('acts of nobody in particular are spread over sixteen chains', () => {
  const chains = new Set(Array.from({ length: 200 }, (_, index) => houseChain(`${index}@example.com`)))
  expect(chains.size).toBe(16)
  expect([...chains].every((chain) => /^house_[0-9a-f]$/.test(chain))).toBe(true)
})

/** What `cambist audit …` prints is the last of `printed`. */
async function runAudit(printed: string[], ...words: string[]): Promise<string> {
  const audit = new Command('audit').exitOverride().configureOutput({ writeErr: () => {} })
  registerAuditCommands(audit, {
    open: async () => ({ db, clock: { wallMs: () => 1_000 }, close: async () => {} }),
    print: (text) => void printed.push(text),
    note: (text) => void printed.push(text),
  })
  await audit.parseAsync(words, { from: 'user' })
  return printed.at(-1) ?? ''
}

test('what somebody has done by hand is noted in a chain of the house, with who and why', async () => {
  const run = (...words: string[]) => runAudit([], ...words)
  const about = 'signer.signed_transactions'
  const because = 'CB1621820820853908:2 was paid by hand'
  const printed = await run('note', about, '--because', because)
  const chain = houseChain(about)
  expect(printed).toBe(`It is in the audit log: cambist audit show ${chain}`)
  const [row] = await readAuditBackwards(db, chain, 1_000, 1)
  expect(row).toMatchObject({ act: 'noted', actor: 'operator', subject: about, at_ms: '1000' })
  const here = { os_user: userInfo().username, os_host: hostname() }
  expect(JSON.parse(row?.detail ?? '')).toEqual({ because, ...here })
  expect(await run('show', chain)).toContain(JSON.stringify(here).slice(1, -1))
  expect((await verifyAudit(db, [])).problems).toEqual([])
  await expect(run('note', about)).rejects.toThrow('--because')
  await expect(run('note', about, '--because', ' ')).rejects.toThrow('--because says why')
  await expect(run('note', ' ', '--because', because)).rejects.toThrow('what it is about')
  await expect(run('note', 'a'.repeat(201), '--because', because)).rejects.toThrow('1 to 200 characters')
})

test('the command says so and is refused when anything is wrong', async () => {
  const printed: string[] = []
  const run = (...words: string[]) => runAudit(printed, ...words)
  const chain = 'acc_command00'
  await write(chain, 'a')
  await write(chain, 'b')
  expect(await run('verify')).toMatch(/^No problems: \d+ rows? in \d+ chains?\.$/)
  expect(await run('show', chain)).toContain('key_created')
  // What a browser calls itself is its own choice; the row keeps it as it came, because its hash is of that.
  await write('acc_command01', 'c\u009b2J')
  expect(await run('show', 'acc_command01')).toContain('c\\u009b2J')
  expect(await run('show', 'acc_command01')).not.toContain('\u009b')
  for (let row = 1; row <= 102; row += 1) await write('acc_command02', `subject ${row}`)
  expect(await run('show', 'acc_command02')).toMatch(
    /^102 .*\n(?:.*\n)+3 .*\n\nThere are earlier ones: --before 3 shows them\.$/m,
  )
  expect(await run('show', 'acc_command02', '--before', '3')).toMatch(/^ROW.*\n2 .*\n1 .*$/)
  await expect(run('show', 'acc_command02', '--before', 'x')).rejects.toThrow('x is not the number of a row')
  expect(await run('show', 'acc_command02', '--before', '1')).toBe('There are no rows.')
  expect(await run('show', 'house_f')).toMatch(/^There are no rows\.$|^ROW/)
  for (const mistyped of ['acc_command0', 'ETH:ETH', 'house_g', 'house_', 'HOUSE_1'])
    for (const json of [[], ['--json']])
      await expect(run('show', mistyped, ...json)).rejects.toThrow(
        `There is no chain ${mistyped}: name an account (`,
      )
  await superuser.query(
    `INSERT INTO accounts (account_id, name, created_at_ms) VALUES ('acc_quiet0000', 'Quiet', 1)`,
  )
  expect(await run('show', 'acc_quiet0000')).toBe('There are no rows.')
  const file = join(folder, 'heads.json')
  writeFileSync(file, await run('heads'))
  expect(await run('verify', '--heads', file)).toMatch(/^No problems/)
  await superuser.query(`DELETE FROM audit_log WHERE chain = 'acc_command01'`)
  await superuser.query(`DELETE FROM audit_heads WHERE chain = 'acc_command01'`)
  expect(await run('verify'), 'what nothing is left of').toMatch(/^No problems/)
  await expect(run('verify', '--heads', file)).rejects.toThrow(CommandRefused)
  expect(printed.at(-1)).toMatch(/^acc_command01 +1 +is missing: the chain was cut off after row 0$/m)
  await remove(chain, 2)
  await expect(run('verify')).rejects.toThrow(CommandRefused)
  expect(printed.at(-1)).toMatch(/^acc_command00 +2 +is missing: the chain was cut off after row 1$/m)
  await expect(run('verify', '--json')).rejects.toThrow(CommandRefused)
  expect(JSON.parse(printed.at(-1) ?? '').problems).toHaveLength(1)
  writeFileSync(file, '{"heads":1}')
  await expect(run('verify', '--heads', file)).rejects.toThrow('is not what')
  await expect(run('verify', '--heads', join(folder, 'none'))).rejects.toThrow('ENOENT')
})
