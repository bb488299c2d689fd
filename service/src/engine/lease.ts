import { type Lease, releaseLease, takeLease } from '../db/leases.ts'
import type { World } from './world.ts'

/** How long a lease holds without being renewed; a dead holder is followed after this. */
const HOLD_MS = 6_000

/** A holder's name that no other process and no earlier life of this one has. */
export type LeaseKeeper = {
  /** The lease, taken or renewed just now, or null while somebody else has it. */
  hold(): Promise<Lease | null>
  release(): Promise<void>
}

export function leaseKeeper(world: World, name: string, holder: string): LeaseKeeper {
  let lease: Lease | null = null
  let renewedWallMs = 0
  let renewal: Promise<Lease | null> | null = null
  const renew = async () => {
    const wallMs = world.clock.wallMs()
    lease = await takeLease(world.db, name, holder, wallMs, HOLD_MS)
    renewedWallMs = wallMs
    return lease
  }
  return {
    hold: async () => {
      // Renewing at each look would be a write a look; a third of the time is early enough.
      if (lease !== null && world.clock.wallMs() - renewedWallMs < HOLD_MS / 3) return lease
      // One for all who ask: it waits for the transactions that require the lease, and nobody begins another meanwhile.
      renewal ??= renew().finally(() => {
        renewal = null
      })
      return renewal
    },
    release: async () => {
      if (lease !== null) await releaseLease(world.db, lease)
      lease = null
    },
  }
}
