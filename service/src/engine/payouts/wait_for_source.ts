import type { Chain } from '../../chains/chain.ts'
import type { Attempt } from '../../db/attempts.ts'
import { type BookedOrder, findBookedOrder } from '../../db/booked_order.ts'
import { type ChainHead, readHead } from '../../db/chain_heads.ts'
import type { ClaimedOutflow } from '../../db/claim_outflows.ts'
import { assert } from '../../domain/assert.ts'
import { assetOf } from '../../domain/catalog/assets.ts'
import { tellsFinalOnly } from '../../domain/catalog/networks.ts'
import { countedDeposits, type Deposit, orphaned, received } from '../../domain/orders/order.ts'
import { paysSomebody } from '../../domain/payouts/intent.ts'
import { CLOCKS_APART_MS } from '../../domain/time.ts'
import { checkDeposit, show } from '../books/audit_order.ts'
import { isMoneyMissing } from '../books/stopped_outflows.ts'
import { REACH_BLOCKS } from '../reach.ts'
import { requiredConfirmations } from '../required_confirmations.ts'
import type { SigningWorld } from '../world.ts'
import { claimKeeper, type KeepClaim } from './claim.ts'
import { excludesByTime } from './over.ts'
import { type Progress, troubled } from './progress.ts'

const WAIT_FOR_DEPTH_MS = 10_000

/** A watcher looks several times a second. When it gets no answer, neither do we, and others would wait behind us. */
const SOURCE_SILENT_MS = 5_000

/** Its clock may be ahead of ours. What is further in the future was noted before a clock was set back, and says nothing of now. */
function isLookedAt({ lookedWallMs }: ChainHead, wallMs: number): boolean {
  const agoMs = wallMs - lookedWallMs
  return agoMs <= SOURCE_SILENT_MS && agoMs >= -CLOCKS_APART_MS
}

/** Node and signer answer within milliseconds, mostly. */
const LOOK_HOLDS_MS = 1_000

/** Whether a look at the deposit was so long ago that nothing is signed or sent without another one. */
export function isLookOld({ clock }: SigningWorld, lookedWallMs: number): boolean {
  return Math.abs(clock.wallMs() - lookedWallMs) > LOOK_HOLDS_MS
}

/**
 * Why nothing of an outflow is signed or sent now, or null. As long as no network has said that it has any of it, it has not left, however
 * long ago it was signed: what it pays for is looked at once more. What a network has is followed and raised, whatever becomes of that.
 */
export async function whyWaitBeforeSending(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<Progress | null> {
  // Where time excludes one from another a further one is drafted when no network has those before it any more.
  const unsettled = excludesByTime(chain) ? attempts.slice(-1) : attempts
  const isOut = outflow.state === 'orphaned' || unsettled.some(({ answer }) => answer === 'accepted')
  return isOut ? null : whyWaitForSource(world, outflow, claimKeeper(world, outflow))
}

/**
 * One more look at the blocks that the money came in, right before money leaves: what was confirmed may have been
 * reorganised away since, or be more than was asked, which has to be deeper; and it is paid only as the books have it. Null: all is there.
 */
export async function whyWaitForSource(
  world: SigningWorld,
  outflow: ClaimedOutflow,
  keep: KeepClaim,
): Promise<Progress | null> {
  if (!paysSomebody(outflow)) return null
  const account = outflow.kind === 'refund' ? 'refunds_owed' : 'payouts_owed'
  const found = await findBookedOrder(world.db, outflow.orderId, { account, asset: outflow.asset })
  assert(found !== null, 'an outflow belongs to an order')
  const { order } = found
  const source = world.chains.get(assetOf(order.terms.from).chain)
  if (source === undefined) return troubled(`${order.terms.from} is not watched by this process`)
  const head = await readHead(world.db, source.id)
  if (head === null || !isLookedAt(head, world.clock.wallMs())) {
    return troubled(`${source.id}, where the deposit is, does not answer at present`)
  }
  if (await isMoneyMissing(world.db, source.id)) {
    return troubled(`${source.id}, where the deposit is, holds less than the books say`)
  }
  if (head.block.height < head.cautiousUntilHeight) {
    return troubled(`${source.id} was reorganised deeply; waiting until it has grown`)
  }
  // What vanished, came back as something else, or came back a moment ago is no longer counted, or not again yet.
  if (orphaned(order).units > 0n) return troubled('not all that it pays for is confirmed at present')
  const [unbooked] = findUnbooked(outflow, found)
  if (unbooked !== undefined) return troubled(unbooked)
  const required = requiredConfirmations(world.policy, received(order))
  const isMore = required > requiredConfirmations(world.policy, order.terms.asks)
  // Once each: one block may bring thousands of deposits, and all that is due here waits for as long as the questions take.
  const hashes = new Map<number, string | null>()
  for (const deposit of countedDeposits(order)) {
    if (staysForEver(source, head.block.height, deposit)) continue
    const { block } = deposit
    if (block === null) return troubled(`the deposit ${deposit.key} is in no block at present`)
    if (!hashes.has(block.height)) {
      hashes.set(block.height, await source.blockHash(block.height))
      await keep()
    }
    if (hashes.get(block.height) !== block.hash)
      return troubled(`the block that confirmed the deposit ${deposit.key} is not in the chain`)
    if (isMore && head.block.height < block.height + required - 1)
      return { kind: 'again', inMs: WAIT_FOR_DEPTH_MS }
  }
  return null
}

/**
 * What the order's tables say and its books do not: of a deposit that it is paid for, and of what it is paid. One transaction writes both;
 * where they differ somebody else wrote, or something was lost.
 */
function findUnbooked({ asset, units }: ClaimedOutflow, { order, booked, owed }: BookedOrder): string[] {
  const deposits = countedDeposits(order).flatMap(({ key, amount, state }) =>
    checkDeposit({ key, ...amount, state, booked: booked(key, amount.asset) }),
  )
  if (owed === units) return deposits
  return [...deposits, `it pays ${show(asset, units)}, and the books owe its order ${show(asset, owed)}`]
}

/** Nothing takes it back, and a node need not remember what is so old: customers decide after weeks, too. */
function staysForEver({ id }: Chain, headHeight: number, { state, block }: Deposit): boolean {
  if (state !== 'confirmed' || block === null) return false
  return tellsFinalOnly(id) || headHeight - block.height > REACH_BLOCKS
}
