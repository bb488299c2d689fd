import { afterAll, beforeAll, expect } from 'vitest'
import { prove } from '../proof/prove.ts'
import { possibleFaults } from './faults.ts'
import { type FlawName, flaws, seedsFor, signs } from './flaws.ts'
import type { Outcome } from './schedule.ts'
import { type ScratchPostgres, startScratchPostgres } from './scratch_postgres.ts'
import { openThreads, type Threads } from './workers.ts'

/**
 * What: in whatever order things happen and whatever fails in between, no money is lost, nothing is paid twice, and
 * once the faults end everything ends.
 * How: the real engine, several processes of it, on a real PostgreSQL and on chains in memory, under a scheduler that
 * lets one task go on at a time. Every call to the outside is a place where it may stop, fail, lose its answer or die.
 * The seed alone decides; the same seed does the same, to the last statement.
 */
let server: ScratchPostgres
let threads: Threads

/** Each has a PostgreSQL beside it that works as hard. */
const THREADS = 2

beforeAll(async () => {
  server = await startScratchPostgres()
  threads = openThreads(server.url, THREADS)
})

afterAll(async () => {
  await threads?.close()
  await server?.stop()
})

/** Of so many schedules one is done again, elsewhere and after others. */
const AGAIN = 20

prove('whatever happens in whatever order, no money is lost and everything ends', async (proof) => {
  const { seed, sized, share, figure } = proof
  const schedules = sized({ short: 1_029, long: 117_000 })
  const first = (seed - 1) * 1_000_000 + 1
  const seeds = share(Array.from({ length: schedules }, (_, index) => first + index))
  const digests = new Map<number, string>()
  const totals = new Map<string, number>()
  await threads.run(inRows(seeds), null, (outcome) => {
    expect(outcome.problems, howToReplay(outcome)).toEqual([])
    digests.set(outcome.seed, outcome.digest)
    for (const [what, count] of outcome.counts) totals.set(what, (totals.get(what) ?? 0) + count)
    return true
  })
  const again = seeds.filter((_, at) => at % AGAIN === 0)
  await threads.run([[], again], null, (outcome) => {
    expect(outcome.digest, `${howToReplay(outcome)}: not the same as before`).toBe(digests.get(outcome.seed))
    return true
  })
  const countOf = (what: RegExp) =>
    [...totals].reduce((sum, [name, count]) => sum + (what.test(name) ? count : 0), 0)
  figure('schedules', digests.size)
  figure('the same when done again', again.length)
  for (const [what, name] of happenings) {
    figure(what, countOf(name))
    expect(countOf(name), `${what} happen`).toBeGreaterThan(0)
  }
  for (const what of faults)
    expect(countOf(new RegExp(`^fault: ${what}$`)), `${what} happens`).toBeGreaterThan(0)
})

/** Every kind of thing that the simulation is for, by what it is counted as. */
const happenings: readonly (readonly [string, RegExp])[] = [
  ['calls to the outside', /^calls$/],
  ['failures', /^fault: .* fails$/],
  ['lost answers', /^fault: .* answer lost$/],
  ['deadlocks', /^fault: .* deadlock$/],
  ['times that the signer went or came', /^the signer comes and goes$/],
  ['deaths', /^deaths$/],
  ['deaths of who had died before', /^deaths after a death$/],
  ['waits for locks', /^waits for locks$/],
  ['blocks', /^blocks$/],
  ['reorganisations', /^reorgs$/],
  ['reorganisations below the confirmations', /^reorg: .* below/],
  ['coins lost after they were paid out', /^coins lost after they were paid out$/],
  ['coins forgotten after they were paid out', /^coins forgotten after they were paid out$/],
  ['outflows that can never be mined', /^log: the coins of an outflow are gone for good/],
  ['deposits replaced by another amount', /^replaced deposit: amount$/],
  ['deposits replaced by one to somebody else', /^replaced deposit: address$/],
  ['deposits replaced by a dearer one', /^replaced deposit: fee$/],
  ['transactions that nodes forgot', /^forgotten transactions$/],
  ['transactions that nodes refused', /^refused broadcasts$/],
  ['transactions that nodes refused and kept', /^refused broadcasts that a node kept$/],
  ['outflows sent again for more', /^raised outflows: (BTC|ETH)$/],
  ...['XRP', 'XLM'].map(
    (id) =>
      [
        `outflows signed again under their sequence on ${id}`,
        new RegExp(`^raised outflows: ${id}$`),
      ] as const,
  ),
  ...['TRX', 'EOS', 'SOL'].map(
    (id) =>
      [
        `outflows signed again when their time was over on ${id}`,
        new RegExp(`^raised outflows: ${id}$`),
      ] as const,
  ),
  ['times that ran out', /^times that ran out$/],
  ['orders', /^move: →NEW$/],
  ['payments in two parts of which one is dust', /^payment: dust left$/],
  ['orders that expired', /^move: .*→EXPIRED$/],
  ['orders judged by time while something lay in a mempool', /^judged by time: changed$/],
  ['orders that came into EMERGENCY', /^move: .*→EMERGENCY$/],
  ['orders that fell back', /^move: (PENDING→NEW|EXCHANGE→PENDING)$/],
  ['payouts', /^outflow: payout confirmed$/],
  ...['XRP', 'XLM', 'TRX', 'EOS', 'SOL'].map(
    (id) => [`payouts on ${id}`, new RegExp(`^payouts: ${id}$`)] as const,
  ),
  ['blocks undone that nobody was told of', /^reorg: (EOS|SOL) /],
  ['refunds', /^outflow: refund confirmed$/],
  ['payouts to whom a tag names', /^paid on (XRP|XLM|EOS): with a tag$/],
  ['refunds to whom a tag names', /^refunded on (XRP|XLM|EOS): with a tag$/],
  ['refunds to an account without a tag', /^refunded on (XRP|XLM|EOS): without a tag$/],
  ['orders refused for want of a tag', /^create: DESTINATION_TAG_REQUIRED$/],
  ['sweeps', /^outflow: sweep confirmed$/],
]

const faults = Object.entries(possibleFaults).flatMap(([place, kinds]) =>
  kinds.map((kind) => `${place} ${kind}`),
)

/** The rarest is caught by one schedule in a hundred that are about what it is in; most by one in a few. */
const TRIES_MAX = 1_000

prove('an engine that breaks a promise is caught', async ({ figure }) => {
  for (const flaw of Object.keys(flaws) as FlawName[]) {
    const seeds = seedsFor(flaw, TRIES_MAX)
    const found: string[] = []
    const others: string[] = []
    let tried = 0
    const take = ({ problems }: Outcome) => {
      tried += 1
      for (const problem of problems) (signs[flaw].test(problem) ? found : others).push(problem)
      return found.length === 0
    }
    await threads.run(inRows(seeds), flaw, take)
    const besides = others.slice(0, 20).join('\n')
    expect(found, `what is wrong with an engine that ${flaw}; besides:\n${besides}`).not.toEqual([])
    figure(`an engine that ${flaw}`, `caught after ${tried} schedules from ${seeds[0]} on`)
  }
})

function howToReplay({ seed }: Outcome): string {
  return `npm run simulate -- ${seed}`
}

/** A row for each thread. */
function inRows(seeds: readonly number[]): readonly (readonly number[])[] {
  return Array.from({ length: THREADS }, (_, row) => seeds.filter((_, at) => at % THREADS === row))
}
