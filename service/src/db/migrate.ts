import pg from 'pg'
import { errorCode, type Sql } from './database.ts'
import { compareMigrations, MIGRATIONS_FOLDER, ownMigrations } from './migrations_done.ts'

/** A later release has changed the tables: nobody can say what an earlier one would make of them. */
export class LaterSchema extends Error {
  override readonly name = 'LaterSchema'
}

/** What the database says it has is the state of no release: nobody can say what a migration would make of its tables. */
export class SchemaBroken extends Error {
  override readonly name = 'SchemaBroken'
}

/**
 * Brings the database to the present schema; does nothing when it is there. Several processes may start at once:
 * one works, the others wait. Throws LaterSchema, and changes nothing, when a later release has been there; SchemaBroken when a
 * migration is missing before one that is done.
 */
export async function migrate(url: string, log: (line: string) => void): Promise<void> {
  const missing = await connected(url, async (client) => {
    await refuseLater(client)
    const names = await missingIn(client)
    refuseGaps(names)
    return names
  })
  if (missing.length > 0) await connected(url, (client) => runMissing(client, log), AS_LONG_AS_IT_TAKES)
}

/** The migrations that the database would need, by name; changes nothing. */
export function findMissing(url: string): Promise<readonly string[]> {
  return connected(url, missingIn)
}

/** Throws LaterSchema when a later release has been there. */
export function refuseLaterSchema(url: string): Promise<void> {
  return connected(url, refuseLater)
}

/** A server that takes a connection and says nothing would keep a start waiting for ever, and nobody would be told. */
const CONNECT_MS = 10_000
const ANSWER_MS = 35_000
/** A migration may change a table of any size, and waits for whoever does so. */
const AS_LONG_AS_IT_TAKES = 0

/** A connection for what has to be known before the schema is the present one; as the user of the URL, in no role of ours. */
export async function connected<Value>(
  url: string,
  work: (client: pg.Client) => Promise<Value>,
  answerMs = ANSWER_MS,
): Promise<Value> {
  const client = await connect(url, answerMs).catch((error: Error) => {
    // A process that starts is busy itself, and may hear an answer only after the time for it is over. Nothing was asked yet.
    if (error.message !== CONNECT_TIMEOUT) throw error
    return connect(url, answerMs)
  })
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** In the words of pg. */
export const CONNECT_TIMEOUT = 'timeout expired'

async function connect(url: string, answerMs: number): Promise<pg.Client> {
  // Our own: the runner does not wait until one of its is closed, and a server that is stopped meanwhile ends the process.
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: answerMs,
    // One that waits for hours says nothing meanwhile: what stands between might take it for dead and drop it without a word.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    return client
  } catch (error) {
    await client.end()
    throw error
  }
}

const NO_SUCH_TABLE = '42P01'

async function missingIn(client: pg.Client): Promise<readonly string[]> {
  const compared = await unlessEmpty(compareMigrations(sqlOf(client)))
  return compared?.missing ?? ownMigrations
}

async function refuseLater(client: pg.Client): Promise<void> {
  const later = (await unlessEmpty(compareMigrations(sqlOf(client))))?.unknown ?? []
  if (later.length === 0) return
  throw new LaterSchema(
    `The database has the schema of a later release (it also has: ${later.join(', ')}). Use that release.`,
  )
}

/** Null for a database that no release has been to, or none yet that made the table. */
export async function unlessEmpty<Value>(question: Promise<Value>): Promise<Value | null> {
  try {
    return await question
  } catch (error) {
    if (errorCode(error) === NO_SUCH_TABLE) return null
    throw error
  }
}

function sqlOf(client: pg.Client): Sql {
  return { query: async (text, values = []) => (await client.query(text, [...values])).rows }
}

/** Whatever the server, the database or its user is set to; servers before 17 do not know the last one. */
const LIMITS = [
  'statement_timeout',
  'lock_timeout',
  'idle_in_transaction_session_timeout',
  'transaction_timeout',
]

async function liftLimits(client: pg.Client): Promise<void> {
  await client.query(`SELECT set_config(name, '0', false) FROM pg_settings WHERE name = ANY ($1)`, [LIMITS])
}

/** By name: the time that each was done at says nothing, a clock may have been ahead. */
function refuseGaps(missing: readonly string[]): void {
  const last = ownMigrations.findLast((name) => !missing.includes(name))
  const gaps = missing.filter((name) => last !== undefined && name < last)
  if (gaps.length === 0) return
  throw new SchemaBroken(
    `The database has ${last}, and not what comes before it (${gaps.join(', ')}): nothing was changed. Where rows of schema_migrations were lost, put them back; else restore the database.`,
  )
}

async function runMissing(dbClient: pg.Client, log: (line: string) => void): Promise<void> {
  await liftLimits(dbClient)
  // Every process asks whether something is missing; few find that it is.
  const { runner } = await import('node-pg-migrate')
  await runner({
    dbClient,
    dir: MIGRATIONS_FOLDER,
    migrationsTable: 'schema_migrations',
    direction: 'up',
    advisoryLockMode: 'wait',
    checkOrder: false,
    // What fails is thrown, and told by whoever catches it.
    logger: { debug: log, info: log, warn: log, error: () => {} },
  })
}
