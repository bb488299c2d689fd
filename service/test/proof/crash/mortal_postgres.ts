import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Postgres, startPostgres } from '@cambist/devnet'
import { byFile } from '../../harness/by_file.ts'
import { lastingPort } from '../../harness/lasting_port.ts'
import { killPostgres } from './kill_postgres.ts'

/** When the server is killed once more, while it comes back from a kill. */
export const comebackMoments = ['its recovery has begun', 'it accepts connections again'] as const
export type ComebackMoment = (typeof comebackMoments)[number]

/** A real server that others kill, and that is brought back on the same data and the same port. */
export type MortalPostgres = {
  readonly url: string
  pid(): number
  isUp(): boolean
  /** How often it was killed so far, by anybody. */
  deaths(): number
  /** Somebody has killed it: starts it again, and kills it at that moment once more when one is given. */
  bringBack(again: ComebackMoment | null): Promise<void>
  stop(): Promise<void>
}

export async function startMortalPostgres(dataDir: string): Promise<MortalPostgres> {
  const port = await lastingPort()
  const { settings, reach } = byFile(join(dirname(dataDir), 'sockets'))
  let server: Postgres = await startPostgres({ dataDir, port, settings })
  let isUp = true
  let deaths = 0
  const start = async () => {
    server = await startPostgres({ dataDir, port, settings })
    if (server.port !== port)
      throw new Error(`PostgreSQL came back on ${server.port}; everybody asks ${port}`)
  }
  return {
    url: reach(server.url),
    pid: () => server.pid,
    isUp: () => isUp,
    deaths: () => deaths,
    bringBack: async (again) => {
      isUp = false
      deaths += 1
      if (again === 'its recovery has begun') {
        // What is killed here is tried again by the start that is under way.
        const started = start()
        if (await killDuringRecovery(dataDir, started)) deaths += 1
        await started
      } else {
        await start()
      }
      if (again === 'it accepts connections again') {
        killPostgres(server.pid)
        deaths += 1
        await start()
      }
      isUp = true
    },
    stop: () => server.stop(),
  }
}

const RECOVERING = 'automatic recovery in progress'
const RECOVERED = 'database system is ready to accept connections'

/** Kills the server that is starting as soon as its log says that it recovers. False: it was quicker. */
async function killDuringRecovery(dataDir: string, started: Promise<void>): Promise<boolean> {
  const log = join(dataDir, 'postgres.log')
  const before = statSync(log).size
  let isStarted = false
  started.then(
    () => {
      isStarted = true
    },
    () => {
      isStarted = true
    },
  )
  while (!isStarted) {
    const written = readFileSync(log).subarray(before).toString()
    if (written.includes(RECOVERED)) return false
    if (written.includes(RECOVERING)) {
      killPostgres(recordedPid(dataDir))
      return !readFileSync(log).subarray(before).toString().includes(RECOVERED)
    }
    await pause(1)
  }
  return false
}

/** The devnet writes down which process it started. */
function recordedPid(dataDir: string): number {
  const record = join(dataDir, 'server.json')
  if (!existsSync(record)) throw new Error(`${record} names the server's process`)
  return (JSON.parse(readFileSync(record, 'utf8')) as { pid: number }).pid
}
