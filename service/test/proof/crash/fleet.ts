import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Environment } from '../../functional/processes/environment.ts'
import { eventually } from '../../harness/eventually.ts'
import { processEnvironment } from '../../harness/process_environment.ts'
import type { Patch } from './patches.ts'
import type { Role } from './points.ts'
import type { Preload } from './preload.ts'
import type { Armed, Death } from './reach.ts'

/** Who decides what the next one dies of. */
export type Reaper = {
  /** What a process dies of that starts now, after its predecessor's death, or has not died for too long. Null: it lives. */
  arm(place: { readonly role: Role; readonly at: number }, last: Death | null): Armed | null
  /** A role of which some process has to be armed anew at once. */
  wantsNow(): Role | null
  /** Somebody was killed, a process or PostgreSQL. A process is started again when this has ended. */
  onDeath(death: Death): Promise<void>
}

/** Processes of the service, each of which is started again as soon as it was killed. */
export type Fleet = {
  /** Where the process with the role api listens, through all its lives. */
  readonly origin: string
  /** Processes that ended and were not killed: a defect of the service. */
  readonly faults: readonly string[]
  /** Waits until every process is up. */
  allUp(): Promise<void>
  /** Gives every process that has not come to its end for too long something else to die of; or all of them. */
  rearm(which: 'the patient' | 'all'): void
  /** Stops every process of a role where it stands, or lets it go on, without its knowing. */
  signal(role: Role, name: 'SIGSTOP' | 'SIGCONT'): void
  /** The end of every process's log. */
  logs(): string
  stop(): Promise<void>
}

export type FleetOptions = {
  readonly dir: string
  readonly roles: readonly Role[]
  readonly environment: Environment
  readonly apiPort: number
  readonly patches: readonly Patch[]
  readonly reaper: Reaper
  /** While it is away nobody can start. */
  isPostgresUp(): boolean
}

/** One process after the other, each in the place of the one that died. */
type Slot = {
  readonly role: Role
  readonly at: number
  readonly logFile: string
  child: ChildProcess | null
  isUp: boolean
  patientUntilMs: number
  /** Whether PostgreSQL was there when the child was started. */
  hadPostgres: boolean
  /** Starts in a row that failed with PostgreSQL there: it may have died in between without anybody's knowing yet. */
  failures: number
}

type Running = FleetOptions & {
  readonly deathsFile: string
  readonly slots: readonly Slot[]
  readonly faults: string[]
  isStopping: boolean
}

const FAILURES_MAX = 10

export function startFleet(options: FleetOptions): Fleet {
  const { dir, roles, apiPort } = options
  const deathsFile = join(dir, 'deaths')
  writeFileSync(deathsFile, '')
  const slots = roles.map((role, at): Slot => {
    const logFile = join(dir, `${role}-${at}.log`)
    const never = { child: null, isUp: false, patientUntilMs: 0, hadPostgres: false, failures: 0 }
    return { role, at, logFile, ...never }
  })
  const running: Running = { ...options, deathsFile, slots, faults: [], isStopping: false }
  for (const slot of slots) start(running, slot, null)
  return {
    origin: `http://127.0.0.1:${apiPort}`,
    faults: running.faults,
    allUp: () => untilAllUp(running),
    rearm: (which) => {
      for (const slot of slots) rearm(running, slot, which)
    },
    signal: (role, name) => {
      for (const slot of slots) if (slot.role === role) slot.child?.kill(name)
    },
    logs: () => logsOf(slots),
    stop: async () => {
      running.isStopping = true
      await Promise.all(slots.map(end))
    },
  }
}

function start(running: Running, slot: Slot, last: Death | null): void {
  const { reaper, deathsFile, patches } = running
  const armed = reaper.arm(slot, last)
  slot.isUp = false
  slot.hadPostgres = running.isPostgresUp()
  const child = launch(running, slot, { fate: { role: slot.role, armed, deathsFile }, patches })
  slot.child = child
  child.on('message', (message: { up?: string; died?: Death }) => {
    if (message.died !== undefined) void reaper.onDeath(message.died)
    if (message.up === undefined) return
    slot.isUp = true
    slot.failures = 0
    slot.patientUntilMs = performance.now() + (armed?.patienceMs ?? 0)
  })
  child.once('exit', (code, signal) => void succeed(running, slot, child.pid, code ?? signal))
}

/** A process has ended: it was killed, or it could not start without PostgreSQL, or something is wrong with it. */
async function succeed(running: Running, slot: Slot, pid: number | undefined, how: unknown): Promise<void> {
  if (running.isStopping) return
  const wasUp = slot.isUp
  slot.isUp = false
  const death = findDeath(running.deathsFile, pid)
  if (death !== null) await running.reaper.onDeath(death)
  else if (wasUp || hasFailedTooOften(running, slot))
    running.faults.push(`${slot.role} ended with ${how}: ${endOfLog(slot)}`)
  // It has tried once. Started over and over it would only be in the way of who brings PostgreSQL back.
  if (!wasUp && death === null) await untilPostgresIsUp(running)
  if (running.faults.length === 0 && !running.isStopping) start(running, slot, death)
}

async function untilPostgresIsUp(running: Running): Promise<void> {
  while (!running.isPostgresUp() && !running.isStopping) await pause(20)
}

function hasFailedTooOften({ isPostgresUp }: Running, slot: Slot): boolean {
  if (slot.hadPostgres && isPostgresUp()) slot.failures += 1
  return slot.failures > FAILURES_MAX
}

function rearm({ reaper }: Running, slot: Slot, which: 'the patient' | 'all'): void {
  const isDue = which === 'all' || reaper.wantsNow() === slot.role || performance.now() > slot.patientUntilMs
  if (!slot.isUp || !isDue) return
  const armed = reaper.arm(slot, null)
  slot.patientUntilMs = performance.now() + (armed?.patienceMs ?? 0)
  slot.child?.send({ arm: armed })
}

function untilAllUp({ slots }: Running): Promise<void> {
  return eventually(
    'every process is up',
    () => {
      const missing = slots.filter(({ isUp }) => !isUp).map(({ role }) => role)
      if (missing.length > 0) throw new Error(`${missing.join(', ')} are not`)
    },
    // A process may need long to start where many are starting.
    { timeoutMs: 120_000, context: () => logsOf(slots) },
  )
}

/** A specifier, which `--import` reads as a URL. */
const PRELOAD = new URL('./preload.ts', import.meta.url).href
const ENTRY = fileURLToPath(new URL('./process.ts', import.meta.url))

function launch({ environment, apiPort }: Running, slot: Slot, preload: Preload): ChildProcess {
  const log = openSync(slot.logFile, 'a')
  const child = spawn(process.execPath, ['--import', PRELOAD, ENTRY, slot.role, JSON.stringify(preload)], {
    env: {
      ...processEnvironment,
      ...environment.of(slot.role),
      CAMBIST_LOG_LEVEL: 'info',
      ...(slot.role === 'api' && { PORT: String(apiPort) }),
    },
    stdio: ['ignore', log, log, 'ipc'],
  })
  closeSync(log)
  // Told to somebody who has just died.
  child.on('error', () => {})
  return child
}

function findDeath(deathsFile: string, pid: number | undefined): Death | null {
  const lines = readFileSync(deathsFile, 'utf8').trim().split('\n').filter(Boolean)
  const deaths = lines.map((line) => JSON.parse(line) as Death)
  return deaths.findLast((death) => death.pid === pid && death.target === 'process') ?? null
}

function logsOf(slots: readonly Slot[]): string {
  return slots.map((slot) => `— ${slot.role}\n${endOfLog(slot)}`).join('\n')
}

function endOfLog({ logFile }: Slot): string {
  return readFileSync(logFile, 'utf8').slice(-3_000)
}

async function end({ child }: Slot): Promise<void> {
  if (child === null || child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await ended
}
