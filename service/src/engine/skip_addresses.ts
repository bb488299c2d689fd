import type { Clock } from '../clock.ts'
import { assignFreeDeposits, insertAddresses, readOutermostKeys, readPools } from '../db/addresses.ts'
import { appendAudit, type By, houseChain } from '../db/audit_log.ts'
import { readConnectedRoles } from '../db/connected_roles.ts'
import type { Database, Sql } from '../db/database.ts'
import { assert } from '../domain/assert.ts'
import { type AddressFamily, chainFacts } from '../domain/catalog/networks.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import type { Signer } from '../signer/signer.ts'
import { findDifferences, problemOfKeystore } from './own_keystore.ts'
import { hasCoins, nextDepositIndex } from './pool.ts'

export type SkipPlace = {
  readonly db: Database
  readonly clock: Pick<Clock, 'nowMs' | 'wallMs'>
  readonly signer: Pick<Signer, 'addresses'>
  /** Of the chains that are configured. */
  readonly families: readonly AddressFamily[]
  readonly by: By
}

export type SkipRejection = {
  readonly code: 'in_use' | 'family_not_configured' | 'other_keystore'
  readonly message: string
}

/** `assigned`: how many were free, and are no more. `nextIndex`: the key that the next address is made from. */
export type SkippedPool = {
  readonly family: AddressFamily
  readonly purpose: 'deposit' | 'change'
  readonly assigned: number
  readonly derived: number
  readonly nextIndex: number
}

/** A signer derives twice as many at once; this is a second or less between two statements. */
const BATCH = 500

/**
 * After a restore: the deposit addresses that may have been given to orders which the database has forgotten. Of each family all that
 * are free are assigned to no order, and so are `count` further ones: what is paid there is seen and booked, and no new
 * order gets them. Of change addresses as many are made, so that what came back to them is seen; those that are free are used again.
 *
 * Whatever stops it in the middle, the next call begins behind the last that is stored: it skips `count` and never less.
 */
export async function skipAddresses(
  place: SkipPlace,
  count: number,
): Promise<Outcome<readonly SkippedPool[], SkipRejection>> {
  const rejection =
    (await findUser(place.db)) ?? (await findUnconfigured(place)) ?? (await findOtherKeystore(place))
  if (rejection !== null) return refuse(rejection)
  await note(place, count)
  const skipped: SkippedPool[] = []
  for (const family of place.families) {
    skipped.push(await skip(place, family, 'deposit', count))
    if (hasCoins(family)) skipped.push(await skip(place, family, 'change', count))
  }
  return accept(skipped)
}

/** Before the first is skipped: whatever stops it in the middle, the log has it. */
function note({ db, clock, families, by }: SkipPlace, count: number): Promise<void> {
  const detail = { count: String(count), families: families.join(',') }
  const entry = { chain: houseChain(SUBJECT), atMs: clock.wallMs(), act: 'addresses_skipped', by } as const
  return db.transaction((tx) => appendAudit(tx, { ...entry, subject: SUBJECT, detail }))
}

const SUBJECT = 'addresses'

async function skip(
  { db, clock, signer }: SkipPlace,
  family: AddressFamily,
  purpose: SkippedPool['purpose'],
  count: number,
): Promise<SkippedPool> {
  const isDeposit = purpose === 'deposit'
  const nowMs = clock.nowMs()
  const assigned = isDeposit ? await assignFreeDeposits(db, family, nowMs) : 0
  const [pool] = await readPools(db, [{ family, purpose }])
  assert(pool !== undefined, 'a pool was asked for')
  const firstIndex = isDeposit ? nextDepositIndex(family, pool) : pool.nextIndex
  for (let made = 0; made < count; made += BATCH) {
    const [from, size] = [firstIndex + made, Math.min(BATCH, count - made)]
    const addresses = await signer.addresses(family, purpose, from, size)
    await insertAddresses(db, family, purpose, from, addresses, nowMs)
  }
  return { family, purpose, assigned, derived: count, nextIndex: firstIndex + count }
}

/** They give addresses to orders, derive the next ones, and pass over deposits to those that are not stored yet. */
const USERS = ['api', 'watcher', 'engine']

async function findUser(db: Sql): Promise<SkipRejection | null> {
  const user = (await readConnectedRoles(db)).find(({ roles }) => roles.some((role) => USERS.includes(role)))
  if (user === undefined) return null
  const { roles, serverPid } = user
  const message = `A process with the roles ${roles.join(',')} is connected to the database. Stop every process with the role api, watcher or engine first. Where it runs no more, end what is left of it at the server: SELECT pg_terminate_backend(${serverPid})`
  return { code: 'in_use', message }
}

/** A family that is left out would begin to give away again what it gave to lost orders. */
async function findUnconfigured({ db, families }: SkipPlace): Promise<SkipRejection | null> {
  const all = [...new Set(Object.values(chainFacts).map(({ family }) => family))]
  const stored = new Set((await readOutermostKeys(db, all)).map(({ family }) => family))
  const missing = [...stored].filter((family) => !families.includes(family))
  if (missing.length === 0) return null
  const message = `The database has addresses of ${missing.join(', ')}, and no chain of theirs is configured here: give this command the variables of every chain that was ever offered. No node is asked.`
  return { code: 'family_not_configured', message }
}

/** Addresses behind the last that is stored meet none that could tell whose they are: that is looked at before. */
async function findOtherKeystore({ db, signer, families }: SkipPlace): Promise<SkipRejection | null> {
  const problem = problemOfKeystore(await findDifferences(db, signer, families))
  return problem === null ? null : { code: 'other_keystore', message: `Nothing was changed: ${problem}.` }
}
