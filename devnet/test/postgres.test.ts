import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Postgres, removePostgres, startPostgres, stopPostgresIn } from '../src/index.ts'
import { identify } from '../src/processes/identity.ts'
import { waitFor } from '../src/processes/wait.ts'
import { killHard, makeTemporaryFolder, query, runScript } from './harness.ts'

/**
 * What: the embedded server starts as any user and in any folder, and keeps its rows whatever is killed.
 * How: one server, killed and started again; the folder is one that only root can walk into.
 */
const folder = makeTemporaryFolder()
const dataDir = join(folder.path, 'postgres')
let server: Postgres

beforeAll(async () => {
  server = await startPostgres({ dataDir })
})

afterAll(async () => {
  await server?.stop()
  removePostgres(dataDir)
  folder.remove()
})

test('it is UTF-8, durable, on loopback only, and asks for a password', async () => {
  for (const [setting, value] of [
    ['server_encoding', 'UTF8'],
    ['fsync', 'on'],
    ['listen_addresses', '127.0.0.1'],
    ['max_connections', '200'],
    ['TimeZone', 'UTC'],
  ]) {
    expect(await query(server.url, `select current_setting('${setting}') as value`)).toEqual([{ value }])
  }
  const wrong = server.url.replace(/:[^:@]+@/, ':wrong@')
  await expect(query(wrong, 'select 1')).rejects.toThrow('password')
  expect(statSync(join(dataDir, 'password')).mode & 0o777).toBe(0o600)
})

test('several starts at once find the same server', async () => {
  const found = await Promise.all([1, 2, 3].map(() => startPostgres({ dataDir })))
  expect(found.map(({ pid, adopted }) => ({ pid, adopted }))).toEqual(
    found.map(() => ({ pid: server.pid, adopted: true })),
  )
})

test('a server left behind by a killed process is adopted', async () => {
  await server.stop()
  const { child, said } = await runScript<{ pid: number; url: string }>('run_postgres.ts', dataDir)
  await query(said.url, 'create table kept as select 42 as answer')
  await killHard(child)
  server = await startPostgres({ dataDir })
  expect({ pid: server.pid, adopted: server.adopted, url: server.url }).toEqual({ ...said, adopted: true })
})

test('a server that is silent for seconds is adopted, and not started anew', async () => {
  const { pid } = server
  process.kill(pid, 'SIGSTOP')
  const goesOn = setTimeout(() => process.kill(pid, 'SIGCONT'), 7_500)
  server = await startPostgres({ dataDir }).finally(() => clearTimeout(goesOn))
  expect(server).toMatchObject({ pid, adopted: true })
})

test('one that is silent for longer than it may be is started anew, with its rows', async () => {
  const { pid } = server
  process.kill(pid, 'SIGSTOP')
  // Told to end, it does so once it goes on.
  const goesOn = setTimeout(() => process.kill(pid, 'SIGCONT'), 4_000)
  server = await startPostgres({ dataDir, hungAfterMs: 500 }).finally(() => clearTimeout(goesOn))
  expect(server.adopted).toBe(false)
  expect(server.pid).not.toBe(pid)
  expect(await query(server.url, 'select answer from kept')).toEqual([{ answer: 42 }])
})

test('one left behind is stopped for whoever deletes the folder, and none is started for it', async () => {
  const { pid } = server
  await stopPostgresIn(dataDir)
  expect(identify(pid)).toBeUndefined()
  await stopPostgresIn(dataDir)
  await stopPostgresIn(join(folder.path, 'never'))
  server = await startPostgres({ dataDir })
  expect(server.adopted).toBe(false)
})

test('after a kill of the server it starts again with its rows', async () => {
  const { pid } = server
  process.kill(pid, 'SIGKILL')
  await waitFor('its end', () => identify(pid) === undefined, { timeoutMs: 60_000 })
  server = await startPostgres({ dataDir })
  expect(server.adopted).toBe(false)
  expect(await query(server.url, 'select answer from kept')).toEqual([{ answer: 42 }])
})

test('a pid file that names a stranger does not stop it from starting', async () => {
  const [{ folder: cluster } = { folder: '' }] = (await query(
    server.url,
    `select current_setting('data_directory') as folder`,
  )) as { folder: string }[]
  const pidFile = join(cluster, 'postmaster.pid')
  const lines = readFileSync(pidFile, 'utf8').split('\n')
  await server.stop()
  writeFileSync(pidFile, [process.pid, ...lines.slice(1)].join('\n'))
  server = await startPostgres({ dataDir })
  expect(server.adopted).toBe(false)
})

test('in a folder that everybody can walk into, the cluster lies in the data folder', async () => {
  const open = makeTemporaryFolder()
  chmodSync(open.path, 0o755)
  const other = await startPostgres({ dataDir: open.path })
  const rows = await query(other.url, `select current_setting('data_directory') as folder`)
  expect(dirname(String(rows[0]?.folder))).toBe(open.path)
  await other.stop()
  removePostgres(open.path)
})
