import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { eventually, Hopeless } from '../../harness/eventually.ts'
import { START_PATIENCE_MS } from '../../harness/patience.ts'
import { processEnvironment } from '../../harness/process_environment.ts'

export type LogLine = Readonly<Record<string, unknown>> & { readonly level: number; readonly msg: string }

/** One process of the service, seen from outside: its port, what it wrote, how it ended. */
export type RunningProcess = {
  readonly roles: string
  readonly pid: number
  /** Where it listens. */
  readonly origin: string
  /** What it wrote to its log so far. */
  log(): LogLine[]
  /** Everything it wrote so far, to both streams. */
  output(): string
  isRunning(): boolean
  send(signal: NodeJS.Signals): void
  /** The exit code, or the signal that ended it, once all that it wrote is in `output`. */
  readonly ended: Promise<number | NodeJS.Signals>
  /** SIGKILL: it has no say in it. */
  kill(): Promise<void>
}

const STOP_SECONDS = 60

const entry = fileURLToPath(new URL('./serve_process.ts', import.meta.url))

/** Starts a process and waits until it says that it is up; throws with its output when it ends instead. */
export async function startProcess(options: {
  readonly roles: string
  readonly env: Readonly<Record<string, string>>
  readonly venueOrigins: Readonly<Record<string, string>>
  /** How long it may take to stop; unless told, as long as a machine may need that is busy with others. */
  readonly stopSeconds?: number
}): Promise<RunningProcess> {
  const { roles, env, venueOrigins, stopSeconds = STOP_SECONDS } = options
  const child = spawn(process.execPath, [entry, roles, JSON.stringify(venueOrigins), String(stopSeconds)], {
    env: { ...processEnvironment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const written = collect(child)
  // At `exit` not all that it wrote may have been read.
  const ended = once(child, 'close').then(([code, signal]) => (signal ?? code) as number | NodeJS.Signals)
  const isRunning = () => child.exitCode === null && child.signalCode === null
  const log = () => parseLines(written())
  const up = await eventually(
    `the process ${roles} is up`,
    () => {
      const line = log().find(({ msg }) => msg === 'the service is up')
      if (line !== undefined) return line
      if (!isRunning()) throw new Hopeless(`it ended`)
      throw new Error('it is still starting')
    },
    // On a machine that has other work, loading alone takes half a minute.
    { timeoutMs: START_PATIENCE_MS, context: written },
  ).catch((error: unknown) => {
    // Whoever waits for it has nothing to stop it by.
    child.kill('SIGKILL')
    throw error
  })
  return {
    roles,
    pid: child.pid ?? 0,
    origin: String(up.listens),
    log,
    output: written,
    isRunning,
    send: (signal) => void child.kill(signal),
    ended,
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

function collect({ stdout, stderr }: ChildProcess): () => string {
  let text = ''
  for (const stream of [stdout, stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
  }
  return () => text
}

function parseLines(text: string): LogLine[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as LogLine)
}
