import { type ClaimedOutflow, renewClaim } from '../../db/claim_outflows.ts'
import type { SigningWorld } from '../world.ts'

/** Longer than a step usually takes; a worker that died is followed after this, one that was slow loses its fence. */
export const CLAIM_MS = 6_000

const RENEW_AFTER_MS = 1_000

/** To be called between questions to nodes. Does nothing as long as they are answered quickly. */
export type KeepClaim = () => Promise<void>

/**
 * Holds the claim of a worker whose nodes take their time to answer: another one would begin the same questions anew, and lose the
 * claim in turn before it has all the answers. Who has lost it finds out under the outflow's lock.
 */
export function claimKeeper({ db, clock }: SigningWorld, outflow: ClaimedOutflow): KeepClaim {
  let keptWallMs = clock.wallMs()
  return async () => {
    const wallMs = clock.wallMs()
    // Where the clock was set back, what was claimed until later than anybody ever claims counts as free.
    if (Math.abs(wallMs - keptWallMs) < RENEW_AFTER_MS) return
    keptWallMs = wallMs
    await renewClaim(db, outflow, wallMs + CLAIM_MS)
  }
}
