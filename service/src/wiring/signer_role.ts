import { RECORD_CONNECTIONS_MAX } from '../config/variables.ts'
import type { Database, Sql } from '../db/database.ts'
import { signedTransactions } from '../db/signed_transactions.ts'
import { onSignerDatabase } from '../db/signer_database.ts'
import { findUnrecorded } from '../db/unrecorded.ts'
import type { Signer } from '../signer/signer.ts'
import { socketSigner } from '../signer/socket/socket_client.ts'
import { bringSchema, openPool } from './databases.ts'
import type { Opened } from './opened.ts'
import type { ServiceOptions, SignerRole } from './roles.ts'

/** The signer of this process, which engines of others reach where it has a socket. */
export async function openSigner(
  options: ServiceOptions,
  role: SignerRole,
  { db, record }: { readonly db: Database; readonly record: Database },
  opened: Opened,
): Promise<Signer> {
  const { logger, clock } = options
  await warnOfUnrecorded(options, db, record)
  const { localSigner } = await import('../signer/local_signer.ts')
  const signer = localSigner({
    seed: role.seed,
    store: signedTransactions(record),
    sealKey: role.orderSeal,
    settings: role.settings,
    // Limits an hour and a day are the real world's: a moved clock must not open them.
    clock: { nowMs: clock.wallMs },
  })
  if (role.socket !== null) {
    const { serveSigner } = await import('../signer/socket/socket_server.ts')
    const onError = (error: unknown) => logger.warn({ err: error }, 'the signer failed to answer')
    const server = await serveSigner({ path: role.socket, signer, onError })
    opened.closeWith(server.close)
  }
  return signer
}

/** Where the signer keeps its record: the database of the service itself where no other is named. */
export async function openSignerRecord(
  options: ServiceOptions,
  { databaseUrl }: SignerRole,
  db: Database,
  opened: Opened,
): Promise<Database> {
  if (databaseUrl === options.databaseUrl) return db
  await onSignerDatabase(() => bringSchema(options, databaseUrl, 'SIGNER_DATABASE_URL'))
  const record = openPool(options, databaseUrl, RECORD_CONNECTIONS_MAX)
  opened.closeWith(record.close)
  return record
}

/** A record that is empty or of an earlier state makes room under the limits that there is not: whoever chose it hears of it. */
async function warnOfUnrecorded(
  { logger, clock }: ServiceOptions,
  db: Database,
  record: Database,
): Promise<void> {
  // The first that it is asked in the service's role: what keeps it from an answer is told as its own trouble.
  const query: Sql['query'] = (text, values) => onSignerDatabase(() => record.query(text, values))
  const unrecorded = await findUnrecorded(db, record === db ? db : { query }, clock.nowMs())
  if (unrecorded.length === 0) return
  logger.error(
    { count: unrecorded.length, payouts: unrecorded.slice(0, 10) },
    "the signer's record does not know what it has signed for this database: it is empty, or of an earlier state. Its limits may count less than was spent, and it refuses higher fees for these payouts. If another is the right one, set SIGNER_DATABASE_URL to that. If it was lost and this one was begun anew, nothing is to be done for what is mined, and what is under way waits for its first attempt to be mined (TROUBLE in cambist order show names a conflict where that cannot be any more), unless you tell the record of it as docs/operating/running.md says, below Backup. This is said at each start until those under way have ended and the others are two days old",
  )
}

const SIGNER_TIMEOUT_MS = 30_000

/** The signer of another process. */
export function reachSigner(socket: string | null, opened: Opened): Signer {
  if (socket === null) throw new Error('the engine needs a signer: in its process, or on a socket')
  const signer = socketSigner({ path: socket, timeoutMs: SIGNER_TIMEOUT_MS })
  opened.closeWith(signer.close)
  return signer
}
