import pg from 'pg'
import { type ConnectedRoles, connectionName, readConnectedRoles } from './connected_roles.ts'
import { errorCode, type Sql } from './database.ts'
import { compareMigrations, MIGRATIONS_FOLDER, ownMigrations } from './migrations_done.ts'

/** Nothing was changed, for a reason that an operator can do something about. */
export class SchemaRefused extends Error {
  override readonly name: string = 'SchemaRefused'
}

/** A later release has changed the tables: nobody can say what an earlier one would make of them. */
export class LaterSchema extends SchemaRefused {
  override readonly name = 'LaterSchema'
}

/**
 * Brings the database to the present schema; does nothing when it is there. Several processes may start at once:
 * one works, the others wait. Throws SchemaRefused, and changes nothing, when a later release has been there (LaterSchema), when a
 * migration is missing before one that is done, or while a process stays connected that works on the earlier tables.
 *
 * `tell` hears why a start may take long, before it does; `detail` hears what is done.
 */
export async function migrate(
  url: string,
  tell: (line: string) => void,
  detail: (line: string) => void = () => {},
): Promise<void> {
  const missing = await connected(url, missingUnlessRefused)
  if (missing.length === 0) return
  await connected(url, (client) => runMissing(client, tell, detail), AS_LONG_AS_IT_TAKES)
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

async function missingUnlessRefused(client: pg.Client): Promise<readonly string[]> {
  await refuseLater(client)
  const missing = await missingIn(client)
  refuseGaps(missing)
  return missing
}

async function refuseLater(client: pg.Client): Promise<void> {
  const later = (await unlessEmpty(compareMigrations(sqlOf(client))))?.unknown ?? []
  if (later.length === 0) return
  throw new LaterSchema(
    `The database has the schema of a later release (it also has: ${later.join(', ')}). Use that release; the way back is a restore of what was kept before it was started, if at all (docs/operating/running.md, Stopping, updating).`,
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
  throw new SchemaRefused(
    `The database has ${last}, and not what comes before it (${gaps.join(', ')}): nothing was changed. Where rows of schema_migrations were lost, put them back; else restore the database.`,
  )
}

/**
 * Who is connected while something is missing works on the earlier tables: a process of this release connects for its work only once
 * nothing is. None is no proof that none runs (db/connected_roles.ts).
 */
async function refuseConnected(client: pg.Client, tell: (line: string) => void): Promise<void> {
  const connected = await readStayed(client, tell)
  if (connected.length === 0) return
  const names = connected.map(({ roles, serverPid }) => `${connectionName(roles)} (${serverPid})`)
  const ends = connected.map(({ serverPid }) => `pg_terminate_backend(${serverPid})`)
  throw new SchemaRefused(
    `Processes that work on the earlier tables are connected to the database, with the pid that they have at its server: ${names.join('; ')}. Nothing was changed. Stop every process of the earlier release, on all machines, and start this one anew. Where one of them runs no more, end what is left of it at the server: SELECT ${ends.join(', ')}`,
  )
}

/** The server shows what is left of a process that has just been stopped, or killed, for a moment longer. */
const LOOKS_MAX = 60
const LOOK_REST_SECONDS = 0.05

/** Those that are connected and do not leave within a moment. */
async function readStayed(
  client: pg.Client,
  tell: (line: string) => void,
): Promise<readonly ConnectedRoles[]> {
  let connected = await readConnectedRoles(sqlOf(client))
  if (connected.length > 0)
    tell('processes are connected to the database that work on the earlier tables: waiting for them to leave')
  for (let looks = 1; connected.length > 0 && looks < LOOKS_MAX; looks += 1) {
    await client.query('SELECT pg_sleep($1)', [LOOK_REST_SECONDS])
    connected = await readConnectedRoles(sqlOf(client))
  }
  return connected
}

async function takeLock(client: pg.Client, id: number, tell: (line: string) => void): Promise<void> {
  const { rows } = await client.query<{ taken: boolean }>(`SELECT pg_try_advisory_lock(${id}) AS taken`)
  if (rows[0]?.taken === true) return
  tell(
    'another process is changing the tables of the database: waiting until it is done, and nothing listens until then',
  )
  await client.query(`SELECT pg_advisory_lock(${id})`)
}

async function runMissing(
  dbClient: pg.Client,
  tell: (line: string) => void,
  detail: (line: string) => void,
): Promise<void> {
  // Every process asks whether something is missing; few find that it is.
  const { PG_MIGRATE_LOCK_ID, runner } = await import('node-pg-migrate')
  await liftLimits(dbClient)
  // The runner's own lock, which earlier releases take; kept until the connection ends.
  await takeLock(dbClient, PG_MIGRATE_LOCK_ID, tell)
  // Whoever held it meanwhile may have brought what was missing, and more.
  const missing = await missingUnlessRefused(dbClient)
  if (missing.length === 0) return
  await refuseConnected(dbClient, tell)
  tell(
    `the database lacks ${missing.join(', ')}: nothing listens until all is done, which may take long; killing this process undoes the one under way`,
  )
  await runner({
    dbClient,
    dir: MIGRATIONS_FOLDER,
    migrationsTable: 'schema_migrations',
    direction: 'up',
    // Not those of a later release whose files were laid there since this one was loaded.
    count: missing.length,
    noLock: true,
    checkOrder: false,
    // What fails is thrown, and told by whoever catches it.
    logger: { debug: detail, info: detail, warn: detail, error: () => {} },
  })
}
