import { insertAddresses, readPool } from '../db/addresses.ts'
import type { AddressFamily } from '../domain/catalog/networks.ts'
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
  for (const family of families) await fill(world, family, 'reserve', 1)
  const { poolSize } = world.policy
  let isLow = false
  for (const family of families) {
    if (await fill(world, family, 'deposit', poolSize)) isLow = true
    if (hasCoins(world, family) && (await fill(world, family, 'change', poolSize))) isLow = true
  }
  return isLow
}

function hasCoins(world: SigningWorld, family: AddressFamily): boolean {
  return [...world.chains.values()].some((chain) => chain.family === family && chain.model === 'coins')
}

async function fill(
  world: SigningWorld,
  family: AddressFamily,
  purpose: KeyPath['purpose'],
  wanted: number,
): Promise<boolean> {
  const { free, nextIndex } = await readPool(world.db, family, purpose)
  const missing = Math.min(wanted - free, BATCH)
  if (missing <= 0) return false
  const made = await world.signer.addresses(family, purpose, nextIndex, missing)
  await insertAddresses(world.db, family, purpose, nextIndex, made)
  return (free + missing) * 4 < wanted
}
