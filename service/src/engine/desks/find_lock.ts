import { findNewestRateLocks, findRateLocks, type RateLock, type WantedLock } from '../../db/rate_locks.ts'
import type { Amount } from '../../domain/money/amount.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { batched } from '../batched.ts'
import type { DeskWorld } from '../world.ts'
import { aboutField } from './about_field.ts'
import type { DeskOutcome, DeskRejection } from './desk.ts'
import type { Pair } from './quoting.ts'

/** With `rateId` that lock; without, the newest on the same pair and amount; null: there is none to keep to. */
export type FindLock = (
  pair: Pair,
  amount: Amount,
  rateId: string | null,
) => Promise<DeskOutcome<RateLock | null>>

/** Locks that are looked for at the same time are looked for together. */
export function lockFinder(world: DeskWorld): FindLock {
  const byId = batched(async (rateIds: readonly string[]) => {
    const locks = await findRateLocks(world.db, rateIds)
    return rateIds.map((rateId) => locks.get(rateId) ?? null)
  })
  const newest = batched((wanted: readonly WantedLock[]) => findNewestRateLocks(world.db, wanted))
  return async (pair, amount, rateId) => {
    const sinceMs = world.clock.nowMs() - world.policy.lockMemoryMs
    if (rateId === null) return accept(await newest({ from: amount, to: pair.to.id, sinceMs }))
    const lock = await byId(rateId)
    if (lock === null || lock.expiresAtMs <= sinceMs) return refuse(rateExpired)
    const isSame =
      lock.from.asset === pair.from.id && lock.to.asset === pair.to.id && lock.from.units === amount.units
    if (isSame) return accept(lock)
    const why = 'belongs to a quote on another pair, network or amount'
    return refuse(aboutField('INVALID_PARAMETER', 'rate_id', why))
  }
}

export const rateExpired: DeskRejection = {
  code: 'RATE_EXPIRED',
  message: 'the fixed rate has expired; request a new rate and create the order with it',
}
