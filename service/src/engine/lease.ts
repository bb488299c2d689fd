import { type Lease, releaseLease, takeLease } from '../db/leases.ts'
import type { World } from './world.ts'

/** How long a lease holds without being renewed; a dead holder is followed after this. */
const HOLD_MS = 6_000

export type LeaseKeeper = {
  /** The lease, taken or renewed just now, or null while somebody else has it. */
  hold(): Promise<Lease | null>
  release(): Promise<void>
}

/** `holder` is a name that no other process and no earlier life of this one has. */
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
      const ageMs = world.clock.wallMs() - renewedWallMs
      if (lease !== null && ageMs >= 0 && ageMs < HOLD_MS / 3) return lease
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

/**
 * Renews the lease for as long as `work` goes on, which may wait for a single answer longer than a lease lasts. That one was
 * lost all the same shows where the work requires it, and a renewal that fails is tried again.
 */
export async function keepWhile<Value>(
  { clock, log }: Pick<World, 'clock' | 'log'>,
  { hold }: Pick<LeaseKeeper, 'hold'>,
  work: () => Promise<Value>,
): Promise<Value> {
  const over = new AbortController()
  const keep = async () => {
    while (!over.signal.aborted) {
      await clock.sleep(HOLD_MS / 3, over.signal)
      if (!over.signal.aborted) {
        await hold().catch((error: unknown) => log.warn({ err: error }, 'a lease was not renewed'))
      }
    }
  }
  const kept = keep()
  try {
    return await work()
  } finally {
    over.abort()
    await kept
  }
}
