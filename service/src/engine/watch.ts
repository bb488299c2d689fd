import type { Block, Chain, Transfer } from '../chains/chain.ts'
import { findOwnAddresses, type OwnAddress } from '../db/addresses.ts'
import {
  advanceHead,
  beginBlock,
  beginLeaving,
  blockHashAt,
  noteLooked,
  noteTrouble,
  readHead,
  rewindHead,
  startHead,
} from '../db/chain_heads.ts'
import { type LookedBefore, readLookedBefore } from '../db/chain_looks.ts'
import { unmineCoins, upsertCoin } from '../db/coins.ts'
import type { Sql } from '../db/database.ts'
import { findDeepDeposits, findDepositsInBlock, findWaitingDeposits } from '../db/deposits.ts'
import { type Lease, leaseLost, requireLease } from '../db/leases.ts'
import { findOwnSweeps } from '../db/outflows.ts'
import { noteUnswept, wakeUnswept } from '../db/unswept.ts'
import { assert } from '../domain/assert.ts'
import { chainFacts, tellsFinalOnly } from '../domain/catalog/networks.ts'
import { amountOf, toChainUnits } from '../domain/money/amount.ts'
import type { Fact } from '../domain/orders/facts.ts'
import type { BlockRef, Order } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import { applyInTurn } from './apply.ts'
import { atOnce } from './at_once.ts'
import { gatherCrumbs, isCrumb } from './crumbs.ts'
import { countedHeight, finalHeight } from './deep_height.ts'
import type { NodeHead } from './growth.ts'
import { bookHouseDeposits, noteHouseDeposit, unmineHouseDeposits } from './house.ts'
import type { LeaseKeeper } from './lease.ts'
import { isForOrder, type Move, type OrderMove } from './moves.ts'
import { orphanOutflows } from './payouts/orphan.ts'
import { REACH_BLOCKS } from './reach.ts'
import { saveReserves } from './reserves.ts'
import type { World } from './world.ts'

/** What a watcher takes along from one look at a chain to the next. */
export type Watcher = {
  /** Renews the lease in the middle of a look, when that is due. */
  readonly hold: LeaseKeeper['hold']
  /** Throws when the node has been at the same height for too long, or its head is too old. */
  readonly requireGrowth: (nodeHead: NodeHead) => void
  readonly waitingTurn: Turn
  readonly untold: Untold
}

/** What mempools told and no order has heard of yet, look by look: they tell each only once. */
export type Untold = { readonly seenAtMs: InstantMs; readonly moves: readonly OrderMove[] }[]

/** Where the last look stopped asking; whoever forgets it begins anew. */
export type Turn = { lastTxHash: string }

export function beginTurn(): Turn {
  return { lastTxHash: '' }
}

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
  { hold = async () => lease, requireGrowth = () => {}, ...kept }: Partial<Watcher> = {},
): Promise<boolean> {
  const { waitingTurn = beginTurn(), untold = [] } = kept
  const startedAtMs = world.clock.nowMs()
  try {
    const final = await finalHeight(chain)
    const nodeHead = await chain.head()
    const before = await lookedBefore(world, chain, lease, { nodeHead, final })
    const { head } = before
    await requireNotBehind(world, chain, before.begun ?? head.block, nodeHead)
    const earlier: Look = { world, chain, lease, hold, waitingTurn, untold, branch: head.reorganisations }
    const fork = await followReorganisation(earlier, before, nodeHead)
    const hasLeft = fork !== null
    const look: Look = { ...earlier, branch: head.reorganisations + (hasLeft ? 1 : 0) }
    const from = fork ?? head.block
    const read = await readNewBlocks(look, from, nodeHead.height, hasLeft ? null : before.begun)
    const { height } = read
    // One that tells of blocks and does not give them (several nodes behind one address, say) is not asked without rest.
    if (height < nodeHead.height) return height > from.height
    await readMempool(look, height)
    if (height !== head.block.height || isWaitingDue(startedAtMs, head.lookedAtMs))
      await checkWaiting(look, height)
    const counted = countedHeight(chain, height, final)
    await confirmDeposits(look, counted)
    const isNew = height !== head.block.height || hasLeft
    const guard = (tx: Sql) => requireLease(tx, lease)
    await bookHouseDeposits(world, chain.id, counted, look.branch, guard)
    // What was found final in a block that the watcher had not read, or had left already.
    const replaced = { kind: 'replaced', aboveHeight: height - REACH_BLOCKS } as const
    if (isNew) await orphanOutflows(world, chain.id, replaced, look.branch, guard)
    await keepLease(look)
    await saveReserves(world, chain, height, height === head.block.height ? before.reservesAtMs : 0)
    // At the end: what there is was told, whether or not there is enough of it.
    requireGrowth(nodeHead)
    await noteLooked(world.db, lease, chain.id, nodeHead.height, {
      nowMs: toldUntil(chain, startedAtMs, read.minedAtMs),
      wallMs: world.clock.wallMs(),
    })
    if (isNew) {
      world.alarms.ring(`payouts ${chain.id}`)
      // How many confirmations a deposit has is worked out from the height that the market board knows.
      world.alarms.ring('market')
    }
    return false
  } catch (error) {
    await tellTrouble(world, chain, lease, error)
    throw error
  }
}

/**
 * Up to when it is known what was paid. Where only what is final is told, that is until the last block and no further: what was paid
 * since may be in one that is final in a moment. 0: this look has not moved it.
 */
function toldUntil({ id }: Chain, startedAtMs: InstantMs, minedAtMs: InstantMs): InstantMs {
  return tellsFinalOnly(id) ? Math.min(startedAtMs, minedAtMs) : startedAtMs
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
 * Throws instead when the lease was lost meanwhile: who slept while another went on compares what it knew with a chain or
 * with tables that have moved, and whatever it finds wrong is not.
 */
async function tellTrouble({ db, clock }: World, chain: Chain, lease: Lease, error: unknown): Promise<void> {
  await db.transaction(async (tx) => {
    await requireLease(tx, lease)
    await noteTrouble(tx, chain.id, String(error), clock.nowMs())
  })
}

/** One look by one holder. `branch` counts the branches that the chain has left before. */
type Look = {
  readonly world: World
  readonly chain: Chain
  readonly lease: Lease
  readonly hold: LeaseKeeper['hold']
  readonly waitingTurn: Turn
  readonly untold: Untold
  readonly branch: number
}

/**
 * After every step that took its time: a look that lasts longer than a lease would lose it to another, who would begin
 * the same block again, and lose it in turn.
 */
async function keepLease({ lease, hold }: Look): Promise<void> {
  if ((await hold())?.fence !== lease.fence) throw leaseLost(lease)
}

async function lookedBefore(
  world: World,
  chain: Chain,
  lease: Lease,
  { nodeHead, final }: { readonly nodeHead: BlockRef; readonly final: number },
): Promise<LookedBefore> {
  const known = await readLookedBefore(world.db, chain.id, chain.assets)
  if (known !== null) return known
  const below = await blocksBelow(chain, nodeHead, final)
  // Whole or not at all: a head without blocks to go back to could not follow a reorganisation.
  await world.db.transaction(async (tx) => {
    await requireLease(tx, lease)
    await startHead(tx, chain.id, nodeHead, world.clock.nowMs(), below)
  })
  const started = await readLookedBefore(world.db, chain.id, chain.assets)
  assert(started !== null, 'a head that was just stored is there')
  return started
}

/** As many as a reorganisation may take before what is deeper counts as final. */
async function blocksBelow(chain: Chain, { height }: BlockRef, final: number): Promise<readonly BlockRef[]> {
  const deep = countedHeight(chain, height, final) + 1 - chainFacts[chain.id].confirmations
  const lowest = Math.max(0, deep, height - REACH_BLOCKS)
  const below: BlockRef[] = []
  for (let at = height - 1; at >= lowest; at -= 1) {
    const hash = await chain.blockHash(at)
    if (hash !== null) below.push({ height: at, hash })
  }
  return below
}

/**
 * A node that ends at a block we know and does not have the later ones is behind, and no proof that they left the chain: a
 * branch that replaces them has a block of its own where they part. Nothing is taken back on its word.
 */
async function requireNotBehind({ db }: World, chain: Chain, block: BlockRef, nodeHead: BlockRef) {
  const missing = block.height - nodeHead.height
  if (missing <= 0 || (await blockHashAt(db, chain.id, nodeHead.height)) !== nodeHead.hash) return
  throw new Error(`the node of ${chain.id} is ${missing} blocks behind what it told before`)
}

/** Whether blocks that we told of are no longer on the best chain; asked here so that nothing is read in vain. */
async function hasForked({ chain }: Look, { head, begun }: LookedBefore, nodeHead: BlockRef) {
  const { block } = head
  if (head.leavingAboveHeight !== null) return true
  if (begun !== null && !(await isStillThere(chain, begun, nodeHead))) return true
  if (nodeHead.hash === block.hash) return false
  return !(await isStillThere(chain, block, nodeHead))
}

/**
 * Whether a block is on the best chain. Throws where the node tells of a later block and has none at this height: another one
 * behind the same address is behind, or the chain has become shorter just now, and the next look will tell which.
 */
async function isStillThere(chain: Chain, block: BlockRef, nodeHead: BlockRef): Promise<boolean> {
  const hash = await chain.blockHash(block.height)
  if (hash === null && block.height <= nodeHead.height)
    throw new Error(
      `the node of ${chain.id} tells of block ${nodeHead.height} and does not have block ${block.height}`,
    )
  return hash === block.hash
}

/**
 * Goes back to the last block that is still on the best chain, telling every deposit above it. Null: none has left. Who died
 * in the middle of it is followed by somebody who goes on, also when the chain has come back to what it had left.
 */
async function followReorganisation(
  look: Look,
  before: LookedBefore,
  nodeHead: BlockRef,
): Promise<BlockRef | null> {
  const { world, chain, lease, branch } = look
  if (!(await hasForked(look, before, nodeHead))) return null
  const { head, begun } = before
  const orphans = begun === null ? [] : [begun]
  const knownHeight = head.leavingAboveHeight ?? Number.POSITIVE_INFINITY
  let fork: BlockRef = head.block
  while (fork.height > knownHeight || !(await isStillThere(chain, fork, nodeHead))) {
    await keepLease(look)
    orphans.push(fork)
    fork = await knownBlock(look, fork.height - 1)
  }
  const depth = head.block.height - fork.height
  world.log.warn({ chain: chain.id, depth, fork }, 'the chain was reorganised')
  // First of all: whoever hears that a deposit is gone from its address must know that its sweep is, too.
  await leaveBlocks(
    look,
    fork,
    orphans.filter(({ height }) => height <= knownHeight),
  )
  for (const { hash } of orphans) {
    const deposits = await findDepositsInBlock(world.db, chain.id, hash)
    const news = deposits.map(({ orderId, key }): News => {
      const fact = { kind: 'DepositUnmined', key } as const
      const wake: News['alongside'] = (tx, { terms }) => wakeUnswept(tx, chain.id, terms.depositAddress)
      return { orderId, what: `${key}:unmined:${hash}`, fact, alongside: wake }
    })
    await tellOrderByOrder(look, news)
  }
  await world.db.transaction(async (tx) => {
    await requireLease(tx, lease)
    for (const { hash } of orphans) {
      await unmineCoins(tx, chain.id, hash)
      await unmineHouseDeposits(tx, chain.id, hash, branch, world.clock.nowMs())
    }
    await rewindHead(tx, chain.id, fork, cautiousUntil(chain, head.block, depth))
  })
  return fork
}

/** Notes what is about to be told, once: outflows that were final in these blocks are sent again from now on. */
async function leaveBlocks(look: Look, fork: BlockRef, blocks: readonly BlockRef[]): Promise<void> {
  const { world, chain, lease, branch } = look
  if (blocks.length === 0) return
  await orphanOutflows(world, chain.id, { kind: 'named', blocks }, branch, async (tx) => {
    await requireLease(tx, lease)
    await beginLeaving(tx, chain.id, fork)
  })
}

async function knownBlock({ world, chain }: Look, height: number): Promise<BlockRef> {
  const hash = await blockHashAt(world.db, chain.id, height)
  if (hash === null) {
    throw new Error(`${chain.id} was reorganised below every block we know; an operator must look at this`)
  }
  return { height, hash }
}

/** Deeper than half of what we wait for: somebody may be rewriting the chain, so nothing leaves on its word for a while. */
function cautiousUntil(chain: Chain, left: BlockRef, depth: number): number {
  const { confirmations } = chainFacts[chain.id]
  return depth * 2 > confirmations ? left.height + confirmations : 0
}

/** A look takes at most so many blocks, so that confirmations and mempool are not kept waiting by a long way to go. */
const BLOCKS_A_LOOK = 50

/** How far it has come; `minedAtMs` of the last block that was read now, 0 when there was none. */
type ReadUpTo = { readonly height: number; readonly minedAtMs: InstantMs }

/** Every block above `from`, and how far that has come. Of `begun` some orders may have heard already. */
async function readNewBlocks(
  look: Look,
  from: BlockRef,
  nodeHeight: number,
  begun: BlockRef | null,
): Promise<ReadUpTo> {
  const { world, chain } = look
  let head = { ...from, minedAtMs: 0 }
  const last = Math.min(nodeHeight, from.height + BLOCKS_A_LOOK)
  for (let height = from.height + 1; height <= last; height += 1) {
    const block = await readOwnBlock(world, chain, height)
    await keepLease(look)
    // Gone, or on another branch than the one we stand on: the next look finds the fork first.
    if (block === null || block.block.parentHash !== head.hash) return head
    // Another took its place since we asked: what was told of it is taken back first.
    if (begun?.height === height && begun.hash !== block.block.hash) return head
    const minedAtMs = await noteBlock(look, block)
    head = { height, hash: block.block.hash, minedAtMs }
  }
  return head
}

type OwnBlock = { readonly block: Block; readonly ours: ReadonlyMap<string, OwnAddress> }

async function readOwnBlock(world: World, chain: Chain, height: number): Promise<OwnBlock | null> {
  let ours = new Map<string, OwnAddress>()
  const block = await chain.readBlock(height, async (addresses) => {
    ours = await findOwnAddresses(world.db, chain.family, addresses)
    return new Set(ours.keys())
  })
  return block === null ? null : { block, ours }
}

/** Answers when it was made. */
async function noteBlock(look: Look, { block, ours }: OwnBlock): Promise<InstantMs> {
  const { world, chain, lease } = look
  const ref = { height: block.height, hash: block.hash }
  // The service's time when the block was made, unless its timestamp runs ahead of us.
  const minedAtMs = Math.min(world.clock.nowMs(), world.clock.fromWallMs(block.timeMs))
  const transfers = await withoutSweeps(look, block.transfers)
  const arrived = transfers.map((transfer): Move => {
    const own = ours.get(transfer.to)
    assert(own !== undefined, 'a chain tells only transfers to ours')
    return { transfer, own }
  })
  const moves = await gatherCrumbs(world, chain, ref, arrived)
  // As most blocks bring nothing, noting one is a single statement.
  if (moves.length === 0) {
    await advanceHead(world.db, lease, chain.id, ref)
    return minedAtMs
  }
  const forOrders = moves.filter((move) => isForOrder(chain, move))
  if (forOrders.length > 0) {
    await world.db.transaction(async (tx) => {
      await requireLease(tx, lease)
      await beginBlock(tx, chain.id, ref)
    })
  }
  await tellOrders(look, forOrders, `mined:${ref.hash}`, ref, minedAtMs)
  await world.db.transaction(async (tx) => {
    await requireLease(tx, lease)
    for (const { transfer, own } of moves) {
      if (chain.model === 'coins') await upsertCoin(tx, chain.id, toCoin(transfer, own), ref)
      if (isForOrder(chain, { transfer, own })) continue
      await noteHouseDeposit({ ...world, db: tx }, chain.id, transfer, own, ref)
    }
    await advanceHead(tx, lease, chain.id, ref)
  })
  return minedAtMs
}

/**
 * Our own money, from one address of ours to another: nothing arrived, and no order hears of it. The bytes of a sweep
 * are stored before anybody sees them, so that it is known whenever it is seen.
 */
async function withoutSweeps(
  { world, chain }: Look,
  transfers: readonly Transfer[],
): Promise<readonly Transfer[]> {
  if (chain.model !== 'account' || transfers.length === 0) return transfers
  const sweeps = await findOwnSweeps(world.db, [...new Set(transfers.map(({ txHash }) => txHash))])
  return transfers.filter(({ txHash }) => !sweeps.has(txHash))
}

/** `where` is how the place is named in the keys of the facts. */
async function tellOrders(
  look: Look,
  moves: readonly OrderMove[],
  where: string,
  block: BlockRef | null,
  seenAtMs: number,
): Promise<void> {
  const news = moves.map(({ transfer, own }): News => {
    assert(typeof transfer.asset === 'string', 'an order hears only of assets we know')
    const key = `${look.chain.id}:${transfer.id}`
    const amount = amountOf(transfer.asset, transfer.units)
    const fact: Fact = { kind: 'DepositSeen', key, txHash: transfer.txHash, amount, seenAtMs, block }
    return { orderId: own.orderId, what: `${key}:${where}`, fact }
  })
  await tellOrderByOrder(look, news)
}

/** `what` names the event in the outside world. */
type News = {
  readonly orderId: string
  readonly what: string
  readonly fact: Fact
  readonly alongside?: (tx: Sql, order: Order) => Promise<void>
}

/** Nobody else who has something for the order waits longer than these take. */
const FACTS_AT_ONCE = 10

/**
 * Several orders at the same time; what one order hears, it hears in the order given. Nothing is told by a watcher that
 * has lost its lease, nor twice on the same branch.
 */
async function tellOrderByOrder(look: Look, news: readonly News[]): Promise<void> {
  const { world, lease, branch } = look
  const byOrder = [...Map.groupBy(news, ({ orderId }) => orderId)]
  await atOnce(world.policy.atOnce, byOrder, async ([orderId, ofOne]) => {
    for (let at = 0; at < ofOne.length; at += FACTS_AT_ONCE) {
      const told = ofOne.slice(at, at + FACTS_AT_ONCE).map(({ what, fact, alongside }) => ({
        factKey: `${what}@${branch}`,
        fact,
        alongside: async (tx: Sql, order: Order) => {
          await requireLease(tx, lease)
          await alongside?.(tx, order)
        },
      }))
      await keepLease(look)
      await applyInTurn(world, orderId, told)
    }
  })
}

/** A transaction may leave a mempool and come again; between two blocks it is the same sighting. */
async function mempoolMoment({ world, chain }: Look): Promise<string> {
  const head = await readHead(world.db, chain.id)
  assert(head !== null, 'a look begins with a head')
  return head.block.hash
}

function toCoin(transfer: Transfer, own: OwnAddress) {
  const [txHash = '', index = ''] = transfer.id.split(':')
  assert(/^\d+$/.test(index) && typeof transfer.asset === 'string', 'a coin is named txid:vout')
  return {
    txHash,
    index: Number.parseInt(index, 10),
    satoshi: toChainUnits(amountOf(transfer.asset, transfer.units)),
    address: own.address,
    key: own.key,
  }
}

async function readMempool(look: Look, height: number): Promise<void> {
  const { world, chain, untold } = look
  let ours = new Map<string, OwnAddress>()
  const transfers = await chain.readMempool(async (addresses) => {
    ours = await findOwnAddresses(world.db, chain.family, addresses)
    return new Set(ours.keys())
  })
  const moves = transfers.flatMap((transfer): OrderMove[] => {
    const own = ours.get(transfer.to)
    const move = own && { transfer, own }
    // As long as it only waits a crumb costs nobody anything, and no order counts it: its block tells of it, if it is ever mined.
    return move && isForOrder(chain, move) && !isCrumb(move) ? [move] : []
  })
  if (moves.length > 0) untold.push({ seenAtMs: world.clock.nowMs(), moves })
  for (const next of [...untold]) {
    await tellOfMempool(look, height, next)
    untold.shift()
  }
}

async function tellOfMempool(look: Look, height: number, { seenAtMs, moves }: Untold[number]): Promise<void> {
  const { world, chain } = look
  const transfers = new Set(
    await withoutSweeps(
      look,
      moves.map(({ transfer }) => transfer),
    ),
  )
  const told = moves.filter(({ transfer }) => transfers.has(transfer))
  for (const { own, transfer } of told) {
    world.log.info(
      { chain: chain.id, order: own.orderId, tx: transfer.txHash, height },
      'a deposit is in the mempool',
    )
  }
  if (told.length === 0) return
  await tellOrders(look, told, `seen:${await mempoolMoment(look)}`, null, seenAtMs)
}

/** Each costs a question to the node, and may wait for long: between blocks they are asked for every other second. */
const WAITING_REST_MS = 2_000

function isWaitingDue(nowMs: number, lookedAtMs: number): boolean {
  return Math.floor(nowMs / WAITING_REST_MS) > Math.floor(lookedAtMs / WAITING_REST_MS)
}

/** How many transactions a look asks for: anybody can make many wait, and confirmations are not to wait for them. */
const WAITING_A_LOOK = 50

/**
 * Deposits that no block has brought yet: still in a mempool, or gone for good? Also gone is what a mempool promised and
 * its block then did not do. A node that cannot tell makes no difference. Transactions take turns, and each is asked for
 * once however many of its outputs are ours.
 */
async function checkWaiting(look: Look, height: number): Promise<void> {
  const { world, chain, waitingTurn } = look
  const waiting = await findWaitingDeposits(world.db, chain.id, waitingTurn.lastTxHash, WAITING_A_LOOK)
  for (const [txHash, deposits] of Map.groupBy(waiting, (deposit) => deposit.txHash)) {
    // Before the question: one that the node fails at keeps no other from its turn.
    waitingTurn.lastTxHash = txHash
    const status = await chain.lookup(txHash)
    await keepLease(look)
    if (status.where === 'mempool') continue
    if (status.where === 'block' && !(await wasReadWhole(look, status.block, height))) continue
    const moment = `${height}:${await mempoolMoment(look)}`
    const news = deposits.map(({ orderId, key }): News => {
      return { orderId, what: `${key}:vanished:${moment}`, fact: { kind: 'DepositVanished', key } }
    })
    await tellOrderByOrder(look, news)
  }
}

/** Whatever it brought us was told: a deposit that still waits was not in it. */
async function wasReadWhole({ world, chain }: Look, block: BlockRef, height: number): Promise<boolean> {
  return block.height <= height && (await blockHashAt(world.db, chain.id, block.height)) === block.hash
}

async function confirmDeposits(look: Look, counted: number): Promise<void> {
  const { world, chain } = look
  const deep = await findDeepDeposits(world.db, chain.id, counted)
  const news = deep.map(({ orderId, key, blockHash }): News => {
    assert(blockHash !== null, 'a mined deposit has a block')
    return {
      orderId,
      what: `${key}:confirmed:${blockHash}`,
      fact: { kind: 'DepositConfirmed', key },
      alongside: (tx, { terms }) => noteUnswept(tx, chain.id, terms.depositAddress, world.clock.nowMs()),
    }
  })
  await tellOrderByOrder(look, news)
}
