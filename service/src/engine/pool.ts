import { insertAddresses, readPool } from '../db/addresses.ts'
import type { AddressFamily } from '../domain/catalog/networks.ts'
import type { KeyPath } from '../domain/payouts/intent.ts'
import type { SigningWorld } from './world.ts'

/** Deriving a hundred takes a fifth of a second, in which this process could answer nobody. */
const BATCH = 25

/** Keeps addresses ready, so that creating an order never waits for keys. True: there is more to make. */
export async function fillPool(world: SigningWorld): Promise<boolean> {
  let isShort = false
  const families = new Set([...world.chains.values()].map(({ family }) => family))
  for (const family of families) {
    if (await fill(world, family, 'reserve', 1)) isShort = true
    if (await fill(world, family, 'deposit', world.policy.poolSize)) isShort = true
    if (hasCoins(world, family) && (await fill(world, family, 'change', world.policy.poolSize)))
      isShort = true
  }
  return isShort
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
  return wanted - free > missing
}
