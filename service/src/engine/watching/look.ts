import type { BlockRef, Chain } from '../../chains/chain.ts'
import { readHead } from '../../db/chain_heads.ts'
import { type Lease, leaseLost } from '../../db/leases.ts'
import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import type { InstantMs } from '../../domain/time.ts'
import type { LeaseKeeper } from '../lease.ts'
import type { World } from '../world.ts'
import type { NodeHead } from './growth.ts'
import type { OrderMove } from './moves.ts'
import { type awaitCatchUp, SILENCE_MS } from './silence.ts'

/** What a watcher takes along from one look at a chain to the next. */
export type Watcher = {
  /** Renews the lease in the middle of a look, when that is due. */
  readonly hold: LeaseKeeper['hold']
  /** Throws when the node has been at the same height for too long, or its head is too old. */
  readonly requireGrowth: (nodeHead: NodeHead) => void
  /** Whether the node was away and may not know yet what came meanwhile; see `awaitCatchUp`. */
  readonly isCatchingUp: ReturnType<typeof awaitCatchUp>
  readonly waitingTurn: Turn
  readonly untold: Untold
  readonly vanished: Vanished
  readonly openingFailures: OpeningFailures
  readonly backlog: Backlog
  readonly awake: Awake
  readonly finalAhead: FinalAhead
  /**
   * Since when what it finds in the mempool may have waited there unread, as the step that makes this look took it of
   * `backlog`, see `takeBacklog`; null: it was read to its end before.
   */
  readonly unreadSinceMs: InstantMs | null
}

/**
 * When the first began of the looks that, one after another, came to no end of the mempool, and when that was noted
 * last; null when the last one did, or failed. One that stops at the blocks, before the mempool, notes it again.
 */
export type Backlog = { unread: { readonly sinceMs: InstantMs; readonly notedAtMs: InstantMs } | null }

export function noteBacklog(
  { backlog, awake }: Pick<Watcher, 'backlog' | 'awake'>,
  sinceMs: InstantMs | null,
  nowMs: InstantMs,
): void {
  const wokeAtMs = stayAwake(awake, nowMs)
  backlog.unread = sinceMs === null ? null : { sinceMs: Math.max(sinceMs, wokeAtMs), notedAtMs: nowMs }
}

/**
 * Since when the mempool was not read to its end. Taken before anything that may fail or find that another has the
 * lease: what comes while nobody reads has not waited since then, and nobody does while the whole process sleeps.
 */
export function takeBacklog(backlog: Backlog, nowMs: InstantMs): InstantMs | null {
  const { unread } = backlog
  backlog.unread = null
  return unread !== null && Math.abs(nowMs - unread.notedAtMs) < SILENCE_MS ? unread.sinceMs : null
}

/**
 * The lowest block that was called final before it was read here; null while there is none. It is kept until it is read: of several nodes
 * behind one address the one that tells what is final may always be ahead of the one whose blocks are read, and what it calls final now
 * never be read by then.
 */
export type FinalAhead = { block: BlockRef | null }

/** When the process was last known not to sleep, and when it woke up last. */
export type Awake = { lastMs: InstantMs; wokeAtMs: InstantMs }

export function beginAwake(nowMs: InstantMs): Awake {
  return { lastMs: nowMs, wokeAtMs: 0 }
}

/**
 * Since when the process has not slept, nor its clock been put forward: what it finds now, also by a look that it began
 * before then, counts as having waited since then at most. Asked whenever the lease is, every other second: where that
 * was long ago, it slept.
 */
export function stayAwake(awake: Awake, nowMs: InstantMs): InstantMs {
  if (Math.abs(nowMs - awake.lastMs) >= SILENCE_MS) awake.wokeAtMs = nowMs
  awake.lastMs = nowMs
  return awake.wokeAtMs
}

/** When an asset that is not opened yet was last tried to be opened in vain, in wall time, and how long that rests. */
export type OpeningFailures = Map<AssetId, { readonly failedWallMs: number; readonly restMs: number }>

/** What mempools told and no order has heard of yet, look by look: they tell each only once. */
export type Untold = { readonly seenAtMs: InstantMs; readonly moves: readonly OrderMove[] }[]

/**
 * Transactions that were told as vanished, and the hash of the head at which they were. At that head they are not seen
 * once more, see `mempoolMoment`; at the next one their mempool is asked to tell them once more, and then they are null
 * here: of several nodes behind one address that do not agree about one, each would have its word at every block.
 */
export type Vanished = Map<string, string | null>

/** Where the last look that asked stopped, and when it had asked; whoever forgets it begins anew. */
export type Turn = { lastTxHash: string; askedAtMs: InstantMs }

export function beginTurn(): Turn {
  return { lastTxHash: '', askedAtMs: 0 }
}

/** One look by one holder. `branch` counts the branches that the chain has left before. */
export type Look = Omit<Watcher, 'requireGrowth' | 'isCatchingUp' | 'backlog'> & {
  readonly world: World
  readonly chain: Chain
  readonly lease: Lease
  readonly branch: number
  /** What comes of these is in no book yet and is told by nobody; see `openAssets`. */
  readonly untoldAssets: ReadonlySet<AssetId>
}

/**
 * After every step that took its time: a look that lasts longer than a lease would lose it to another, who would begin
 * the same block again, and lose it in turn.
 */
export async function keepLease({ lease, hold }: Pick<Look, 'lease' | 'hold'>): Promise<void> {
  if ((await hold())?.fence !== lease.fence) throw leaseLost(lease)
}

/** A transaction may leave a mempool and come again; between two blocks it is the same sighting. */
export async function mempoolMoment({ world, chain }: Look): Promise<string> {
  const head = await readHead(world.db, chain.id)
  assert(head !== null, 'a look begins with a head')
  return head.block.hash
}
