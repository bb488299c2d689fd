import type { Chain } from '../../chains/chain.ts'
import { attemptsOf } from '../../db/attempts.ts'
import { type ClaimedOutflow, lockEnding } from '../../db/claim_outflows.ts'
import { findSpenders, releaseCoins } from '../../db/coins.ts'
import type { Sql } from '../../db/database.ts'
import { forgetRejected } from '../../db/lost_outflows.ts'
import { findOutflow, isLive, setOutflowState } from '../../db/outflows.ts'
import type { ChainId } from '../../domain/catalog/networks.ts'
import { coinsOf, type Intent, type PayoutId } from '../../domain/payouts/intent.ts'
import { apply } from '../apply.ts'
import type { SigningWorld } from '../world.ts'
import { MovedOn, unlessMovedOn } from './moved_on.ts'
import { giveUpOrphan } from './orphan.ts'
import { fillerIdOf, outpointOf } from './take_back.ts'

/**
 * Ends an outflow whose coins never come back, because those who paid them to us have spent the money otherwise, or another
 * outflow of ours has (a filler that lost its block may come back with coins that were free meanwhile), as deep in the chain as
 * it has to be: neither it nor its filler can ever be mined. Coins that do stand are free again. False: it may yet be mined, as far
 * as can be told.
 */
export async function endExcluded(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
): Promise<boolean> {
  if (chain.areExcluded === undefined) return false
  const { payoutId, fills } = outflow
  // What it stands in for needs the same coins: they end together, when it is the other one's turn.
  if (fills !== null && isLive(await findOutflow(world.db, fills))) return false
  const fillerId = fills === null ? fillerIdOf(outflow) : payoutId
  const pair = [fills ?? payoutId, fillerId]
  const attempts = await attemptsOfAll(world.db, pair)
  if (attempts.length === 0) return false
  const open = await notOvertaken(world.db, chain.id, attempts, pair)
  if (open.length > 0 && !(await chain.areExcluded(open))) return false
  const coins = attempts.flatMap(coinsOf)

  const end = async (tx: Sql) => {
    if (!(await lockEnding(tx, outflow, [outflow.state]))) throw new MovedOn()
    await setOutflowState(tx, fillerId, ['planned'], 'cancelled')
    for (const id of pair) {
      await setOutflowState(tx, id, ['planned', 'signed', 'broadcast'], 'failed')
      await releaseCoins(tx, chain.id, coins, id)
    }
    // From here on nobody writes down another one; what was written down meanwhile was not asked about.
    if ((await attemptsOfAll(tx, pair)).length !== attempts.length) throw new MovedOn()
  }
  if (!(await unlessMovedOn(() => endBy(world, outflow, end)))) return false
  world.log.warn({ payout: payoutId }, 'the coins of an outflow are gone for good: it can never be mined')
  return true
}

async function endBy(
  world: SigningWorld,
  outflow: ClaimedOutflow,
  end: (tx: Sql) => Promise<void>,
): Promise<void> {
  const { payoutId } = outflow
  if (outflow.state === 'orphaned') return giveUpOrphan(world, outflow, end)
  if (outflow.kind === 'filler')
    return world.db.transaction(async (tx) => {
      await end(tx)
      // Both need the same coins: what it stands in for is never mined either.
      await forgetRejected(tx, outflow)
    })
  const fact = { kind: 'PayoutFailed', payoutId, problem: 'NETWORK_PROBLEM', cost: null } as const
  await apply(world, outflow.orderId, `${payoutId}:failed`, fact, end)
}

/**
 * Those of these attempts that spend no coin which another outflow of ours has spent, deep in the chain. The chain cannot tell that from
 * the attempt itself being mined; the list of coins can.
 */
async function notOvertaken(
  sql: Sql,
  chain: ChainId,
  attempts: readonly Intent[],
  pair: readonly PayoutId[],
): Promise<readonly Intent[]> {
  const spent = new Set<string>()
  for (const { by, ...coin } of await findSpenders(sql, chain, attempts.flatMap(coinsOf))) {
    if (!pair.includes(by) && (await findOutflow(sql, by))?.state === 'confirmed') spent.add(outpointOf(coin))
  }
  return attempts.filter((attempt) => !coinsOf(attempt).some((coin) => spent.has(outpointOf(coin))))
}

async function attemptsOfAll(sql: Sql, payoutIds: readonly string[]): Promise<Intent[]> {
  const attempts = []
  for (const payoutId of payoutIds) attempts.push(...(await attemptsOf(sql, payoutId)))
  return attempts.map(({ intent }) => intent)
}
