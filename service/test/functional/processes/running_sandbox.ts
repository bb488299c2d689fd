import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Client, createClient } from '@cambist/sdk'
import { type SandboxRemote, sandboxRemote } from '../../../src/sandbox/remote.ts'
import { eventually, Hopeless } from '../../harness/eventually.ts'
import { impatient } from '../../harness/impatient.ts'
import { START_PATIENCE_MS } from '../../harness/patience.ts'
import { processEnvironment } from '../../harness/process_environment.ts'

/** sandbox.json, as tools rely on it. */
export type SandboxFile = {
  readonly mailbox_url: string
  readonly smtp_url: string
  readonly base_url: string
  readonly api_key: string
  readonly api_secret: string
  readonly webhook_secret: string
  readonly networks: Readonly<Record<string, { readonly rpcUrl: string }>>
}

/** The programs of one sandbox by name: `btc`, `eth`, `bnb`, `postgres`. */
export type Pids = Readonly<Record<string, number>>

/** `npm start` in another process, seen as whoever typed it sees it. */
export type RunningSandbox = {
  readonly file: SandboxFile
  readonly client: Client
  readonly remote: SandboxRemote
  readonly pid: number
  /** What it wrote so far, to both streams. */
  output(): string
  /** Sends a signal and waits for the end; gives the exit code, or the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null>
}

const ROOT = join(import.meta.dirname, '../../../..')
const CLI = join(ROOT, 'service/src/cli.ts')

/** An environment with nothing of the test's own in it. */
function environment(more: Readonly<Record<string, string>>): Record<string, string> {
  return { ...processEnvironment, HOME: process.env.HOME ?? '', PORT: '0', HOST: '127.0.0.1', ...more }
}

export type Ended = { readonly code: number | NodeJS.Signals | null; readonly output: string }

/** Runs a script of the service to its end. */
export async function run(
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Ended> {
  const { output, ended } = launch(join(ROOT, script), args, env)
  return { code: await ended, output: output() }
}

/** Does not wait for anything. */
export function launchSandbox(
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
  args: string[] = [],
) {
  return launch(CLI, ['sandbox', ...args], { CAMBIST_DATA_DIR: dataDir, ...env })
}

/** Starts a sandbox and waits until it says that it is ready. */
export async function startSandboxProcess(
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
  args: string[] = [],
): Promise<RunningSandbox> {
  const { child, output, ended } = launchSandbox(dataDir, env, args)
  await eventually(
    'the sandbox is ready',
    () => {
      if (/^Cambist sandbox ready/m.test(output())) return
      throw child.exitCode === null && child.signalCode === null
        ? new Error('not yet')
        : new Hopeless('it ended')
    },
    { timeoutMs: START_PATIENCE_MS, context: output },
  )
  const file = JSON.parse(readFileSync(join(dataDir, 'sandbox.json'), 'utf8')) as SandboxFile
  return {
    file,
    client: createClient({
      baseUrl: file.base_url,
      apiKey: file.api_key,
      apiSecret: file.api_secret,
      ...impatient,
    }),
    remote: sandboxRemote(file.base_url),
    pid: child.pid ?? 0,
    output,
    end: async (signal) => {
      child.kill(signal)
      return ended
    },
  }
}

function launch(path: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  const child: ChildProcess = spawn(process.execPath, [path, ...args], {
    cwd: ROOT,
    env: environment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
  }
  // At `exit` not all that it wrote may have been read. Its nodes write to files, and keep no pipe open that it leaves behind.
  const ended = once(child, 'close').then(([code, signal]) => (signal ?? code) as Ended['code'])
  return { child, output: () => text, ended }
}

const records: Readonly<Record<string, string>> = {
  btc: 'devnet/bitcoin/node.json',
  eth: 'devnet/eth/node.json',
  bnb: 'devnet/bnb/node.json',
  postgres: 'postgres/server.json',
}

/** The programs that the records beside the data name, dead or alive. */
export function pidsOf(dataDir: string): Pids {
  const found = Object.entries(records).filter(([, path]) => existsSync(join(dataDir, path)))
  return Object.fromEntries(
    found.map(([name, path]) => [name, JSON.parse(readFileSync(join(dataDir, path), 'utf8')).pid]),
  )
}

/** Those that live; a zombie does not. */
export function living(pids: Pids): string[] {
  return Object.entries(pids)
    .filter(([, pid]) => isAlive(pid))
    .map(([name]) => name)
    .sort()
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    if (process.platform !== 'linux') return true
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2))
  } catch {
    return false
  }
}

/** Whatever a failed test left behind. */
export function killAll(pids: Pids): void {
  for (const pid of Object.values(pids)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // it has ended already
    }
  }
}
