import { afterAll, beforeAll, expect } from 'vitest'
import { prove } from '../proof/prove.ts'
import type { flaws } from './flaws.ts'
import type { Outcome } from './schedule.ts'
import { type ScratchPostgres, startScratchPostgres } from './scratch_postgres.ts'
import { runInThread } from './workers.ts'

/**
 * What: in whatever order things happen and whatever fails in between, no money is lost, nothing is paid twice, and
 * once the faults end everything ends.
 * How: the real engine, several processes of it, on a real PostgreSQL and on chains in memory, under a scheduler that
 * lets one task go on at a time. Every call to the outside is a place where it may stop, fail, lose its answer or die.
 * The seed alone decides; the same seed does the same, to the last statement.
 */
let server: ScratchPostgres

beforeAll(async () => {
  server = await startScratchPostgres()
})

afterAll(() => server?.stop())

/** Cores that are worth using; each has a PostgreSQL beside it that works as hard. */
const WORKERS = 2
/** Of so many schedules one is done again, elsewhere and after others. */
const AGAIN = 20

prove('whatever happens in whatever order, no money is lost and everything ends', async (proof) => {
  const { seed, sized, figure } = proof
  const schedules = sized({ short: 1_000, long: 100_000 })
  const first = (seed - 1) * 1_000_000 + 1
  const seeds = Array.from({ length: schedules }, (_, index) => first + index)
  const digests = new Map<number, string>()
  const totals = new Map<string, number>()
  await inThreads('first', seeds, (outcome) => {
    expect(outcome.problems, howToReplay(outcome)).toEqual([])
    digests.set(outcome.seed, outcome.digest)
    for (const [what, count] of outcome.counts) totals.set(what, (totals.get(what) ?? 0) + count)
    return true
  })
  const again = seeds.filter((one) => one % AGAIN === 0).toReversed()
  await inThreads('again', again, (outcome) => {
    expect(outcome.digest, `${howToReplay(outcome)}: not the same as before`).toBe(digests.get(outcome.seed))
    return true
  })
  const countOf = (what: RegExp) =>
    [...totals].reduce((sum, [name, count]) => sum + (what.test(name) ? count : 0), 0)
  figure('schedules', digests.size)
  for (const [what, name] of figures) figure(what, countOf(name))
  figure('transitions', [...totals.keys()].filter((name) => /^move: ./.test(name)).length)
  figure('checked for the same again', again.length)
  for (const what of mustHappen) expect(countOf(what), `${what} happens`).toBeGreaterThan(0)
})

const figures: readonly (readonly [string, RegExp])[] = [
  ['calls to the outside', /^calls$/],
  ['faults', /^fault: /],
  ['deaths', /^deaths$/],
  ['waits for locks', /^waits for locks$/],
  ['blocks', /^blocks$/],
  ['reorgs', /^reorgs$/],
  ['replaced deposits', /^replaced deposit/],
  ['orders', /^move: →NEW$/],
]

/** Every kind of thing that the simulation is for. */
const mustHappen: readonly RegExp[] = [
  /^fault: statement in a transaction deadlock$/,
  /^fault: commit answer lost$/,
]

prove('an engine that breaks a promise is caught', async ({ sized, figure }) => {
  const controls = sized({ short: 2, long: 5 })
  for (const flaw of caught.slice(0, controls)) {
    const seeds = Array.from({ length: 500 }, (_, index) => index + 1)
    let tried = 0
    let problem = ''
    await inThreads(
      'flawed',
      seeds,
      ({ problems }) => {
        tried += 1
        problem ||= problems[0] ?? ''
        return problem === ''
      },
      flaw,
    )
    expect(problem, `an engine that ${flaw} is caught`).not.toBe('')
    figure(`an engine that ${flaw}`, `caught after ${tried} schedules`)
  }
})

const caught: readonly (keyof typeof flaws)[] = [
  'forgets what it signed and sends it at once',
  'locks no rows',
]

function howToReplay({ seed }: Outcome): string {
  return `npx node service/test/simulation/replay.ts ${seed}`
}

let grounds = 0

/** Each thread takes every so manyth schedule. */
async function inThreads(
  name: string,
  seeds: readonly number[],
  take: (outcome: Outcome) => boolean,
  flaw: keyof typeof flaws | null = null,
): Promise<void> {
  const threads = Array.from({ length: WORKERS }, (_, index) => {
    grounds += 1
    const own = seeds.filter((_, at) => at % WORKERS === index)
    return runInThread({ serverUrl: server.url, name: `${name}_${grounds}`, seeds: own, flaw }, take)
  })
  await Promise.all(threads)
}
