import type { Funds } from '../../chains/chain.ts'
import { findOwnAddresses, takeChangeAddress } from '../../db/addresses.ts'
import { attemptsOf } from '../../db/attempts.ts'
import { type ClaimedOutflow, lockClaimed } from '../../db/claim_outflows.ts'
import { releaseCoins, stillMined, takeSpent } from '../../db/coins.ts'
import type { Sql } from '../../db/database.ts'
import {
  endedUnmined,
  findByNonce,
  findOutflow,
  isLive,
  liveStates,
  planOutflow,
  resumeOutflow,
  type StoredOutflow,
  setOutflowState,
} from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import {
  type BitcoinIntent,
  type Coin,
  coinsOf,
  type Intent,
  nonceOf,
  type PayoutId,
} from '../../domain/payouts/intent.ts'
import type { SigningWorld } from '../world.ts'
import { isStalled } from './stalled.ts'

/**
 * Plans the filler of an outflow on a coin chain. One for each outflow, ever, to a change address: what comes back
 * there by a transaction of ours is no deposit of anybody. It is the same one again when it ended because the outflow had been
 * sent after all, or was final, and that now is refused once more, or has lost its block.
 */
export async function takeBackCoins(world: SigningWorld, stuck: ClaimedOutflow): Promise<void> {
  const payoutId = fillerIdOf(stuck)
  const earlier = await findOutflow(world.db, payoutId)
  if (earlier !== null && !endedUnmined(earlier)) return
  const isPlanned = await world.db.transaction(async (tx) => {
    if ((await lockClaimed(tx, stuck)) === null) return false
    if (earlier === null) return planCoinFiller(world, tx, stuck)
    await resumeOutflow(tx, payoutId, world.clock.nowMs())
    return true
  })
  if (isPlanned) world.log.warn({ payout: stuck.payoutId }, 'the coins of a stuck outflow are taken back')
}

async function planCoinFiller({ clock }: SigningWorld, tx: Sql, stuck: ClaimedOutflow): Promise<boolean> {
  const nowMs = clock.nowMs()
  const change = await takeChangeAddress(tx, chainFacts[stuck.chain].family, stuck.chain, nowMs)
  if (change === null) return false
  await planOutflow(
    tx,
    {
      payoutId: fillerIdOf(stuck),
      kind: 'filler',
      asset: nativeAsset(stuck.chain).id,
      units: 0n,
      address: change.address,
      tag: null,
      fills: stuck.payoutId,
    },
    nowMs,
  )
  return true
}

/** The filler of an outflow on a coin chain, planned or not. */
export function fillerIdOf({ chain, payoutId }: Pick<StoredOutflow, 'chain' | 'payoutId'>): PayoutId {
  return `house-${chain}-${payoutId.replace(':', '-')}:1`
}

/** What a filler stands in for: by its coins, ended or not; by its nonce, as long as it is live. */
export async function findFilled(sql: Sql, filler: StoredOutflow): Promise<StoredOutflow | null> {
  if (filler.kind !== 'filler') return null
  if (filler.fills !== null) return findOutflow(sql, filler.fills)
  return filler.nonce === null ? null : findByNonce(sql, filler.chain, filler.nonce)
}

/**
 * Whether a filler still has to happen. `over`: it has ended, because what it stands in for is deep in the chain, or was
 * sent before anything of the filler was written down. `waits`: what it stands in for was sent while the filler was
 * not, and a payout that somebody has seen is not replaced: not even when the network then refuses it, for as long as that
 * may still pass.
 */
export async function checkFiller(
  world: SigningWorld,
  filler: ClaimedOutflow,
): Promise<'needed' | 'waits' | 'over'> {
  const { db } = world
  const filled = await findFilled(db, filler)
  // A nonce that is used for good shows when the filler is refused.
  if (filled === null) return 'needed'
  if (filled.state === 'confirmed') {
    await setOutflowState(db, filler.payoutId, liveStates, 'failed')
    return 'over'
  }
  // The filler was deep, and has lost its block: what was sent of the other once must not come back.
  if (!isLive(filled)) return 'needed'
  const isSent = (await attemptsOf(db, filled.payoutId)).some(({ answer }) => answer === 'accepted')
  if (!isSent && isStalled(world, filled)) return 'needed'
  return db.transaction(async (tx) => {
    if ((await lockClaimed(tx, filler)) === null) return 'over'
    const own = await attemptsOf(tx, filler.payoutId)
    if (own.some(({ answer }) => answer === 'accepted' || answer === 'unknown')) return 'needed'
    if (own.length > 0 || !isSent) return 'waits'
    await setOutflowState(tx, filler.payoutId, ['planned'], 'cancelled')
    return 'over'
  })
}

/**
 * Of the coins of the outflow that a filler stands in for, those that are in a block; of a filler that has an attempt, those of
 * the latest one, because its attempts pay less and less. They stay that outflow's until one of the two is deep in the
 * chain, so that the list of coins is true whichever it is.
 */
export async function readFillerFunds(tx: Sql, filler: ClaimedOutflow): Promise<Funds> {
  assert(filler.fills !== null, 'a filler on a coin chain stands in for an outflow')
  const stuck = await bitcoinIntentsOf(tx, filler.fills)
  const own = await bitcoinIntentsOf(tx, filler.payoutId)
  const addresses = await findOwnAddresses(tx, chainFacts[filler.chain].family, [filler.address])
  const key = addresses.get(filler.address)?.key
  assert(key !== undefined, `${filler.address} is ours`)
  const change = { address: filler.address, key }
  const coins = await stillMined(tx, filler.chain, own.at(-1)?.inputs ?? inputsOf(stuck))
  return { model: 'coins', coins, change, outbids: [...stuck, ...own] }
}

/**
 * A transaction of it is deep: its inputs are spent by it, whoever was given them since, and what that leaves of its other attempts
 * and of the outflow that a filler stands in for is free again. A filler that has lost its block may be mined again by an attempt
 * with other coins.
 */
export async function settleCoins(
  tx: Sql,
  { chain, payoutId, fills }: StoredOutflow,
  mined: Intent,
): Promise<void> {
  const coins = coinsOf(mined)
  if (coins.length === 0) return
  const spent = new Set(coins.map(outpointOf))
  for (const id of fills === null ? [payoutId] : [payoutId, fills]) {
    const left = inputsOf(await bitcoinIntentsOf(tx, id)).filter((coin) => !spent.has(outpointOf(coin)))
    if (left.length > 0) await releaseCoins(tx, chain, left, id)
  }
  await takeSpent(tx, chain, coins, payoutId)
}

/** Whether this transaction of a filler excludes all that was written down of what the filler stands in for. */
export async function fillsGap(sql: Sql, { nonce, fills }: ClaimedOutflow, intent: Intent): Promise<boolean> {
  if (fills === null) return nonce !== null && nonceOf(intent) === nonce
  const spent = new Set(coinsOf(intent).map(outpointOf))
  const stuck = await bitcoinIntentsOf(sql, fills)
  return stuck.every(({ inputs }) => inputs.some((coin) => spent.has(outpointOf(coin))))
}

async function bitcoinIntentsOf(sql: Sql, payoutId: string): Promise<BitcoinIntent[]> {
  return (await attemptsOf(sql, payoutId)).map(({ intent }) => {
    assert(intent.family === 'bitcoin', 'who spends coins does so on Bitcoin')
    return intent
  })
}

/** Each coin once: attempts share them. */
function inputsOf(intents: readonly Intent[]): Coin[] {
  const byOutpoint = new Map<string, Coin>()
  for (const coin of intents.flatMap(coinsOf)) {
    byOutpoint.set(outpointOf(coin), coin)
  }
  return [...byOutpoint.values()]
}

export function outpointOf({ txHash, index }: Pick<Coin, 'txHash' | 'index'>): string {
  return `${txHash}:${index}`
}
