import { insertAddresses, type Pool, type PoolName, readPools } from '../db/addresses.ts'
import { assert } from '../domain/assert.ts'
import { type AddressFamily, depositsLie } from '../domain/catalog/networks.ts'
import type { SigningWorld } from './world.ts'

/** Deriving a hundred takes a twentieth of a second, in which this process could answer nobody. */
const BATCH = 25

/**
 * Keeps addresses ready, so that creating an order never waits for keys. True: few were left, and more have to be made at
 * once; a pool that is nearly full is filled in passing, for deriving takes the processor from everything else. Rejects when one
 * could not be filled, once all others are: a signer may have no part in one network yet.
 */
export async function fillPools(world: SigningWorld): Promise<boolean> {
  const wanted = wantedPools(world)
  const pools = await readPools(world.db, wanted)
  const failures: unknown[] = []
  let isLow = false
  for (const [at, pool] of pools.entries()) {
    const want = wanted[at]
    assert(want !== undefined, 'a pool was asked for')
    try {
      if ((await fill(world, want, pool)) && want.purpose !== 'reserve') isLow = true
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
  return isLow
}

type Wanted = PoolName & { readonly count: number }

/** What the sandbox funds and payouts are made from comes first. */
function wantedPools({ chains, policy }: SigningWorld): readonly Wanted[] {
  const families = [...new Set([...chains.values()].map(({ family }) => family))]
  const { poolSize } = policy
  return [
    ...families.map((family): Wanted => ({ family, purpose: 'reserve', count: hasTags(family) ? 2 : 1 })),
    ...families.flatMap((family): Wanted[] => [
      { family, purpose: 'deposit', count: poolSize },
      ...(hasCoins(family) ? [{ family, purpose: 'change', count: poolSize } as const] : []),
    ]),
  ]
}

/** Whose payouts bring change back. */
export function hasCoins(family: AddressFamily): boolean {
  return depositsLie[family] === 'coins'
}

/** The reserve is then two: what it is funded by, and the account itself, where payments without a tag arrive. */
function hasTags(family: AddressFamily): boolean {
  return depositsLie[family] === 'tags'
}

/** The tag of a deposit is the index of its key, and many wallets take 0 for none. */
const FIRST_TAG = 1

/** The key that the next deposit address of the family is made from. */
export function nextDepositIndex(family: AddressFamily, { nextIndex }: Pool): number {
  return hasTags(family) ? Math.max(nextIndex, FIRST_TAG) : nextIndex
}

/**
 * Makes one batch; where less than a fourth is left, so many that it is there again, because orders may come faster than this is
 * asked again. Whether so few were left.
 */
async function fill(world: SigningWorld, { family, purpose, count }: Wanted, pool: Pool): Promise<boolean> {
  const isFew = (ready: number) => ready * 4 < count
  let { free } = pool
  let nextIndex = purpose === 'deposit' ? nextDepositIndex(family, pool) : pool.nextIndex
  do {
    const missing = Math.min(count - free, BATCH)
    if (missing <= 0) return false
    const made = await world.signer.addresses(family, purpose, nextIndex, missing)
    await insertAddresses(world.db, family, purpose, nextIndex, made)
    free += missing
    nextIndex += missing
  } while (isFew(free))
  return isFew(pool.free)
}
