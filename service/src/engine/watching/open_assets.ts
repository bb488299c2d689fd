import { blockHashAt, readHead } from '../../db/chain_heads.ts'
import { requireLease } from '../../db/leases.ts'
import { noteOpened, readUnopened } from '../../db/opened_assets.ts'
import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { depositsLie } from '../../domain/catalog/networks.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { noteHouseDeposit } from '../books/house.ts'
import { keepLease, type Look } from './look.ts'
import type { Move } from './moves.ts'
import { readOpening } from './opening.ts'

/** A node that has just failed is not asked again at once: every look would wait for it. One that takes its time to fail has a tenth of all. */
const FAILED_REST_MS = 10_000
const RESTS_PER_FAILURE = 9
/** Where a clock was set meanwhile, or a machine stood still, it did not take what it seems to have taken. */
const FAILED_REST_MS_MAX = HOUR_MS

/**
 * When a token is listed, addresses of ours may hold it already: anybody who saw them on the chain can have sent it. It was in no book,
 * and outflows would stop for good. So what is held at the first head that is looked at with the token is booked as a sum, and what later
 * blocks bring is told. If that cannot be read now, nothing changes: nothing of the token is told until some later head, and the sum is
 * that head's.
 */
export async function openAssets(look: Look): Promise<void> {
  const { world, chain } = look
  const unopened = await readUnopened(world.db, chain.assets)
  const isNew = unopened.some(({ height }) => height === null)
  if (!isNew) return
  const head = await readHead(world.db, chain.id)
  assert(head !== null, 'a look begins with a head')
  for (const { asset, height } of unopened) {
    if (height === null) await tryToOpen(look, asset, async () => head.block)
  }
}

/**
 * A block with a sum that leaves the chain takes the sum with it; it is read anew where the chain parted, and nothing that was told of
 * later blocks is in it. Before anything else is: nodes soon forget what was held at a block. True: something was opened, and its figures
 * are as old as what was lost.
 */
export async function openAssetsAgain(look: Look): Promise<boolean> {
  let hasOpened = false
  for (const { asset, height } of await readUnopened(look.world.db, look.chain.assets)) {
    if (height !== null && (await tryToOpen(look, asset, () => blockAt(look, height)))) hasOpened = true
  }
  return hasOpened
}

/** No other asset waits for one that a node fails at. An asset that is not opened is neither offered nor compared nor swept. */
async function tryToOpen(look: Look, asset: AssetId, findBlock: () => Promise<BlockRef>): Promise<boolean> {
  const { world, chain, lease, openingFailures } = look
  const startedWallMs = world.clock.wallMs()
  const failure = openingFailures.get(asset)
  if (failure !== undefined && Math.abs(startedWallMs - failure.failedWallMs) < failure.restMs) return false
  try {
    await openAsset(look, asset, await findBlock())
    openingFailures.delete(asset)
    return true
  } catch (error) {
    // Who has lost the lease has nothing more to do here, whatever it was that failed.
    await keepLease(look)
    await requireLease(world.db, lease)
    const failedWallMs = world.clock.wallMs()
    const restMs = Math.min(FAILED_REST_MS_MAX, (failedWallMs - startedWallMs) * RESTS_PER_FAILURE)
    openingFailures.set(asset, { failedWallMs, restMs: Math.max(FAILED_REST_MS, restMs) })
    world.log.warn(
      { chain: chain.id, asset, err: error },
      'an asset could not be opened: not offered meanwhile',
    )
    return false
  }
}

async function openAsset(look: Look, asset: AssetId, block: BlockRef): Promise<void> {
  const { world, chain, lease } = look
  const opening = lieOnAddresses(chain) ? await readOpening(look, [asset], block) : []
  // Of a block that has left meanwhile the node tells what is held on the other branch.
  if ((await chain.blockHash(block.height)) !== block.hash)
    throw new Error(`${chain.id} has left block ${block.height} while ${asset} was opened there`)
  await world.db.transaction(async (tx) => {
    await requireLease(tx, lease)
    for (const { transfer, own } of opening) {
      await noteHouseDeposit({ ...world, db: tx }, chain.id, transfer, own, block)
    }
    await noteOpened(tx, [asset], block.height)
  })
  world.log.warn({ chain: chain.id, asset, block, holders: opening.length }, 'an asset was opened')
}

/** Where the chain parted. It stands on that block, and so does whatever was read since, also when that was more than is remembered. */
async function blockAt({ world, chain }: Look, height: number): Promise<BlockRef> {
  const hash = (await blockHashAt(world.db, chain.id, height)) ?? (await chain.blockHash(height))
  if (hash === null) throw new Error(`the node of ${chain.id} does not have block ${height}`)
  return { height, hash }
}

/** Coins and what tags tell apart are native coin, which is told from a chain's first look on. */
function lieOnAddresses({ family }: Look['chain']): boolean {
  return depositsLie[family] === 'addresses'
}

/** Of what nothing is told yet: it will be in the sum. */
export async function readUntoldAssets({
  world: { db },
  chain,
}: Pick<Look, 'world' | 'chain'>): Promise<ReadonlySet<AssetId>> {
  if (!lieOnAddresses(chain)) return new Set()
  const unopened = await readUnopened(db, chain.assets)
  return new Set(unopened.filter(({ height }) => height === null).map(({ asset }) => asset))
}

export function isTold({ untoldAssets }: Pick<Look, 'untoldAssets'>, { transfer }: Move): boolean {
  return typeof transfer.asset !== 'string' || !untoldAssets.has(transfer.asset)
}
