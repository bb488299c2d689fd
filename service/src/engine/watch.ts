import type { Block, Chain, Transfer } from '../chains/chain.ts'
import { findOwnAddresses, type OwnAddress } from '../db/addresses.ts'
import {
  advanceHead,
  blockHashAt,
  type ChainHead,
  noteLooked,
  noteTrouble,
  readHead,
  rewindHead,
  startHead,
} from '../db/chain_heads.ts'
import { unmineCoins, upsertCoin } from '../db/coins.ts'
import {
  findDeepDeposits,
  findDepositsInBlock,
  findWaitingDeposits,
  type WatchedDeposit,
} from '../db/deposits.ts'
import { isLeaseHeld, type Lease } from '../db/leases.ts'
import { assert } from '../domain/assert.ts'
import { chainFacts } from '../domain/catalog/networks.ts'
import { amountOf, toChainUnits } from '../domain/money/amount.ts'
import type { BlockRef } from '../domain/orders/order.ts'
import { apply } from './apply.ts'
import { bookHouseDeposits, noteHouseDeposit, unmineHouseDeposits } from './house.ts'
import { saveReserves } from './reserves.ts'
import type { World } from './world.ts'

/**
 * One look at a chain by the holder of its lease: blocks that left the best chain, blocks that came, the mempool, what
 * waits there, and what has become deep enough. Every step may be done again after a crash: facts have keys.
 * Answers true when the node has more blocks than one look takes.
 */
export async function watchChain(world: World, chain: Chain, lease: Lease): Promise<boolean> {
  const startedAtMs = world.clock.nowMs()
  try {
    const nodeHead = await chain.head()
    const head = await firstHead(world, chain, nodeHead)
    if (await hasForked(chain, head, nodeHead)) await followReorganisation(world, chain, head, lease)
    const height = await readNewBlocks(world, chain, nodeHead.height, lease)
    if (height < nodeHead.height) return true
    await readMempool(world, chain, height)
    await checkWaiting(world, chain, height)
    await confirmDeposits(world, chain, height)
    await bookHouseDeposits(world, chain.id, height)
    await saveReserves(world, chain, height)
    await noteLooked(world.db, chain.id, nodeHead.height, {
      nowMs: startedAtMs,
      wallMs: world.clock.wallMs(),
    })
    return false
  } catch (error) {
    await noteTrouble(world.db, chain.id, String(error), world.clock.nowMs())
    throw error
  }
}

async function firstHead(world: World, chain: Chain, nodeHead: BlockRef): Promise<ChainHead> {
  const known = await readHead(world.db, chain.id)
  if (known !== null) return known
  await startHead(world.db, chain.id, nodeHead, world.clock.nowMs())
  const started = await readHead(world.db, chain.id)
  assert(started !== null, 'a head that was just stored is there')
  return started
}

/** A block on top of ours shows by its parent whether ours still stands; asked here so that nothing is read in vain. */
async function hasForked(chain: Chain, { block }: ChainHead, nodeHead: BlockRef): Promise<boolean> {
  if (nodeHead.hash === block.hash) return false
  return (await chain.blockHash(block.height)) !== block.hash
}

/** Goes back to the last block that is still on the best chain, telling every deposit above it. */
async function followReorganisation(
  world: World,
  chain: Chain,
  head: ChainHead,
  lease: Lease,
): Promise<void> {
  let height = head.block.height
  const orphans: BlockRef[] = []
  for (; ; height -= 1) {
    const known =
      height === head.block.height ? head.block.hash : await blockHashAt(world.db, chain.id, height)
    if (known === null) {
      throw new Error(`${chain.id} was reorganised below every block we know; an operator must look at this`)
    }
    if ((await chain.blockHash(height)) === known) break
    orphans.push({ height, hash: known })
  }
  const fork = {
    height,
    hash: orphans.length === 0 ? head.block.hash : await knownHash(world, chain, height),
  }
  if (orphans.length === 0) return
  world.log.warn({ chain: chain.id, depth: orphans.length, fork }, 'the chain was reorganised')
  for (const { hash } of orphans) {
    for (const deposit of await findDepositsInBlock(world.db, chain.id, hash)) {
      await apply(world, deposit.orderId, `${deposit.key}:unmined:${hash}`, {
        kind: 'DepositUnmined',
        key: deposit.key,
      })
    }
  }
  await world.db.transaction(async (tx) => {
    if (!(await isLeaseHeld(tx, lease))) throw new Error('the lease was lost')
    for (const { hash } of orphans) {
      await unmineCoins(tx, chain.id, hash)
      await unmineHouseDeposits(tx, chain.id, hash, world.clock.nowMs())
    }
    await rewindHead(tx, chain.id, fork, cautiousUntil(chain, head, orphans.length))
  })
}

async function knownHash(world: World, chain: Chain, height: number): Promise<string> {
  const hash = await blockHashAt(world.db, chain.id, height)
  assert(hash !== null, 'the fork is a block we know')
  return hash
}

/** Deeper than half of what we wait for: somebody may be rewriting the chain, so nothing leaves on its word for a while. */
function cautiousUntil(chain: Chain, head: ChainHead, depth: number): number {
  const { confirmations } = chainFacts[chain.id]
  return depth * 2 > confirmations ? head.block.height + confirmations : 0
}

/** A look takes at most so many blocks, so that confirmations and mempool are not kept waiting by a long way to go. */
const BLOCKS_A_LOOK = 50

async function readNewBlocks(world: World, chain: Chain, nodeHeight: number, lease: Lease): Promise<number> {
  let head = await readHead(world.db, chain.id)
  assert(head !== null, 'the head is stored')
  const last = Math.min(nodeHeight, head.block.height + BLOCKS_A_LOOK)
  for (let height = head.block.height + 1; height <= last; height += 1) {
    const block = await readOwnBlock(world, chain, height)
    // Gone, or on another branch than the one we stand on: the next look finds the fork first.
    if (block === null || block.block.parentHash !== head.block.hash) return head.block.height
    await noteBlock(world, chain, block, lease)
    head = { ...head, block: { height, hash: block.block.hash } }
  }
  return head.block.height
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

async function noteBlock(world: World, chain: Chain, { block, ours }: OwnBlock, lease: Lease): Promise<void> {
  const ref = { height: block.height, hash: block.hash }
  // The service's time when the block was made, unless its timestamp runs ahead of us.
  const minedAtMs = Math.min(world.clock.nowMs(), world.clock.fromWallMs(block.timeMs))
  for (const transfer of block.transfers) {
    const own = ours.get(transfer.to)
    assert(own !== undefined, 'a chain tells only transfers to ours')
    if (isForOrder(chain, transfer, own)) {
      await tellOrder(world, chain, transfer, own.orderId, ref, minedAtMs)
    } else {
      await noteHouseDeposit(world, chain.id, transfer, own, ref)
    }
  }
  await world.db.transaction(async (tx) => {
    if (!(await isLeaseHeld(tx, lease))) throw new Error('the lease was lost')
    if (chain.model === 'coins') {
      for (const transfer of block.transfers) {
        const own = ours.get(transfer.to)
        if (own !== undefined) await upsertCoin(tx, chain.id, toCoin(transfer, own), ref)
      }
    }
    await advanceHead(tx, chain.id, ref)
  })
}

/** An order hears of everything of our catalogue that reaches its address on its chain; `decide` knows what counts. */
function isForOrder(
  chain: Chain,
  transfer: Transfer,
  own: OwnAddress,
): own is OwnAddress & { readonly orderId: string } {
  return own.orderId !== null && own.chain === chain.id && typeof transfer.asset === 'string'
}

async function tellOrder(
  world: World,
  chain: Chain,
  transfer: Transfer,
  orderId: string,
  block: BlockRef | null,
  seenAtMs: number,
): Promise<void> {
  assert(typeof transfer.asset === 'string', 'an order hears only of assets we know')
  const key = `${chain.id}:${transfer.id}`
  const where = block === null ? `seen:${await mempoolMoment(world, chain)}` : `mined:${block.hash}`
  await apply(world, orderId, `${key}:${where}`, {
    kind: 'DepositSeen',
    key,
    txHash: transfer.txHash,
    amount: amountOf(transfer.asset, transfer.units),
    seenAtMs,
    block,
  })
}

/** A transaction may leave a mempool and come again; between two blocks it is the same sighting. */
async function mempoolMoment(world: World, chain: Chain): Promise<string> {
  return (await readHead(world.db, chain.id))?.block.hash ?? 'start'
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

async function readMempool(world: World, chain: Chain, height: number): Promise<void> {
  let ours = new Map<string, OwnAddress>()
  const transfers = await chain.readMempool(async (addresses) => {
    ours = await findOwnAddresses(world.db, chain.family, addresses)
    return new Set(ours.keys())
  })
  for (const transfer of transfers) {
    const own = ours.get(transfer.to)
    if (own === undefined || !isForOrder(chain, transfer, own)) continue
    world.log.info(
      { chain: chain.id, order: own.orderId, tx: transfer.txHash, height },
      'a deposit is in the mempool',
    )
    await tellOrder(world, chain, transfer, own.orderId, null, world.clock.nowMs())
  }
}

/** Deposits that are in no block: still in a mempool, or gone for good? A node that cannot tell makes no difference. */
async function checkWaiting(world: World, chain: Chain, height: number): Promise<void> {
  for (const deposit of await findWaitingDeposits(world.db, chain.id)) {
    const status = await chain.lookup(deposit.txHash)
    if (status.where !== 'absent') continue
    await apply(
      world,
      deposit.orderId,
      `${deposit.key}:vanished:${height}:${await mempoolMoment(world, chain)}`,
      {
        kind: 'DepositVanished',
        key: deposit.key,
      },
    )
  }
}

async function confirmDeposits(world: World, chain: Chain, height: number): Promise<void> {
  for (const deposit of await findDeepDeposits(world.db, chain.id, height)) {
    assert(deposit.blockHash !== null, 'a mined deposit has a block')
    await confirm(world, deposit, deposit.blockHash)
  }
}

async function confirm(world: World, { orderId, key }: WatchedDeposit, blockHash: string): Promise<void> {
  await apply(world, orderId, `${key}:confirmed:${blockHash}`, { kind: 'DepositConfirmed', key })
}
