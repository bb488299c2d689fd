import type { StoredOutflow } from '../../db/outflows.ts'
import type { SigningWorld } from '../world.ts'

/** Whether it has been in trouble for so long that it is not tried any more. */
export function isStalled({ clock, policy }: SigningWorld, { troubleSinceMs }: StoredOutflow): boolean {
  return troubleSinceMs !== null && clock.nowMs() - troubleSinceMs >= policy.stallMs
}
