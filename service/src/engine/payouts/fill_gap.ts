import type { Chain } from '../../chains/chain.ts'
import { reserveAddresses } from '../../db/addresses.ts'
import { isPostedForHouse, postForHouse } from '../../db/books.ts'
import { type ClaimedOutflow, lockClaimed } from '../../db/claim_outflows.ts'
import type { Sql } from '../../db/database.ts'
import { forgetRejected, loseToFiller } from '../../db/lost_outflows.ts'
import {
  type Ended,
  endOutflow,
  isLive,
  isNonceSpent,
  liveStates,
  type StoredOutflow,
  setOutflowState,
} from '../../db/outflows.ts'
import { chainFacts, depositsLie } from '../../domain/catalog/networks.ts'
import { networkCostPaid } from '../../domain/ledger/postings.ts'
import type { Intent } from '../../domain/payouts/intent.ts'
import { apply } from '../apply.ts'
import { failSweep } from '../sweeps/end.ts'
import type { SigningWorld } from '../world.ts'
import { foundAgainKey, giveUpOrphan } from './orphan.ts'
import { planNonceFiller } from './plan_filler.ts'
import { findFilled, settleCoins, takeBackCoins } from './take_back.ts'

/**
 * An outflow cannot be sent. A filler excludes it on chain for ever: on account chains a transfer of nothing to
 * ourselves with its nonce, which every later one waits behind; on coin chains its coins go back to us.
 */
export async function fillGap(world: SigningWorld, stuck: ClaimedOutflow): Promise<void> {
  if (stuck.kind === 'filler') return
  if (depositsLie[chainFacts[stuck.chain].family] === 'coins') return takeBackCoins(world, stuck)
  const { chain, nonce } = stuck
  if (nonce === null) return
  const isPlanned = await world.db.transaction(async (tx) => {
    if ((await lockClaimed(tx, stuck)) === null) return false
    return planNonceFiller(tx, chain, nonce, world.clock.nowMs())
  })
  if (isPlanned) world.log.warn({ payout: stuck.payoutId, nonce }, 'a stuck nonce is filled')
}

/**
 * The nonce was used after all, by the outflow that seemed stuck: there is no gap, and the filler never will be mined. It
 * could be, should the other lose its block, and a node that refuses it may have had it: it ends when the other is final.
 */
export async function endNeedlessFiller(
  world: SigningWorld,
  chain: Chain,
  filler: ClaimedOutflow,
): Promise<boolean> {
  if (filler.nonce === null) return false
  const [address] = await reserveAddresses(world.db, chain.family)
  if (address === undefined) return false
  if ((await chain.minedNonce(address)) <= filler.nonce) return false
  if (!(await isNonceSpent(world.db, filler.chain, filler.nonce))) return false
  return setOutflowState(world.db, filler.payoutId, liveStates, 'failed')
}

/** The filler is deep in the chain: the outflow that had its nonce or its coins provably never pays. */
export async function endFilledGap(
  world: SigningWorld,
  filler: ClaimedOutflow,
  mined: Intent,
  ended: Ended,
): Promise<void> {
  const nowMs = world.clock.nowMs()
  const stuck = await findFilled(world.db, filler)
  // Its filler is final: nothing is left to be asked. Should we die now it may be final no more when we look again.
  if (isLive(stuck)) await failOutflow(world, stuck, (tx) => loseToFiller(tx, stuck))
  await world.db.transaction(async (tx) => {
    const isFirst = await endOutflow(tx, filler.payoutId, ['signed', 'broadcast'], 'confirmed', ended)
    if (!isFirst) return
    // It was final before where it ended since, for what it stands in for, and went on when that lost its block.
    const first = `${filler.payoutId}:confirmed`
    const key = (await isPostedForHouse(tx, first)) ? await foundAgainKey(tx, filler, ended) : first
    await postForHouse(tx, key, networkCostPaid(ended.cost), nowMs)
    await settleCoins(tx, filler, mined)
    await forgetRejected(tx, filler)
  })
}

/** It provably never pays: nothing of it is in a block or ever will be. `guard` throws when that is no longer sure. */
export async function failOutflow(
  world: SigningWorld,
  outflow: StoredOutflow,
  guard: (tx: Sql) => Promise<void>,
): Promise<void> {
  const { payoutId, orderId, state, kind } = outflow
  if (state === 'orphaned') return giveUpOrphan(world, outflow, guard)
  if (kind === 'sweep') return failSweep(world, outflow, guard)
  await apply(
    world,
    orderId,
    `${payoutId}:failed`,
    { kind: 'PayoutFailed', payoutId, problem: 'NETWORK_PROBLEM', cost: null },
    async (tx) => {
      await guard(tx)
      await setOutflowState(tx, payoutId, ['planned', 'signed', 'broadcast'], 'failed')
    },
  )
}
