import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { basename } from 'node:path'
import { commandLine, identify, isAlive, type ProcessIdentity } from './identity.ts'
import { GiveUp, waitFor } from './wait.ts'

/** A program that outlives us when we are killed, and is found again by the next start. */
export type NodeProcess = ProcessIdentity & { readonly port: number }

export type Launch = {
  readonly command: readonly string[]
  readonly port: number
  readonly recordPath: string
  readonly logPath: string
  readonly user?: { uid: number; gid: number } | undefined
}

/**
 * Starts a program in its own session (a Ctrl-C in our terminal does not reach it) with its output in
 * a file (a pipe would break, and kill it, when we die), and records which process it is.
 */
export async function launch(options: Launch): Promise<NodeProcess> {
  const [program = '', ...args] = options.command
  const log = openSync(options.logPath, 'a')
  const child = spawn(program, args, {
    detached: true,
    stdio: ['ignore', log, log],
    cwd: '/',
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', HOME: '/nonexistent', LC_ALL: 'C', TZ: 'UTC' },
    ...options.user,
  })
  closeSync(log)
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  child.unref()
  const identity = child.pid === undefined ? undefined : identify(child.pid)
  if (identity === undefined) throw diedError(options)
  const node = { ...identity, port: options.port }
  writeFileSync(options.recordPath, JSON.stringify(node), { mode: 0o600 })
  return node
}

/** The recorded process if it is still the same one and `mark` stands in its command line. */
export function findRunning(recordPath: string, mark: string): NodeProcess | undefined {
  const record = readRecord(recordPath)
  if (record === undefined || !isAlive(record)) return undefined
  return commandLine(record.pid).includes(mark) ? record : undefined
}

/** Stops the recorded process, if it is still there. */
export async function stopRunning(recordPath: string, mark: string, polite: NodeJS.Signals): Promise<void> {
  const running = findRunning(recordPath, mark)
  if (running !== undefined) await stopProcess(running, polite)
}

/**
 * Starts a program on a port of its own and waits until it is ready. Somebody else may take the port between our look
 * and the program's: then another is chosen.
 */
export async function startOnFreePort(
  recordPath: string,
  wanted: number | undefined,
  launchOn: (port: number) => Omit<Launch, 'port' | 'recordPath'>,
  isReady: (port: number) => Promise<boolean>,
): Promise<NodeProcess> {
  const attemptsMax = 5
  for (let attempt = 1; ; attempt++) {
    const port = attempt === 1 ? await choosePort(recordPath, wanted) : await freePort()
    const options = { ...launchOn(port), port, recordPath }
    const node = await launch(options)
    try {
      await waitUntilReady(node, options, () => isReady(port))
      return node
    } catch (error) {
      if (attempt === attemptsMax || !(error instanceof GiveUp) || !PORT_TAKEN.test(error.message))
        throw error
    }
  }
}

/** As anvil and bitcoind say it; bitcoind says of its HTTP server no more than that. */
const PORT_TAKEN = /address already in use|unable to bind|unable to start http server/i

/**
 * The port of the last start, when it is free: addresses that people noted down stay valid. What was killed a moment
 * ago may hold it for a moment still.
 */
export async function choosePort(recordPath: string, wanted?: number): Promise<number> {
  const last = wanted ?? readRecord(recordPath)?.port
  const again = last === undefined ? undefined : await whenFree(last)
  return again ?? (await freePort())
}

/**
 * Below the ports that systems give to outgoing connections (Linux from 32768 on, others from 49152 on): any
 * connection of anybody could have one of those at the moment when our program wants it, also when it starts again.
 */
async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const port = await bind(randomInt(20_000, 32_768))
    if (port !== undefined) return port
  }
  return (await bind(0)) ?? fail()
}

/** Undefined: somebody else has it. */
function whenFree(port: number): Promise<number | undefined> {
  return waitFor(`port ${port}`, () => bind(port), { timeoutMs: PORT_TIMEOUT_MS }).catch(() => undefined)
}

const PORT_TIMEOUT_MS = 1_000

/** Waits until `isReady`; gives up at once when the process dies, with the end of its log. */
export async function waitUntilReady(
  node: NodeProcess,
  options: Pick<Launch, 'command' | 'logPath'>,
  isReady: () => Promise<boolean>,
  timeoutMs = 120_000,
): Promise<void> {
  const name = basename(options.command[0] ?? '')
  await waitFor(
    `${name} on port ${node.port}`,
    async () => {
      if (!isAlive(node)) throw diedError(options)
      return isReady()
    },
    { timeoutMs },
  )
}

/** Sends the polite signal, waits, then kills. Returns when the process is gone. */
export async function stopProcess(
  node: ProcessIdentity,
  polite: NodeJS.Signals,
  politeTimeoutMs = 15_000,
): Promise<void> {
  signal(node, polite)
  try {
    await waitFor(`stop ${node.pid}`, () => !isAlive(node), { timeoutMs: politeTimeoutMs })
  } catch {
    signal(node, 'SIGKILL')
    await waitFor(`kill ${node.pid}`, () => !isAlive(node), { timeoutMs: 5_000 })
  }
}

function signal(node: ProcessIdentity, name: NodeJS.Signals): void {
  if (!isAlive(node)) return
  try {
    process.kill(node.pid, name)
  } catch {
    // it went away by itself in between
  }
}

function readRecord(recordPath: string): NodeProcess | undefined {
  try {
    return JSON.parse(readFileSync(recordPath, 'utf8')) as NodeProcess
  } catch {
    return undefined
  }
}

function diedError(options: Pick<Launch, 'command' | 'logPath'>): GiveUp {
  const tail = readFileSync(options.logPath, 'utf8').slice(-1500)
  return new GiveUp(`${options.command[0]} ended right after its start; its log ends with:\n${tail}`)
}

function bind(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' ? address?.port : undefined))
    })
  })
}

function fail(): never {
  throw new Error('no free port on 127.0.0.1')
}
