import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { removePostgres, startDevnet, startPostgres } from '@cambist/devnet'
import { tell } from './figure.ts'
import { kibibytes } from './process_memory.ts'
import { startServerProcess } from './server_process.ts'

/**
 * How long a stranger waits for `npm start`, by the wall: for the first time on an empty folder, and again on what that
 * left. bitcoind and the compiled contracts are in the cache that an earlier run fills. And what the service holds in
 * memory when nothing happens, with all roles in a process without nodes.
 */
const CLI = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const READY = 'Cambist sandbox ready'
const IDLE_MS = 15_000
const MEBIBYTE = 1024

const folder = mkdtempSync(join(tmpdir(), 'cambist-bench-start-'))
try {
  await findEverything()
  tellStart('the first time', await start(join(folder, 'sandbox')), { atMost: 3 })
  tellStart('again', await start(join(folder, 'sandbox')))
  await measureMemory()
} finally {
  removePostgres(join(folder, 'sandbox', 'postgres'))
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)

/** Downloads and compiles what is not in the cache yet: that is once for a machine, and not a start. */
async function findEverything(): Promise<void> {
  const devnet = await startDevnet({ dataDir: join(folder, 'first'), mining: 'manual', log: console.log })
  await devnet.stop()
}

type Started = { readonly seconds: number; readonly cpuSeconds: number }

function start(dataDir: string): Promise<Started> {
  const beganMs = performance.now()
  const env = {
    ...process.env,
    CAMBIST_DATA_DIR: dataDir,
    PORT: '0',
    // As npm start, which finds what the installation has compiled.
    NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/cambist', import.meta.url)),
  }
  const child = spawn(process.execPath, [CLI, 'sandbox'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  let started: Started | undefined
  return new Promise((resolve, reject) => {
    child.stdout.on('data', (text: Buffer) => {
      if (started !== undefined || !text.toString().includes(READY)) return
      started = { seconds: (performance.now() - beganMs) / 1_000, cpuSeconds: cpuSecondsOf(child.pid ?? 0) }
      child.kill('SIGINT')
    })
    child.once('exit', (code) =>
      started ? resolve(started) : reject(new Error(`the sandbox ended with ${code} before it was ready`)),
    )
  })
}

/** https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: a hundred ticks a second. */
function cpuSecondsOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  return ((fields[11] ?? 0) + (fields[12] ?? 0)) / 100
}

function tellStart(
  when: string,
  { seconds, cpuSeconds }: Started,
  limit?: { readonly atMost: number },
): void {
  tell({
    name: `npm start to ready, ${when}`,
    value: seconds,
    unit: 'seconds',
    ...(limit && { limit }),
    detail: `${cpuSeconds.toFixed(1)} s of processor in the service's own process`,
  })
}

async function measureMemory(): Promise<void> {
  const [devnet, postgres] = await Promise.all([
    startDevnet({ dataDir: join(folder, 'devnet'), mining: 'manual' }),
    startPostgres({ dataDir: join(folder, 'postgres') }),
  ])
  try {
    const args = [postgres.url, JSON.stringify(devnet.networks), folder]
    const server = await startServerProcess('all_roles_server.ts', args)
    await delay(IDLE_MS)
    tell({
      name: 'Memory of the idle service, all roles in one process, without the chains',
      value: kibibytes(server.pid, 'status', 'VmRSS') / MEBIBYTE,
      unit: 'MiB resident',
      detail: 'prices of the sandbox: reading venues with ccxt comes on top',
    })
    const processes = [postgres.pid, ...childrenOf(postgres.pid)]
    const shares = processes.map((pid) => kibibytes(pid, 'smaps_rollup', 'Pss'))
    tell({
      name: 'Memory of its PostgreSQL',
      value: shares.reduce((sum, share) => sum + share, 0) / MEBIBYTE,
      unit: 'MiB, shared pages counted once',
      detail: `${processes.length} processes`,
    })
    await server.stop()
  } finally {
    await Promise.all([devnet.stop(), postgres.stop()])
    removePostgres(join(folder, 'postgres'))
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === parent)
}

function parentOf(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined
  }
}
