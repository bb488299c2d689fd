import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { eventually, Hopeless } from './eventually.ts'

/** The log of the first start, and where a second looks for its programs, whose ports are somebody else's by now. */
const LEFT_OUT = [
  'service.log',
  'devnet/bitcoin/node.json',
  'devnet/eth/node.json',
  'devnet/bnb/node.json',
  'postgres/server.json',
]

/**
 * Fills an empty folder with what a first start of a sandbox leaves behind when it stops: a database, funded chains,
 * addresses. Most of a start goes into making these, so it is done once a run, by whoever comes first: `make` starts a
 * sandbox in the folder that it is given, and stops it.
 */
export async function copyFirstStart(
  dataDir: string,
  make: (dataDir: string) => Promise<void>,
): Promise<void> {
  const made = join(inject('runFolder'), 'first_start')
  if (!existsSync(made)) await makeOnce(made, make)
  // Its tables lie somewhere else, because its user may not come here: there would be one for all copies.
  if (existsSync(join(made, 'postgres/cluster.json'))) return
  execFileSync('cp', ['-a', ...readdirSync(made).map((name) => join(made, name)), dataDir])
}

async function makeOnce(made: string, make: (dataDir: string) => Promise<void>): Promise<void> {
  const making = `${made}_making`
  try {
    mkdirSync(making)
  } catch {
    // Another worker is at it.
    await eventually('a sandbox was started for the first time', () => requireMade(made, making), {
      timeoutMs: 60_000,
    })
    return
  }
  try {
    await make(making)
    for (const name of LEFT_OUT) rmSync(join(making, name), { force: true })
    renameSync(making, made)
  } catch (error) {
    // Whoever waits for us stops waiting, and whoever comes later says why, too.
    rmSync(making, { recursive: true, force: true })
    throw error
  }
}

function requireMade(made: string, making: string): void {
  const isUnderWay = existsSync(making)
  if (existsSync(made)) return
  throw isUnderWay ? new Error('not yet') : new Hopeless('it failed in another worker')
}
