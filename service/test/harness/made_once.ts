import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, Hopeless } from './eventually.ts'

/** Something whose making is most of what it costs, and which any number of tests begin with. */
export type MadeOnce = {
  /** Where the tests of a run share what was made; see `run_folder.ts`. */
  readonly runFolder: string
  readonly name: (typeof madeOnce)[number]['name']
  /** Makes it in the folder that it is given, and leaves nothing running. */
  make(folder: string): Promise<void>
  /** What of it is of no use to a copy. */
  readonly leftOut: readonly string[]
}

/** Everything that is made once a run, and where in it a PostgreSQL keeps its data. */
export const madeOnce = [
  { name: 'first_start', postgres: 'postgres' },
  { name: 'migrated_postgres', postgres: '.' },
] as const

/** Fills an empty folder with a copy. It is made by whoever comes first; others wait. */
export async function copyMadeOnce(what: MadeOnce, to: string): Promise<void> {
  const made = join(what.runFolder, what.name)
  if (!existsSync(made)) await makeOnce(what, made)
  // Its tables lie somewhere else, because its user may not come here: there would be one for all copies.
  const postgres = madeOnce.find(({ name }) => name === what.name)?.postgres ?? '.'
  if (existsSync(join(made, postgres, 'cluster.json'))) return
  execFileSync('cp', ['-a', ...readdirSync(made).map((name) => join(made, name)), to])
}

async function makeOnce({ name, make, leftOut }: MadeOnce, made: string): Promise<void> {
  const making = `${made}_making`
  try {
    mkdirSync(making)
  } catch {
    // Another worker is at it, and has as long as the hook that it runs in.
    await eventually(`${name} was made`, () => requireMade(made, making), { timeoutMs: 200_000 })
    return
  }
  try {
    await make(making)
    for (const part of leftOut) rmSync(join(making, part), { force: true })
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
