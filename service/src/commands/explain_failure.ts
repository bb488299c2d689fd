import { isIP } from 'node:net'
import { CommandRefused } from '../command_refused.ts'
import { ConfigError } from '../config/problems.ts'
import { errorCode, SERVICE_ROLE } from '../db/database.ts'
import { CONNECT_TIMEOUT, SchemaRefused } from '../db/migrate.ts'
import { SignerDatabaseFailed } from '../db/signer_database.ts'
import { HostUnknown } from '../http/listen_at.ts'
import { FolderTaken } from '../sandbox/own_folder.ts'
import { SocketTaken } from '../signer/socket/socket_server.ts'

const operatorsFailures = [ConfigError, CommandRefused, SocketTaken, FolderTaken, SchemaRefused, HostUnknown]

/**
 * What to tell at the terminal of a failure that an operator can do something about; null for one that is a fault of
 * ours, which is told with its stack.
 */
export function explainFailure(error: unknown): string | null {
  if (!(error instanceof SignerDatabaseFailed)) return explain(error, 'DATABASE_URL')
  const { cause } = error
  const told = explain(cause, 'SIGNER_DATABASE_URL')
  return cause instanceof SchemaRefused ? `SIGNER_DATABASE_URL: ${told}` : told
}

/** The variable that names the database. */
type DatabaseVariable = 'DATABASE_URL' | 'SIGNER_DATABASE_URL'

function explain(error: unknown, variable: DatabaseVariable): string | null {
  if (operatorsFailures.some((kind) => error instanceof kind)) return (error as Error).message
  // localhost is tried as IPv6 and as IPv4; both say the same.
  if (error instanceof AggregateError) return explain(error.errors[0], variable)
  if (!(error instanceof Error)) return null
  return explainListening(error) ?? explainFile(error) ?? explainDatabase(error, variable)
}

type SystemError = Error & {
  readonly syscall?: string
  readonly address?: string
  readonly port?: number
  readonly path?: string
}

const LISTENING: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there; set PORT to a free one, or 0 to let the system choose',
  EADDRNOTAVAIL: 'this machine does not have that address; set HOST to one of its own',
  EACCES: 'this user may not; set PORT to 1024 or above',
}

function explainListening(error: SystemError): string | null {
  const why = LISTENING[errorCode(error) ?? '']
  if (error.syscall !== 'listen' || why === undefined) return null
  // A socket in the file system; Node says EACCES as well where its folder is missing.
  if (isIP(error.address ?? '') === 0)
    return `Cannot listen on ${error.address}: its folder is not there, or this user may not write to it.`
  return `Cannot listen on ${error.address} port ${error.port}: ${why}.`
}

const FILES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is no folder',
  EROFS: 'it is on a file system that cannot be written',
  ENOSPC: 'the disk is full',
}

/** Of what was opened before Node names no path. */
const OPENED = new Set(['read', 'write'])

function explainFile({ code, syscall = '', path }: SystemError & { readonly code?: string }): string | null {
  const why = FILES[code ?? '']
  if (why === undefined || (path === undefined && !OPENED.has(syscall))) return null
  return `Cannot ${[syscall, path].filter(Boolean).join(' ')}: ${why}.`
}

/** `connect` and `getaddrinfo`: of what a command waits for, only a database is reached over a connection; HOST has a failure of its own. */
const CONNECTING = new Set(['connect', 'getaddrinfo'])

/** In the words of pg: a connection that did not come in time. */
const SILENCE = new Set([
  CONNECT_TIMEOUT,
  'timeout exceeded when trying to connect',
  'Connection terminated due to connection timeout',
])

/** In the words of pg, of Node and of PostgreSQL: a connection that was lost while something was asked, and an answer that did not come. */
const LOST = new Set([
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Client has encountered a connection error and is not queryable',
  'Query read timeout',
])
const LOST_CODES = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  '57P01',
  '57P02',
  '25P03',
  '08003',
  '08006',
  '08007',
])
/** What a failover leads to, under a name that stays the same. */
const READ_ONLY = '25006'

/** In the words of pg. */
const WITHOUT_TLS = 'The server does not support SSL connections'
/** https://nodejs.org/api/tls.html#x509-certificate-error-codes, and a certificate of another host. */
const CERTIFICATE = /CERT|LEAF_SIGNATURE/

/** SQLSTATE classes: no connection, authorization, no such database, resources, operator's intervention. */
const OPERATORS_CLASSES = /^(08|28|3D|53|57)/
/** query_canceled and lock_not_available: what it was asked took longer than a setting there allows, or somebody has ended it. */
const CUT_SHORT = new Set(['57014', '55P03'])
/** Among others of a start-up parameter that names a role which is not there. */
const INVALID_PARAMETER_VALUE = '22023'
const INSUFFICIENT_PRIVILEGE = '42501'
/** In the words of the runner of migrations, which leaves out the code: what its own table was refused with. */
const OWN_TABLE = /^Unable to ensure migrations table: error: ((?:permission denied|must be owner).*)/

function explainDatabase(error: SystemError, variable: DatabaseVariable): string | null {
  const code = errorCode(error) ?? ''
  if (error.message === WITHOUT_TLS) {
    return `The database speaks no TLS, and the sslmode in ${variable} wants it.`
  }
  if (CERTIFICATE.test(code)) {
    return `The certificate of the database is not believed (${error.message}). Does ${variable} name its host, and who signs its certificate (sslrootcert=/path/of/ca.pem)?`
  }
  if (CONNECTING.has(error.syscall ?? '') || SILENCE.has(error.message)) {
    return `The database does not answer (${error.message}). Is PostgreSQL running, and is ${variable} right?`
  }
  if (LOST.has(error.message) || LOST_CODES.has(code)) {
    return `The database went away in the middle (${error.message}). It may have been done: give it again, it is taken once; but of \`keys\`, \`audit note\` and \`addresses skip\`, which do it once more, look first (\`keys list\`, \`audit show\`).`
  }
  if (code === READ_ONLY) {
    return `The database may only be read (${error.message}): it stands by for another. Is ${variable} right?`
  }
  if (CUT_SHORT.has(code)) {
    return `The database has cut it short: ${error.message}. What was under way is undone. Somebody has ended it there, or it took longer than a setting allows (statement_timeout, lock_timeout): try it again when less is going on.`
  }
  if (OPERATORS_CLASSES.test(code)) return `The database refuses: ${error.message}. Is ${variable} right?`
  if (code === INVALID_PARAMETER_VALUE && error.message.includes(SERVICE_ROLE)) {
    return `The database refuses: ${error.message}. A dump has no roles in it: on the server that it is restored on a superuser has to CREATE ROLE cambist_service NOLOGIN and GRANT cambist_service TO … WITH ADMIN OPTION, to the user in ${variable}. Make the role, then have the dump restored once more: what it grants that role was left out (docs/operating/running.md, Backup).`
  }
  const forbidden = code === INSUFFICIENT_PRIVILEGE ? error.message : OWN_TABLE.exec(error.message)?.[1]
  if (forbidden !== undefined) {
    return `The database refuses: ${forbidden}. The user in ${variable} must own the database, and may create roles at the first start; one that owns nothing needs its owner to run ${migrating[variable]} before. Where another Cambist database of the server made the role, a superuser has to: GRANT cambist_service TO … WITH ADMIN OPTION.`
  }
  return null
}

/** The command works on the database of DATABASE_URL, whatever that is used for. */
const migrating: Readonly<Record<DatabaseVariable, string>> = {
  DATABASE_URL: 'cambist migrate',
  SIGNER_DATABASE_URL: 'cambist migrate, with this database as DATABASE_URL,',
}
