import type { Chain } from '../../chains/chain.ts'
import {
  type ChainHead,
  type Looked,
  noteFinal,
  noteLooked,
  noteNodeHeight,
  noteTrouble,
  silenceMs,
} from '../../db/chain_heads.ts'
import type { LookedBefore } from '../../db/chain_looks.ts'
import type { Sql } from '../../db/database.ts'
import { type Lease, requireLease } from '../../db/leases.ts'
import { tellsFinalOnly } from '../../domain/catalog/networks.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import type { InstantMs } from '../../domain/time.ts'
import { bookHouseDeposits } from '../books/house.ts'
import { countedHeight } from '../deep_height.ts'
import { orphanOutflows } from '../payouts/orphan.ts'
import { REACH_BLOCKS } from '../reach.ts'
import { saveReserves } from '../reserves.ts'
import type { World } from '../world.ts'
import { confirmDeposits } from './deep_deposits.ts'
import { finalSoFar } from './final_block.ts'
import { lookedBefore } from './first_look.ts'
import type { NodeHead } from './growth.ts'
import { keepLease, type Look, noteBacklog, type Watcher } from './look.ts'
import { readMempool } from './mempool.ts'
import { readNewBlocks } from './new_blocks.ts'
import { openAssets, openAssetsAgain, readUntoldAssets } from './open_assets.ts'
import { followReorganisation, requireNotBehind } from './reorganisation.ts'
import { checkWaiting, isWaitingDue } from './waiting_deposits.ts'

/**
 * One look at a chain by the holder of its lease: blocks that left the best chain, blocks that came, the mempool, what
 * waits there, and what has become deep enough. Every step may be done again after a crash: facts have keys, which name
 * the block and the branch that it stood on.
 * Answers true when the node has more blocks than one look takes, and gives them.
 */
export async function watchChain(
  world: World,
  chain: Chain,
  lease: Lease,
  watcher: Watcher,
): Promise<boolean> {
  const startedAtMs = world.clock.nowMs()
  const { unreadSinceMs, waitingTurn, requireGrowth } = watcher
  try {
    const start = await beginLook(world, chain, lease, watcher)
    const { look, before, nodeHead, from, begun, hasLeft, hasOpened, mayLack } = start
    const { height, minedAtMs } = await readNewBlocks(look, from, nodeHead.height, begun)
    if (height < nodeHead.height) {
      noteBacklog(watcher, unreadSinceMs, world.clock.nowMs())
      // One that tells of blocks and does not give them (several nodes behind one address, say) is not asked without
      // rest.
      return height > from.height
    }
    const isPart = await readMempool(look, height)
    const isNew = height !== before.head.block.height || hasLeft
    if (isNew || isWaitingDue(waitingTurn, startedAtMs)) await checkWaiting(look, height)
    const final = await findFinal(start, height)
    await bookWhatIsDeep(look, before, { height, final, isNew })
    await keepLease(look)
    await saveReserves(world, chain, height, isNew || hasOpened ? 0 : before.reservesAtMs)
    // At the end: what there is was told, whether or not there is enough of it.
    requireGrowth(nodeHead)
    const nowMs = isPart || mayLack ? 0 : toldUntil(look, startedAtMs, minedAtMs, nodeHead)
    const looked = { nodeHeight: nodeHead.height, nowMs, wallMs: world.clock.wallMs() }
    if (isNew || isWorthNoting(before.head, looked)) await noteLooked(world.db, lease, chain.id, looked)
    if (isPart) noteBacklog(watcher, unreadSinceMs ?? startedAtMs, world.clock.nowMs())
    if (isNew) ringForNewBlock(world, chain)
    // After all else: it may take its time, and fail.
    if (before.hasUnopened) await openAssets(look)
    return false
  } catch (error) {
    await tellTrouble(world, chain, lease, error)
    throw error
  }
}

/**
 * What a look goes on from: what was known before it, the node's head, and, with the blocks taken back that have left
 * the chain, the block to read on from. `begun` is one above that whose telling another look may have begun.
 */
async function beginLook(world: World, chain: Chain, lease: Lease, watcher: Watcher) {
  const toldFinal = (await chain.finalBlock?.()) ?? null
  const nodeHead = await chain.head()
  const before = await lookedBefore({ world, chain, lease, hold: watcher.hold }, { nodeHead, toldFinal })
  const { head } = before
  const mayLack = watcher.isCatchingUp(lease, head, nodeHead)
  await requireNotBehind(world, chain, before.begun ?? head.block, nodeHead)
  if (isFarFrom(head, nodeHead)) await noteNodeHeight(world.db, lease, chain.id, nodeHead.height)
  const untoldAssets: Look['untoldAssets'] = before.hasUnopened
    ? await readUntoldAssets({ world, chain })
    : new Set()
  const earlier: Look = { ...watcher, world, chain, lease, branch: head.reorganisations, untoldAssets }
  const fork = await followReorganisation(earlier, before, nodeHead)
  const hasLeft = fork !== null
  const look: Look = { ...earlier, branch: head.reorganisations + (hasLeft ? 1 : 0) }
  // Where the chain has just parted nobody has failed yet.
  if (hasLeft) look.openingFailures.clear()
  const hasOpened = (before.hasUnopened || hasLeft) && (await openAssetsAgain(look))
  const [from, begun] = [fork ?? head.block, hasLeft ? null : before.begun]
  return { look, before, nodeHead, toldFinal, from, begun, hasLeft, hasOpened, mayLack }
}

/**
 * Up to where what was read is final by its network's word; infinite where that does not say. It is noted before anything is credited for it:
 * who sweeps what is credited goes by the note, and finds nothing above that.
 */
async function findFinal(
  { look, before, toldFinal, from }: Awaited<ReturnType<typeof beginLook>>,
  height: number,
): Promise<number> {
  if (toldFinal === null) return Number.POSITIVE_INFINITY
  const { world, chain, lease } = look
  // What was known to be final of blocks that have left was so of another branch.
  const known = Math.min(before.head.finalHeight ?? 0, from.height)
  const final = await finalSoFar(look, toldFinal, known, height)
  const isNews = final !== known || before.head.finalHeight === null
  if (isNews) await noteFinal(world.db, lease, chain.id, final)
  return final
}

/** What stands deep enough by now is credited, and what was paid in a block that another has replaced is owed again. */
async function bookWhatIsDeep(
  look: Look,
  before: LookedBefore,
  { height, final, isNew }: { readonly height: number; readonly final: number; readonly isNew: boolean },
): Promise<void> {
  const { world, chain, lease, branch } = look
  const guard = (tx: Sql) => requireLease(tx, lease)
  // Deposits come into blocks by what a look reads, and by nothing else.
  if (isNew || before.hasMined) {
    const counted = countedHeight(chain, height, final)
    await confirmDeposits(look, counted)
    await bookHouseDeposits(world, chain.id, counted, branch, guard)
  }
  // What was found final in a block that the watcher had not read, or had left already.
  const replaced = { kind: 'replaced', aboveHeight: height - REACH_BLOCKS } as const
  if (isNew) await orphanOutflows(world, chain.id, replaced, branch, guard)
}

function ringForNewBlock({ alarms }: World, { id }: Chain): void {
  alarms.ring(`payouts ${id}`)
  // How many confirmations a deposit has is worked out from the height that the market board knows.
  alarms.ring('market')
}

/** A way of so few blocks is over within the look, and noted at its end. */
const SHORT_WAY_BLOCKS = 5

/**
 * Noted at the beginning: a look that takes long, fails or does not come to the node's head says nothing at its end.
 */
function isFarFrom({ block, nodeHeight }: ChainHead, nodeHead: BlockRef): boolean {
  return nodeHead.height - block.height > SHORT_WAY_BLOCKS && nodeHead.height !== nodeHeight
}

/**
 * A look that finds what the last one found is noted once a second: each note is a write that PostgreSQL waits for its
 * disk for.
 */
const NOTED_REST_MS = 1_000

function isWorthNoting(head: ChainHead, looked: Looked): boolean {
  if (head.trouble !== null || looked.nodeHeight !== head.nodeHeight) return true
  return looked.nowMs - head.lookedAtMs >= NOTED_REST_MS || silenceMs(head, looked.wallMs) >= NOTED_REST_MS
}

/**
 * Up to when we know what was paid. On a chain that tells only what is final that is the time of the last block read
 * and no later: what was paid since may be in a block that is final in a moment. Where heads tell their time it is that
 * of the node's, as its next block, or one that it has yet to hear of, may be from before this look; but not where a
 * chain may stand still, and nobody knows when its next block comes. 0: this look has not moved it, as one does not
 * that came to no end of the mempool, or whose node may have to catch up.
 */
function toldUntil(
  { world: { clock, policy }, chain: { id } }: Look,
  startedAtMs: InstantMs,
  minedAtMs: InstantMs,
  { timeMs }: NodeHead,
): InstantMs {
  if (tellsFinalOnly(id)) return Math.min(startedAtMs, minedAtMs)
  if (timeMs === undefined || policy.standstillMs[id] === undefined) return startedAtMs
  return Math.min(startedAtMs, clock.fromWallMs(timeMs))
}

/** A node that is another network's has nothing to say; that it is is the chain's trouble, and shown as such. */
export async function checkIdentity(world: World, chain: Chain, lease: Lease): Promise<void> {
  try {
    await chain.checkIdentity()
  } catch (error) {
    await tellTrouble(world, chain, lease, error)
    throw error
  }
}

/**
 * Throws instead when the lease was lost meanwhile: who slept while another went on compares what it knew with a chain
 * or with tables that have moved, and whatever it finds wrong is not.
 */
async function tellTrouble({ db, clock }: World, chain: Chain, lease: Lease, error: unknown): Promise<void> {
  await db.transaction(async (tx) => {
    await requireLease(tx, lease)
    await noteTrouble(tx, chain.id, String(error), clock.nowMs())
  })
}
