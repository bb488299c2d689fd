import { insertAddresses, readPool } from '../db/addresses.ts'
import { type AddressFamily, depositsLie } from '../domain/catalog/networks.ts'
import type { KeyPath } from '../domain/payouts/intent.ts'
import type { SigningWorld } from './world.ts'

/** Deriving a hundred takes a twentieth of a second, in which this process could answer nobody. */
const BATCH = 25

/**
 * Keeps addresses ready, so that creating an order never waits for keys. True: few are left, and more have to be made at
 * once; a pool that is nearly full is filled in passing, for deriving takes the processor from everything else.
 */
export async function fillPool(world: SigningWorld): Promise<boolean> {
  const families = new Set([...world.chains.values()].map(({ family }) => family))
  // What the sandbox funds and payouts are made from comes first.
  for (const family of families) await fill(world, family, 'reserve', hasTags(family) ? 2 : 1)
  const { poolSize } = world.policy
  let isLow = false
  for (const family of families) {
    if (await fill(world, family, 'deposit', poolSize)) isLow = true
    if (hasCoins(family) && (await fill(world, family, 'change', poolSize))) isLow = true
  }
  return isLow
}

function hasCoins(family: AddressFamily): boolean {
  return depositsLie[family] === 'coins'
}

/** The reserve is then two: what it is funded by, and the account itself, where payments without a tag arrive. */
function hasTags(family: AddressFamily): boolean {
  return depositsLie[family] === 'tags'
}

/** The tag of a deposit is the index of its key, and many wallets take 0 for none. */
const FIRST_TAG = 1

async function fill(
  world: SigningWorld,
  family: AddressFamily,
  purpose: KeyPath['purpose'],
  wanted: number,
): Promise<boolean> {
  const { free, nextIndex } = await readPool(world.db, family, purpose)
  const missing = Math.min(wanted - free, BATCH)
  if (missing <= 0) return false
  const first = hasTags(family) && purpose === 'deposit' ? Math.max(nextIndex, FIRST_TAG) : nextIndex
  const made = await world.signer.addresses(family, purpose, first, missing)
  await insertAddresses(world.db, family, purpose, first, made)
  return (free + missing) * 4 < wanted
}
