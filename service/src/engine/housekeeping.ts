import { deleteMails } from '../db/mails.ts'
import { deleteRateLocks } from '../db/rate_locks.ts'
import { deleteRetrySlots } from '../db/retry_slots.ts'
import { deleteEndedSignIns } from '../db/sign_in_rows.ts'
import { deleteDeliveries } from '../db/webhook_log.ts'
import { DAY_MS } from '../domain/time.ts'
import type { World } from './world.ts'

const ROWS_A_STEP = 10_000
/** Long enough to ask what became of a mail. */
const MAILS_KEPT_MS = 30 * DAY_MS
/** Long enough to ask what became of a webhook, and to have it delivered again. */
const WEBHOOKS_KEPT_MS = 30 * DAY_MS

/** Deletes what nobody can ask for any more. True: there may be more. */
export async function keepHouse(world: World): Promise<boolean> {
  const { policy, clock, db } = world
  const locks = await deleteRateLocks(db, clock.nowMs() - policy.lockMemoryMs, ROWS_A_STEP)
  const slots = await deleteRetrySlots(db, clock.wallMs() - policy.retrySlotMs, ROWS_A_STEP)
  const mails = await deleteMails(db, clock.nowMs() - MAILS_KEPT_MS, ROWS_A_STEP)
  const signIns = await deleteEndedSignIns(db, clock.wallMs(), ROWS_A_STEP)
  const overSinceMs = clock.nowMs() - WEBHOOKS_KEPT_MS
  const webhooks = await db.transaction((tx) => deleteDeliveries(tx, overSinceMs, ROWS_A_STEP))
  return [locks, slots, mails, signIns, webhooks].includes(ROWS_A_STEP)
}
