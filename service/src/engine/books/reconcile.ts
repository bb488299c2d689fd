import type { Chain } from '../../chains/chain.ts'
import type { Sql } from '../../db/database.ts'
import {
  type Comparison,
  isComparisonDue,
  readTurn,
  saveComparison,
  saveNextBucket,
  saveNextIndex,
} from '../../db/reconciliations.ts'
import { layToRest } from '../../db/resting.ts'
import { noteUnswept } from '../../db/unswept.ts'
import { mendWalletSums, sumWalletMovements } from '../../db/wallet_sums.ts'
import { assetIdsOn } from '../../domain/catalog/assets.ts'
import type { ChainId } from '../../domain/catalog/networks.ts'
import { amountOf, exactAmount } from '../../domain/money/amount.ts'
import { BUCKETS } from '../../domain/orders/identifiers.ts'
import { HOUR_MS } from '../../domain/time.ts'
import type { World } from '../world.ts'
import { type ComparedChain, compareChain } from './compare.ts'
import { DIFFERENCES_TO_STOP, isStopping } from './stopped_outflows.ts'

/**
 * Ledger against chain, to the unit. A ledger that balances proves nothing by itself (every double payout balances
 * too), so the chain is asked what it holds and the two must agree; `compareChain` says how. Nodes may still lie for a
 * moment (several behind one address): outflows stop after `DIFFERENCES_TO_STOP` comparisons in a row and go on as
 * soon as one finds no difference.
 */
export async function reconcileChain(
  world: World,
  chain: Chain,
  { pace = beginPace(), guard }: Reconciler,
): Promise<ComparedChain | null> {
  const { db, clock, policy } = world
  const startedWallMs = clock.wallMs()
  if (!(await isComparisonDue(db, chain.id, startedWallMs, REST_MS_MAX))) return null
  await sumWalletMovements(db, assetIdsOn(chain.id))
  await addUpBuckets(world, chain.id, pace)
  const neverSwept = policy.sweepCostMultiple === 0n
  const compared = await compareChain(db, chain, { kind: 'turn', nowMs: clock.nowMs(), neverSwept })
  if (compared.kind === 'inconclusive') return compared
  const { holders, quietBalances, strange, comparisons } = compared
  // Nobody is asked what he holds of an asset that is not opened yet: at rest he would be taken to hold none of it when it is.
  if (comparisons.length === chain.assets.length) await layToRest(db, chain.id, holders.quiet, quietBalances)
  // From now on they are asked each time, and what they hold makes a difference until it is explained.
  for (const address of strange) await noteUnswept(db, chain.id, address, clock.nowMs())
  // On a coin chain nobody can say who it was: those in turn stay in turn until there is no difference.
  const isExplained = chain.model === 'account' || comparisons.every(({ difference }) => difference === 0n)
  if (isExplained) await saveNextIndex(db, chain.id, holders.nextIndex)
  const wallMs = clock.wallMs()
  const restMs = Math.min(REST_MS_MAX, (wallMs - startedWallMs) * RESTS_PER_WORK)
  await saveComparisons(world, chain.id, comparisons, wallMs + restMs, guard)
  return compared
}

/** What whoever reconciles a chain takes along from one comparison to the next. */
export type Reconciler = {
  /** Left out: all that there is to add up is added up at once. */
  readonly pace?: Pace
  /**
   * Rejects when the lease was lost: what was found then is old, and must neither stop outflows by being counted beside what the
   * new holder finds, nor let them go on.
   */
  guard(tx: Sql): Promise<void>
}

/** A comparison takes longer with everything that is under way; it never takes more than a tenth of the time. */
const RESTS_PER_WORK = 9
/** Where a clock was set meanwhile, or a machine stood still, the comparison did not take what it seems to have taken. */
const REST_MS_MAX = 2 * HOUR_MS

/** How many buckets of the journal one comparison adds up. */
export type Pace = { buckets: number }

/** All of them, as long as the journal is short. */
export function beginPace(): Pace {
  return { buckets: BUCKETS }
}

const ADDING_UP_MS = 20

/** Adds up the journal of the buckets in turn. */
async function addUpBuckets(world: World, chain: ChainId, pace: Pace): Promise<void> {
  const { nextBucket: first } = await readTurn(world.db, chain)
  const { buckets } = pace
  const last = Math.min(BUCKETS, first + buckets) - 1
  // Should it take so long that it fails, then fewer are tried next time.
  pace.buckets = Math.max(1, Math.floor(buckets / 4))
  const startedWallMs = world.clock.wallMs()
  for (const { bucket, asset, summed, journal } of await mendWalletSums(
    world.db,
    { first, last },
    assetIdsOn(chain),
  )) {
    const show = (units: bigint) => exactAmount(amountOf(asset, units))
    const facts = { bucket, asset, summed: show(summed), journal: show(journal) }
    world.log.error(facts, 'the journal adds up to something else than before, and is believed')
  }
  const tookMs = world.clock.wallMs() - startedWallMs
  const fitting = Math.floor((buckets * ADDING_UP_MS) / Math.max(1, tookMs))
  pace.buckets = Math.max(1, Math.min(BUCKETS, 2 * buckets, fitting))
  await saveNextBucket(world.db, chain, (last + 1) % BUCKETS)
}

async function saveComparisons(
  world: World,
  chain: ChainId,
  comparisons: readonly Comparison[],
  dueWallMs: number,
  guard: Reconciler['guard'],
): Promise<void> {
  const nowMs = world.clock.nowMs()
  const counts = await world.db.transaction(async (tx) => {
    await guard(tx)
    const saved = []
    for (const comparison of comparisons) {
      saved.push({ comparison, ...(await saveComparison(tx, chain, comparison, { nowMs, dueWallMs })) })
    }
    return saved
  })
  for (const { comparison, before, now } of counts) tell(world, chain, comparison, before, now)
}

function tell(world: World, chain: ChainId, comparison: Comparison, before: number, now: number): void {
  const { asset, height, ledgerUnits, chainUnits, difference } = comparison
  const show = (units: bigint) => exactAmount(amountOf(asset, units))
  const facts = {
    chain,
    asset,
    height,
    ledger: show(ledgerUnits),
    onChain: show(chainUnits),
    difference: show(difference),
  }
  if (now === 1) world.log.warn(facts, 'ledger and chain differ')
  if (now === DIFFERENCES_TO_STOP) {
    world.log.error(
      facts,
      'ledger and chain differ and nothing explains it: outflows of the chain are stopped',
    )
  }
  if (now !== 0 || before === 0) return
  // As loud as the difference was: whoever read of the stop must read of its end.
  if (isStopping(before)) world.log.warn(facts, 'ledger and chain agree: outflows go on')
  else world.log.info(facts, 'ledger and chain agree again')
}
