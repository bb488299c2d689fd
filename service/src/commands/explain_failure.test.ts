import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import fastify from 'fastify'
import { expect, test, vi } from 'vitest'
import { CommandRefused } from '../command_refused.ts'
import { readFirstLine } from '../config/environment.ts'
import { readServeConfig } from '../config/serve_config.ts'
import { LaterSchema, migrate, SchemaRefused } from '../db/migrate.ts'
import { SignerDatabaseFailed } from '../db/signer_database.ts'
import { listenAt } from '../http/listen_at.ts'
import { explainFailure } from './explain_failure.ts'

async function failureOf(work: () => Promise<unknown>): Promise<unknown> {
  try {
    await work()
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

function listen(port: number) {
  const server = createServer()
  return new Promise<typeof server>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

function portOf(server: Awaited<ReturnType<typeof listen>>): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

test('a port in use is told with what to do', async () => {
  const holder = await listen(0)
  const port = portOf(holder)
  const failure = await failureOf(() => listen(port))
  holder.close()
  expect(explainFailure(failure)).toBe(
    `Cannot listen on 127.0.0.1 port ${port}: another process listens there; set PORT to a free one, or 0 to let the system choose.`,
  )
})

test('a HOST that is no address is told as that, and not as a database that is away', async () => {
  const failure = await failureOf(() => listenAt(fastify(), { port: 0, host: '127.0.0.300' }))
  expect(explainFailure(failure)).toBe(
    'Cannot listen on 127.0.0.300: the name has no address; set HOST to an address of this machine, or to a name of one.',
  )
})

test('a folder in the place of a file, and a full disk, are told as what they are', async () => {
  const folder = await failureOf(async () => readFirstLine(tmpdir()))
  expect(explainFailure(folder)).toBe('Cannot read: it is a folder.')
  if (!existsSync('/dev/full')) return
  const full = await failureOf(async () => writeFileSync('/dev/full', 'words'))
  expect(explainFailure(full)).toBe('Cannot write: the disk is full.')
})

test('a role that another database of the server has made is told with who has to grant it', () => {
  const error = { message: 'permission denied to grant role "cambist_service"', code: '42501' }
  expect(explainFailure(Object.assign(new Error(error.message), error))).toContain(
    'GRANT cambist_service TO … WITH ADMIN OPTION',
  )
})

test.each([LaterSchema, SchemaRefused])('why the schema is left as it is is told as it is: %o', (Refusal) => {
  const why = 'The database has the schema of a later release.'
  expect(explainFailure(new Refusal(why))).toBe(why)
  expect(explainFailure(new SignerDatabaseFailed(new Refusal(why)))).toBe(`SIGNER_DATABASE_URL: ${why}`)
})

test.each([
  ['57014', 'canceling statement due to statement timeout'],
  ['55P03', 'canceling statement due to lock timeout'],
])('what the server ends with %s is told as that, and not as a wrong address', (code, why) => {
  const told = explainFailure(Object.assign(new Error(why), { code }))
  expect(told).toContain(`The database has cut it short: ${why}. What was under way is undone.`)
  expect(told).not.toContain('DATABASE_URL')
})

test('a socket whose folder is missing is told as what it is', async () => {
  const path = '/nowhere/signer.sock'
  const failure = await failureOf(async () => {
    const server = createServer().listen(path)
    await once(server, 'listening')
  })
  expect(explainFailure(failure)).toBe(
    `Cannot listen on ${path}: its folder is not there, or this user may not write to it.`,
  )
})

test('a database that is not there is told, and never the password of its URL', async () => {
  const gone = await listen(0)
  const port = portOf(gone)
  gone.close()
  for (const host of ['127.0.0.1', 'localhost']) {
    const url = `postgres://someone:canary-password@${host}:${port}/nowhere`
    const told = explainFailure(await failureOf(() => migrate(url, () => {})))
    expect(told).toMatch(/^The database does not answer \(.*ECONNREFUSED.*\)\. Is PostgreSQL running/)
    expect(told).not.toContain('canary')
  }
})

test('a database that takes connections and says nothing is told as that', async () => {
  const silent = await listen(0)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const failing = failureOf(() => migrate(`postgres://127.0.0.1:${portOf(silent)}/nowhere`, () => {}))
    await vi.advanceTimersByTimeAsync(20_000)
    expect(explainFailure(await failing)).toMatch(/^The database does not answer \(timeout expired\)/)
  } finally {
    vi.useRealTimers()
    silent.close()
  }
})

test('a database without TLS, and one whose certificate nobody vouches for, are told as what they are', async () => {
  const plain = await listen(0)
  plain.on('connection', (socket) => socket.once('data', () => socket.end('N')))
  const url = `postgres://someone@127.0.0.1:${portOf(plain)}/nowhere?sslmode=verify-full`
  const failure = await failureOf(() => migrate(url, () => {}))
  plain.close()
  expect(explainFailure(failure)).toMatch(/^The database speaks no TLS, .*sslmode/)
  for (const code of [
    'SELF_SIGNED_CERT_IN_CHAIN',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'CERT_HAS_EXPIRED',
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ]) {
    const told = explainFailure(Object.assign(new Error('in its own words'), { code }))
    expect(told, code).toMatch(/^The certificate of the database .*in its own words.*sslrootcert/)
  }
})

test.each([
  ['28P01', 'password authentication failed for user "cambist"'],
  ['3D000', 'database "cambist" does not exist'],
  ['53300', 'sorry, too many clients already'],
  ['57P03', 'the database system is starting up'],
])('a refusal of the database (%s) is told in its words', (code, message) => {
  const told = explainFailure(Object.assign(new Error(message), { code }))
  expect(told).toBe(`The database refuses: ${message}. Is DATABASE_URL right?`)
})

test.each([
  ['57P01', 'terminating connection due to administrator command'],
  ['57P02', 'terminating connection because of crash of another server process'],
  ['25P03', 'terminating connection due to idle-in-transaction timeout'],
  ['08006', 'server closed the connection unexpectedly'],
  ['ECONNRESET', 'read ECONNRESET'],
  ['EPIPE', 'write EPIPE'],
  ['ETIMEDOUT', 'read ETIMEDOUT'],
  [undefined, 'Connection terminated unexpectedly'],
  [undefined, 'Connection terminated'],
  [undefined, 'Client has encountered a connection error and is not queryable'],
  [undefined, 'Query read timeout'],
])('a database that goes away in the middle (%s, %s) leaves open whether it was done', (code, message) => {
  const syscall = /^(read|write) /.exec(message)?.[1]
  const told = explainFailure(Object.assign(new Error(message), { code, syscall }))
  expect(told).toContain(`The database went away in the middle (${message}). It may have been done:`)
  expect(told).toMatch(
    /give it again, it is taken once; .*`keys`, `audit note` .*`addresses skip`.* look first/,
  )
})

test.each(['timeout exceeded when trying to connect', 'Connection terminated due to connection timeout'])(
  'where nobody answers at all, nothing was done: %s',
  (message) => {
    expect(explainFailure(new Error(message))).toBe(
      `The database does not answer (${message}). Is PostgreSQL running, and is DATABASE_URL right?`,
    )
  },
)

test('a server that stands by for another is told as that', () => {
  const refusal = new Error('cannot execute INSERT in a read-only transaction')
  expect(explainFailure(Object.assign(refusal, { code: '25006' }))).toBe(
    'The database may only be read (cannot execute INSERT in a read-only transaction): it stands by for another. Is DATABASE_URL right?',
  )
})

test('what a command or the configuration refuses is told as it is', async () => {
  expect(explainFailure(new CommandRefused('there is no key ck_1'))).toBe('there is no key ck_1')
  const failure = await failureOf(async () => readServeConfig({}, 'watcher'))
  expect(explainFailure(failure)).toMatch(/^The configuration has \d problems:\n {2}DATABASE_URL: is needed/)
})

test('a fault of ours is not explained away', () => {
  expect(explainFailure(new TypeError('x is undefined'))).toBeNull()
  expect(explainFailure(Object.assign(new Error('syntax error'), { code: '42601' }))).toBeNull()
  expect(explainFailure('thrown text')).toBeNull()
})
