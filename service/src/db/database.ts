import { createHash } from 'node:crypto'
import pg from 'pg'

/** Runs one statement; rows come with numeric as bigint, bigint columns as number, jsonb parsed. */
export type Sql = {
  query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<Row[]>
}

export type Database = Sql & {
  /** All of it or none of it. A deadlock is tried again: `work` must only touch the database. */
  transaction<Value>(work: (tx: Sql) => Promise<Value>): Promise<Value>
  close(): Promise<void>
}

/** The role the service works as: it may not rewrite the books and the logs (migration 0001). */
export const SERVICE_ROLE = 'cambist_service'
/** A commit that is answered is on disk: what a crash makes the server forget would be signed once more, as another transaction. */
const OPTIONS = `-c role=${SERVICE_ROLE} -c synchronous_commit=on`

const NUMERIC = 1700
const INT8 = 20

const parsers = new Map<number, (text: string) => unknown>([
  [NUMERIC, (text) => BigInt(text)],
  [INT8, parseSafeInteger],
])

function parseSafeInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new Error(`${text} is too large for a counter or a time`)
  return value
}

/** In real time; 0 is no limit. */
export type DatabaseLimits = {
  readonly connectMs: number
  readonly statementMs: number
  readonly answerMs: number
  readonly silenceMs: number
}

const limits: DatabaseLimits = {
  // For a free connection or a new one.
  connectMs: 10_000,
  // A statement that hangs must not hold money's locks for ever.
  statementMs: 30_000,
  // Nor its caller, when the answer never comes: a line that is silent is not cut, and tells nobody.
  answerMs: 35_000,
  // Nothing of ours waits for anybody but the database inside a transaction: whoever says nothing for this long is frozen, or
  // its machine went away without a word, and others wait behind it.
  silenceMs: 10_000,
}

/**
 * For whoever reads everything there ever was and keeps nobody waiting: with ten million orders that takes longer than
 * anything else may, and so does looking at what was read.
 */
export const limitsOfAudits: DatabaseLimits = {
  connectMs: 10_000,
  statementMs: 3_600_000,
  answerMs: 3_605_000,
  silenceMs: 600_000,
}

/** For where how long something really takes says nothing: time is simulated, or a test shares its machine with many others. */
export const noLimits: DatabaseLimits = { connectMs: 0, statementMs: 0, answerMs: 0, silenceMs: 0 }

export function openDatabase(options: {
  readonly url: string
  readonly connectionsMax: number
  readonly applicationName: string
  /** An idle connection that broke; the pool replaces it, the operator may want to know. */
  readonly onConnectionLost: (error: Error) => void
  readonly limits?: DatabaseLimits
}): Database {
  const { connectMs, statementMs, answerMs, silenceMs } = options.limits ?? limits
  const pool = new pg.Pool({
    connectionString: withOptions(options.url),
    max: options.connectionsMax,
    application_name: options.applicationName,
    options: OPTIONS,
    connectionTimeoutMillis: connectMs,
    // A new one has all its plans to make.
    idleTimeoutMillis: 60_000,
    statement_timeout: statementMs,
    query_timeout: answerMs,
    idle_in_transaction_session_timeout: silenceMs,
    types: {
      getTypeParser: ((oid: number, format?: 'text') =>
        parserOf(oid, format)) as typeof pg.types.getTypeParser,
    },
  })
  // The pool listens to its idle connections only; an error that nobody listens to would end the process.
  pool.on('connect', (client) => client.on('error', options.onConnectionLost))
  // Told by the connection itself already.
  pool.on('error', () => {})
  return {
    query: (text, values) => run(pool, text, values),
    transaction: (work) => withDeadlockRetry(() => inTransaction(pool, work)),
    close: () => pool.end(),
  }
}

export type Session = {
  readonly role: string
  readonly isReadOnly: boolean
  /** Whether a commit that is answered is on disk, here and on whatever the server waits for. */
  readonly isCommitKept: boolean
  /** Who connected. */
  readonly user: string
  /** Statements that take from the role what it may do to the books and the logs beside adding to them; none where that is nothing. */
  readonly revokes: readonly string[]
}

/**
 * As whom statements are carried out, and whether what they change is kept: whatever stands between us and the database may have
 * dropped the options. Whether they may only read: after a failover the same name may lead to the server that stands by. And whether the role may rewrite what is only ever
 * added to, which the migrations have kept it from: a restore that is followed by a grant on all tables gives it back.
 */
export async function readSession(sql: Sql): Promise<Session> {
  const [row] = await sql.query<Session>(
    `SELECT current_user::text AS role, session_user::text AS user,
       current_setting('transaction_read_only') = 'on' AS "isReadOnly",
       current_setting('synchronous_commit') IN ('on', 'remote_apply') AS "isCommitKept",
       ARRAY(
         SELECT format('REVOKE %s ON %s FROM ${SERVICE_ROLE}, PUBLIC', privileges, pg_class.oid::regclass)
         FROM (VALUES
           ('public', 'journal', 'UPDATE, DELETE, TRUNCATE'),
           ('public', 'events', 'UPDATE, DELETE, TRUNCATE'),
           ('public', 'facts', 'UPDATE, DELETE, TRUNCATE'),
           ('public', 'audit_log', 'UPDATE, DELETE, TRUNCATE'),
           ('public', 'operator_words', 'UPDATE, DELETE, TRUNCATE'),
           ('public', 'order_seal_key', 'UPDATE, DELETE, TRUNCATE'),
           ('public', 'verdicts', 'UPDATE, DELETE, TRUNCATE'),
           ('public', 'audit_heads', 'DELETE, TRUNCATE'),
           ('public', 'ledger_accounts', 'INSERT, UPDATE, DELETE, TRUNCATE'),
           ('signer', 'signed_transactions', 'UPDATE, DELETE, TRUNCATE')
         ) AS kept (space, name, privileges)
         JOIN pg_namespace ON nspname = space
         JOIN pg_class ON relnamespace = pg_namespace.oid AND relname = name
         WHERE has_table_privilege(pg_class.oid, privileges)
       ) AS revokes`,
  )
  return row ?? { role: '', user: '', isReadOnly: false, isCommitKept: false, revokes: [] }
}

/**
 * What a URL says goes before what is said beside it. Options in it (of a hosted database, say) would take the place of ours:
 * the service would work as the owner of its books, who may rewrite them.
 */
function withOptions(text: string): string {
  const url = URL.parse(text)
  const theirs = url?.searchParams.getAll('options') ?? []
  if (url === null || theirs.length === 0) return text
  url.searchParams.set('options', [...theirs, OPTIONS].join(' '))
  return url.href
}

function parserOf(oid: number, format?: 'text') {
  return parsers.get(oid) ?? pg.types.getTypeParser(oid, format)
}

const statementNames = new Map<string, string>()

/** Every statement text is prepared once a connection; the texts are constants of the code, so there are few. */
export function statementName(text: string): string {
  let name = statementNames.get(text)
  if (name === undefined) {
    name = createHash('sha256').update(text).digest('base64url').slice(0, 40)
    statementNames.set(text, name)
  }
  return name
}

async function run<Row extends object>(
  target: pg.Pool | pg.PoolClient,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const result = await target.query<Row>({ name: statementName(text), text, values: values.map(toWire) })
  return result.rows
}

function toWire(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  return Array.isArray(value) ? value.map(toWire) : value
}

/**
 * Whatever the server's default is: who has waited for a lock has to see what was committed meanwhile. In a snapshot from before,
 * two signatures would fit under one limit.
 */
const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED'

/**
 * After these a connection is of no more use, and always in use it would be kept for ever. Statements outside of transactions give
 * up theirs at any error.
 * 25006: the server stands by for another, which after a failover the same name leads to.
 * 0A000: a statement was prepared on it before a migration gave its table another column.
 */
const USELESS_AFTER: readonly (string | undefined)[] = ['25006', '0A000']

async function inTransaction<Value>(pool: pg.Pool, work: (tx: Sql) => Promise<Value>): Promise<Value> {
  const client = await pool.connect()
  let isOver = false
  let isLost = false
  const orLost = async <Answer>(answer: Promise<Answer>): Promise<Answer> => {
    try {
      return await answer
    } catch (error) {
      isLost ||= !(error instanceof pg.DatabaseError) || USELESS_AFTER.includes(error.code)
      throw error
    }
  }
  try {
    await orLost(client.query(BEGIN))
    const value = await work({ query: (text, values) => orLost(run(client, text, values)) })
    const { command } = await orLost(client.query('COMMIT'))
    isOver = true
    // A transaction that failed inside answers COMMIT with ROLLBACK and no error.
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back')
    return value
  } catch (error) {
    // Where the server did not answer it would not answer this either; it undoes what a lost connection began.
    if (!isOver && !isLost) isLost = !(await rolledBack(client))
    throw error
  } finally {
    client.release(isLost)
  }
}

async function rolledBack(client: pg.PoolClient): Promise<boolean> {
  try {
    await client.query('ROLLBACK')
    return true
  } catch {
    // The connection is gone, and the transaction with it: the caller's error says more than this one.
    return false
  }
}

const DEADLOCK_TRIES = 5

async function withDeadlockRetry<Value>(attempt: () => Promise<Value>): Promise<Value> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt()
    } catch (error) {
      const isDeadlock = errorCode(error) === '40P01' || errorCode(error) === '40001'
      if (!isDeadlock || tries === DEADLOCK_TRIES) throw error
    }
  }
}

/** The SQLSTATE of a database error. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Whether there is one with the same key already. */
export function isUniqueViolation(error: unknown): boolean {
  return errorCode(error) === '23505'
}

/**
 * Whether what was to be written is to blame: classes 22 and 23 are what a value can cause, and 54 what one that is too long can,
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
export function isAboutData(error: unknown): boolean {
  return /^(2[23]|54)/.test(errorCode(error) ?? '')
}
