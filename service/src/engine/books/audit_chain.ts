import { type Chain, NodeBusy } from '../../chains/chain.ts'
import type { Clock } from '../../clock.ts'
import type { Database } from '../../db/database.ts'
import type { Comparison } from '../../db/reconciliations.ts'
import { MINUTE_MS, SECOND_MS } from '../../domain/time.ts'
import { type Problem, problem, show } from './audit_order.ts'
import { type ComparedChain, compareChain } from './compare.ts'

export type ChainAudit = {
  readonly chain: string
  readonly comparisons: readonly Comparison[]
  readonly problems: readonly Problem[]
}

const TRIES = 20
const BETWEEN_TRIES_MS = 500
/** A node that moves on while it is asked says so, and is asked again; one that is away says nothing for long. */
const FAILURES_MAX = 3

/** The books against one chain, over every address of ours. */
export async function auditChain(db: Database, chain: Chain, clock: Clock): Promise<ChainAudit> {
  const compared = await untilConclusive(clock, () => compareChain(db, chain, { kind: 'all' }))
  if (compared.kind === 'compared') return describeChain(chain, compared)
  const problems = [problem(chain.id, 'chain', `could not be compared: ${compared.why}`)]
  return { chain: chain.id, comparisons: [], problems }
}

type Inconclusive = { readonly kind: 'inconclusive'; readonly why: string }

/** Looks again and again for a while, as long as nothing can be said. */
export async function untilConclusive<Look extends { readonly kind: 'compared' }>(
  clock: Clock,
  look: () => Promise<Look | Inconclusive>,
): Promise<Look | Inconclusive> {
  const waited = { ms: 0 }
  let why = ''
  for (let tries = 0, failures = 0; tries < TRIES && failures < FAILURES_MAX; tries += 1) {
    if (tries > 0) await clock.sleep(BETWEEN_TRIES_MS)
    try {
      const seen = await whenFree(clock, waited, look)
      if (seen.kind === 'compared') return seen
      why = seen.why
    } catch (error) {
      why = String(error)
      // It was waited for already.
      if (error instanceof NodeBusy) break
      failures += 1
    }
  }
  return { kind: 'inconclusive', why }
}

/** A scan of all coins may take so long (`SCAN_TIMEOUT_MS` of chains/bitcoin), and an engine's own may be under way. For all tries together. */
const BUSY_MS_MAX = 15 * MINUTE_MS
const WHILE_BUSY_MS = 15 * SECOND_MS

async function whenFree<Seen>(
  clock: Clock,
  waited: { ms: number },
  look: () => Promise<Seen>,
): Promise<Seen> {
  for (;;) {
    try {
      return await look()
    } catch (error) {
      if (!(error instanceof NodeBusy) || waited.ms >= BUSY_MS_MAX) throw error
      waited.ms += WHILE_BUSY_MS
      await clock.sleep(WHILE_BUSY_MS)
    }
  }
}

function describeChain(
  { id }: Chain,
  { comparisons, coins }: ComparedChain & { readonly kind: 'compared' },
): ChainAudit {
  const problems = comparisons.filter(({ difference }) => difference !== 0n).map(describe)
  const onChain = comparisons.find(({ asset }) => asset === coins?.asset)?.chainUnits
  if (coins !== null && onChain !== undefined && coins.units !== onChain) {
    const [listed, held] = [show(coins.asset, coins.units), show(coins.asset, onChain)]
    const message = `our list of coins adds up to ${listed}, the chain has ${held}`
    problems.push(problem(coins.asset, 'chain', message))
  }
  return { chain: id, comparisons, problems }
}

function describe({ asset, ledgerUnits, chainUnits, difference, height }: Comparison): Problem {
  const what = difference < 0n ? 'is missing on' : 'is more than booked on'
  const size = show(asset, difference < 0n ? -difference : difference)
  const sums = `books ${show(asset, ledgerUnits)}, chain ${show(asset, chainUnits)}`
  return problem(asset, 'chain', `${size} ${what} the chain at block ${height}: ${sums}`)
}
