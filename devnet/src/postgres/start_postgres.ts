import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { commandLine, identify } from '../processes/identity.ts'
import { withLock } from '../processes/lock_file.ts'
import {
  choosePort,
  launch,
  type NodeProcess,
  stopProcess,
  waitUntilReady,
} from '../processes/node_process.ts'
import { binaries, clusterFolder, serverUser } from './cluster_place.ts'
import type { ClusterPlace } from './make_cluster.ts'
import { makeClusterAside } from './make_cluster_aside.ts'

export type Postgres = {
  /** Database `postgres`, as a superuser; a test makes its own database from it. */
  readonly url: string
  readonly port: number
  readonly pid: number
  /** True when the server was already running. */
  readonly adopted: boolean
  stop(): Promise<void>
}

export type PostgresOptions = {
  readonly dataDir: string
  readonly port?: number
  readonly log?: (line: string) => void
  /** How long a server that is found running may answer nobody before it is taken for hung and started anew. */
  readonly hungAfterMs?: number
  /** Called when there is nothing to do here for a while: others may use this process's time. */
  readonly onWaiting?: () => void
  /** On top of our own: a test that never asks what survives a crash need not wait for the disk. */
  readonly settings?: Readonly<Record<string, string>>
  /** A new cluster begins as a copy of what was made ahead under this name, or empty where nothing was. Asked only for a new one. */
  readonly template?: () => Promise<string>
}

/** On a busy machine, or while it recovers, a good one is silent for long; and to end it takes more time than to wait. */
const HUNG_AFTER_MS = 30_000

/** PostgreSQL's fast shutdown: open transactions are rolled back, the rest is on disk. */
const POLITE = 'SIGINT'

type Place = ClusterPlace & {
  readonly dataDir: string
  readonly recordPath: string
  readonly logPath: string
  readonly settings: Readonly<Record<string, string>>
}

/**
 * Starts, or finds running, the PostgreSQL that keeps its data below `dataDir`. Several processes may
 * call it at once: one starts the server, the others get `adopted: true`.
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const dataDir = resolve(options.dataDir)
  mkdirSync(dataDir, { recursive: true })
  return withLock(join(dataDir, 'start.lock'), async () => {
    const place = preparePlace(dataDir, options.settings ?? {})
    const running = await adopt(place, options.hungAfterMs ?? HUNG_AFTER_MS)
    if (running !== undefined) return handle(place, running, true)
    if (!existsSync(join(place.cluster, 'PG_VERSION'))) {
      options.log?.('postgres: creating a new cluster')
      const template = await options.template?.()
      const making = makeClusterAside({ ...place, ...(template && { template }) }, options.log)
      options.onWaiting?.()
      await making
    }
    return handle(place, await start(place, options), false)
  })
}

/** Stops the one that keeps its data below `dataDir`, if a killed process has left it running. */
export async function stopPostgresIn(dataDir: string): Promise<void> {
  if (!existsSync(dataDir)) return
  const place = { cluster: clusterFolder(resolve(dataDir), serverUser()) }
  const found = readPidFile(place)
  const identity = found && isOurs(place, found.pid) ? identify(found.pid) : undefined
  if (identity !== undefined) await stopProcess(identity, POLITE)
}

function preparePlace(dataDir: string, settings: Place['settings']): Place {
  const user = serverUser()
  return {
    dataDir,
    settings,
    user,
    cluster: clusterFolder(dataDir, user),
    native: binaries(user),
    password: readOrMakePassword(join(dataDir, 'password')),
    recordPath: join(dataDir, 'server.json'),
    logPath: join(dataDir, 'postgres.log'),
  }
}

function readOrMakePassword(path: string): string {
  if (!existsSync(path)) {
    const draft = `${path}.draft`
    writeFileSync(draft, randomBytes(24).toString('base64url'), { mode: 0o600 })
    renameSync(draft, path)
  }
  return readFileSync(path, 'utf8')
}

/** The first try after a kill -9 of everything can fail on what the dead server left in shared memory. */
async function start(
  place: Place,
  options: { port?: number; log?: (line: string) => void },
): Promise<NodeProcess> {
  const attemptsMax = 40
  for (let attempt = 1; ; attempt++) {
    dropForeignPidFile(place)
    try {
      return await startOnce(place, await choosePort(place.recordPath, options.port))
    } catch (error) {
      if (attempt === attemptsMax) throw error
      if (attempt === 1) options.log?.('postgres: the last server left its lock behind, trying again')
      await delay(150)
    }
  }
}

async function startOnce(place: Place, port: number): Promise<NodeProcess> {
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    max_connections: 200,
    shared_buffers: '64MB',
    fsync: 'on',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...place.settings,
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const launchOptions = {
    ...place,
    port,
    command: [join(place.native, 'bin', 'postgres'), '-D', place.cluster, ...flags],
  }
  const node = await launch(launchOptions)
  await waitUntilReady(node, launchOptions, () => answers(place, port))
  return node
}

/** Adopts a live server of ours; one that lives but does not answer is stopped, so that it can be started. */
async function adopt(place: Place, hungAfterMs: number): Promise<NodeProcess | undefined> {
  const found = readPidFile(place)
  if (found === undefined || !isOurs(place, found.pid)) return undefined
  const identity = identify(found.pid)
  if (identity === undefined) return undefined
  const node = { ...identity, port: found.port }
  try {
    const launched = { ...place, command: ['postgres'] }
    await waitUntilReady(node, launched, () => answers(place, node.port), hungAfterMs)
    return node
  } catch {
    await stopProcess(node, 'SIGQUIT')
    return undefined
  }
}

async function answers(place: Place, port: number): Promise<boolean> {
  const client = new pg.Client({ connectionString: url(place, port), connectionTimeoutMillis: 2_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query('show data_directory')
    return rows[0]?.data_directory === place.cluster
  } finally {
    await client.end().catch(() => {})
  }
}

/**
 * postmaster.pid: line 1 is the pid, line 4 the port.
 * https://www.postgresql.org/docs/current/storage-file-layout.html
 */
function readPidFile(place: Pick<Place, 'cluster'>): { pid: number; port: number } | undefined {
  try {
    const lines = readFileSync(join(place.cluster, 'postmaster.pid'), 'utf8').split('\n')
    return { pid: Number.parseInt(lines[0] ?? '', 10), port: Number.parseInt(lines[3] ?? '', 10) }
  } catch {
    return undefined
  }
}

function isOurs(place: Pick<Place, 'cluster'>, pid: number): boolean {
  return commandLine(pid).includes(`-D ${place.cluster}`)
}

/** PostgreSQL refuses to start while the pid in its file lives, even if it is now another program's. */
function dropForeignPidFile(place: Place): void {
  const found = readPidFile(place)
  if (found === undefined || identify(found.pid) === undefined || isOurs(place, found.pid)) return
  rmSync(join(place.cluster, 'postmaster.pid'), { force: true })
}

function url(place: Place, port: number): string {
  return `postgresql://cambist:${place.password}@127.0.0.1:${port}/postgres`
}

function handle(place: Place, node: NodeProcess, adopted: boolean): Postgres {
  return {
    url: url(place, node.port),
    port: node.port,
    pid: node.pid,
    adopted,
    stop: () => stopProcess(node, POLITE),
  }
}
