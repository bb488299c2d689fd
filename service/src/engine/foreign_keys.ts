import type { Pool, PoolName } from '../db/addresses.ts'
import type { Signer } from '../signer/signer.ts'

/** What was found of each pool: that its last address is the signer's, or what is wrong. */
const foundBy = new WeakMap<Signer, Map<string, 'same' | { readonly problem: string }>>()

/**
 * Rejects when the signer derives another address than the one that was made last from the same place: it has another keystore than the
 * one that this database was filled from, or another network is configured. What customers send to its addresses would be lost with
 * the keystore that turns out to be the wrong one. `isForced`: asks though that was found before.
 */
export async function requireOwnKeys(
  signer: Signer,
  { family, purpose }: PoolName,
  { nextIndex, lastAddress }: Pool,
  isForced: boolean,
): Promise<void> {
  const found = foundBy.get(signer) ?? new Map()
  foundBy.set(signer, found)
  const name = `${family} ${purpose}`
  if (lastAddress === null || (!isForced && found.get(name) === 'same')) return
  const [derived] = await signer.addresses(family, purpose, nextIndex - 1, 1)
  if (derived === lastAddress) {
    found.set(name, 'same')
    return
  }
  const problem =
    `the ${purpose} address ${nextIndex - 1} of ${family} is ${lastAddress} in this database, and the signer derives ` +
    `${derived}: it has another keystore, or another network is configured; start it with those of this database`
  found.set(name, { problem })
  throw new Error(problem)
}

/** Why nothing is signed: the keys were found not to be those of this database. Null as long as that was not found. */
export function foreignKeys(signer: Signer): string | null {
  for (const found of foundBy.get(signer)?.values() ?? []) if (found !== 'same') return found.problem
  return null
}
