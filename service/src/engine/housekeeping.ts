import { deleteRateLocks } from '../db/rate_locks.ts'
import { deleteRetrySlots } from '../db/retry_slots.ts'
import type { World } from './world.ts'

const ROWS_A_STEP = 10_000

/** Deletes what nobody can ask for any more. True: there may be more. */
export async function keepHouse(world: World): Promise<boolean> {
  const { policy, clock, db } = world
  const locks = await deleteRateLocks(db, clock.nowMs() - policy.lockMemoryMs, ROWS_A_STEP)
  const slots = await deleteRetrySlots(db, clock.wallMs() - policy.retrySlotMs, ROWS_A_STEP)
  return locks === ROWS_A_STEP || slots === ROWS_A_STEP
}
