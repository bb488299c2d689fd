import type { Chain } from '../../chains/chain.ts'
import { reserveAddresses } from '../../db/addresses.ts'
import { postForHouse } from '../../db/books.ts'
import { type ClaimedOutflow, findOutflowByNonce, planOutflow, setOutflowState } from '../../db/outflows.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { networkCostPaid } from '../../domain/ledger/postings.ts'
import type { Amount } from '../../domain/money/amount.ts'
import { apply } from '../apply.ts'
import { failSweep } from '../sweeps/end.ts'
import type { SigningWorld } from '../world.ts'

/**
 * A nonce was taken by an outflow that cannot be sent, and every later one waits behind it. A transfer of nothing to
 * ourselves with the same nonce lets them pass, and excludes the one that was stuck for ever.
 */
export async function fillGap(world: SigningWorld, stuck: ClaimedOutflow): Promise<void> {
  // A deposit address has nobody who waits behind its nonce.
  if (stuck.nonce === null || stuck.kind === 'filler' || stuck.from !== undefined) return
  const [address] = await reserveAddresses(world.db, chainFacts[stuck.chain].family)
  if (address === undefined) return
  const payoutId = `house-${stuck.chain}-${stuck.nonce}:1`
  if ((await findOutflowByNonce(world.db, stuck.chain, stuck.nonce, 'filler')) !== null) return
  const asset = nativeAsset(stuck.chain).id
  world.log.warn({ payout: stuck.payoutId, nonce: stuck.nonce }, 'a stuck nonce is filled')
  await planOutflow(
    world.db,
    { payoutId, kind: 'filler', asset, units: 0n, address, tag: null, nonce: stuck.nonce },
    world.clock.nowMs(),
  )
}

/** The nonce was used after all, by the outflow that seemed stuck: there is no gap, and the filler never will be mined. */
export async function endNeedlessFiller(
  world: SigningWorld,
  chain: Chain,
  filler: ClaimedOutflow,
): Promise<boolean> {
  const [address] = await reserveAddresses(world.db, chain.family)
  if (filler.nonce === null || address === undefined) return false
  if ((await chain.minedNonce(address)) <= filler.nonce) return false
  return setOutflowState(world.db, filler.payoutId, ['planned', 'signed'], 'failed')
}

/** The filler is deep in the chain: the outflow that had its nonce provably never pays. */
export async function endFilledGap(world: SigningWorld, filler: ClaimedOutflow, cost: Amount): Promise<void> {
  const nowMs = world.clock.nowMs()
  const stuck =
    filler.nonce === null ? null : await findOutflowByNonce(world.db, filler.chain, filler.nonce, 'other')
  if (stuck?.kind === 'sweep') await failSweep(world, stuck)
  else if (stuck !== null) {
    await apply(
      world,
      stuck.orderId,
      `${stuck.payoutId}:failed`,
      { kind: 'PayoutFailed', payoutId: stuck.payoutId, problem: 'NETWORK_PROBLEM', cost: null },
      async (tx) => {
        await setOutflowState(tx, stuck.payoutId, ['planned', 'signed', 'broadcast'], 'failed')
      },
    )
  }
  await world.db.transaction(async (tx) => {
    const isFirst = await setOutflowState(tx, filler.payoutId, ['signed', 'broadcast'], 'confirmed')
    if (isFirst) await postForHouse(tx, `${filler.payoutId}:confirmed`, networkCostPaid(cost), nowMs)
  })
}
