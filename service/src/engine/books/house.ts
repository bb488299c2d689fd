import type { Transfer } from '../../chains/chain.ts'
import type { OwnAddress } from '../../db/addresses.ts'
import { isOwnTransaction } from '../../db/attempts.ts'
import { postForHouse } from '../../db/books.ts'
import type { Sql } from '../../db/database.ts'
import {
  type HouseDeposit,
  type HouseDepositKind,
  hasDeepHouseDeposits,
  lockDeepHouseDeposits,
  lockHouseDepositsInBlock,
  setHouseDepositState,
  upsertHouseDeposit,
} from '../../db/house_deposits.ts'
import { noteUnswept, wakeUnswept } from '../../db/unswept.ts'
import { isAssetId } from '../../domain/catalog/assets.ts'
import { type ChainId, chainFacts, depositsLie } from '../../domain/catalog/networks.ts'
import { type Posting, reserveFunded, reversed, unclaimedReceived } from '../../domain/ledger/postings.ts'
import { amountOf, exactAmount } from '../../domain/money/amount.ts'
import { type BlockRef, isDust } from '../../domain/orders/order.ts'
import type { InstantMs } from '../../domain/time.ts'
import type { World } from '../world.ts'

/** Money that reached us outside any order: recorded always, booked when it is deep, never credited to anyone. */
export async function noteHouseDeposit(
  world: Pick<World, 'clock' | 'log'> & { readonly db: Sql },
  chain: ChainId,
  transfer: Transfer,
  own: OwnAddress,
  block: BlockRef,
): Promise<void> {
  // Change comes back from our own transaction: the wallet never lost it, so nothing is to be booked. A stranger who
  // pays to the same address is another matter.
  if (own.key.purpose === 'change' && (await isOwnTransaction(world.db, transfer.txHash))) return
  const isUnlisted = typeof transfer.asset !== 'string'
  const kind: HouseDepositKind = isUnlisted ? 'unlisted' : isFunding(own) ? 'reserve' : 'stray'
  const deposit: HouseDeposit = {
    key: `${chain}:${transfer.id}`,
    kind,
    txHash: transfer.txHash,
    address: own.address,
    orderId: own.orderId,
    asset: typeof transfer.asset === 'string' ? transfer.asset : transfer.asset.unlisted,
    units: transfer.units,
  }
  await upsertHouseDeposit(world.db, chain, deposit, block, world.clock.nowMs())
  if (kind !== 'reserve') {
    const { key, txHash } = deposit
    world.log.warn({ chain, deposit: key, tx: txHash, kind }, 'money came that belongs to no order')
  }
}

/** Further reserve keys are for what reaches the account of the reserve without saying whose it is. */
function isFunding({ key }: OwnAddress): boolean {
  return key.purpose === 'reserve' && key.index === 0
}

/**
 * Books what has become deep enough, with confirmations counted up to `height`. `branch` tells a block that was left and came back from the first time; `guard`
 * throws when somebody else watches the chain by now.
 */
export async function bookHouseDeposits(
  world: World,
  chain: ChainId,
  height: number,
  branch: number,
  guard: (tx: Sql) => Promise<void>,
): Promise<void> {
  const deepHeight = height + 1 - chainFacts[chain].confirmations
  if (!(await hasDeepHouseDeposits(world.db, chain, deepHeight))) return
  const nowMs = world.clock.nowMs()
  const booked = await world.db.transaction(async (tx) => {
    await guard(tx)
    const deep = await lockDeepHouseDeposits(tx, chain, deepHeight)
    for (const deposit of deep) {
      await postForHouse(
        tx,
        `${deposit.key}:confirmed:${deposit.blockHash}@${branch}`,
        postingsOf(deposit),
        nowMs,
      )
      await setHouseDepositState(tx, chain, deposit.key, 'confirmed')
      if (deposit.kind === 'stray') await noteUnswept(tx, chain, deposit.address, nowMs)
    }
    return deep
  })
  // Not within: a transaction that is tried again would say it twice.
  for (const deposit of booked) warnOfReserve(world, chain, deposit)
}

/**
 * An exchange, say, sends what it does not take back to where it came from. Nobody but the operator can tell that from his own top-up,
 * except where the reserve is named by a tag, which who sends back does not know. Dust is sent by those who want their address copied.
 */
function warnOfReserve(
  { log }: World,
  chain: ChainId,
  { key, kind, txHash, asset, units }: HouseDeposit,
): void {
  if (kind !== 'reserve' || !isAssetId(asset) || depositsLie[chainFacts[chain].family] === 'tags') return
  const amount = amountOf(asset, units)
  if (isDust(amount)) return
  log.warn(
    { chain, deposit: key, tx: txHash, asset, amount: exactAmount(amount) },
    'money came to the reserve: a top-up of yours, or money sent back by a receiver',
  )
}

export async function unmineHouseDeposits(
  tx: Sql,
  chain: ChainId,
  blockHash: string,
  branch: number,
  nowMs: InstantMs,
): Promise<void> {
  for (const deposit of await lockHouseDepositsInBlock(tx, chain, blockHash)) {
    if (deposit.state === 'confirmed') {
      await postForHouse(
        tx,
        `${deposit.key}:unmined:${blockHash}@${branch}`,
        reversed(postingsOf(deposit)),
        nowMs,
      )
      await wakeUnswept(tx, chain, deposit.address)
    }
    await setHouseDepositState(tx, chain, deposit.key, 'orphaned')
  }
}

/** An unlisted token has no place in the books: we do not know what it is. */
function postingsOf({ kind, asset, units }: HouseDeposit): readonly Posting[] {
  if (!isAssetId(asset)) return []
  const amount = amountOf(asset, units)
  return kind === 'reserve' ? reserveFunded(amount) : unclaimedReceived(amount)
}
