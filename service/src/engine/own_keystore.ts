import { readOutermostKeys, type StoredKey } from '../db/addresses.ts'
import type { Sql } from '../db/database.ts'
import { type KeystoreDifference, noteDifferences, readDifferences } from '../db/keystore_differences.ts'
import { type AddressFamily, chainFacts } from '../domain/catalog/networks.ts'
import { SECOND_MS } from '../domain/time.ts'
import type { Signer } from '../signer/signer.ts'
import type { SigningWorld } from './world.ts'

/** How often an idle engine looks: the signer may be started anew with another keystore. */
export const KEYSTORE_REST_MS = 5 * SECOND_MS
/** Whoever has not noted what it found for so long is gone. */
const NOTED_MS = 3 * KEYSTORE_REST_MS

/**
 * The signer behind a guard: it is asked for nothing while it derives an address other than the stored one. Deposits would lie at keys of
 * one keystore and the reserve at those of another, and its record is not the one of what was signed before.
 *
 * What was compared holds for the connection over which it was: over another one another signer may answer, and it is compared
 * before anything is asked over that. `compare` looks in any case, and notes for all processes what it finds. A signer that is
 * away is compared when it answers.
 */
export function guardSigner(
  world: SigningWorld,
  holder: string,
): { readonly signer: Signer; compare(): Promise<void> } {
  const { signer } = world
  const note = noter(world, holder)
  let known = nothingCompared
  const compare = inTurn(async () => {
    known = await compareKeys(world, known)
    await note(known)
  })
  const isKnown = (family: AddressFamily | null) =>
    known.connection !== null &&
    known.connection === connectionOf(signer) &&
    (family === null || known.families.has(family))
  /** `family`: where nothing of it was stored yet, another engine may have stored something since. */
  const guarded = async <Answer>(
    family: AddressFamily | null,
    ask: () => Promise<Answer>,
  ): Promise<Answer> => {
    if (!isKnown(family)) await compare()
    // Nothing is waited for between these two: it is asked over the connection that was compared.
    requireOwn(known, signer)
    return ask()
  }
  return {
    compare,
    signer: {
      addresses: (...request) => guarded(request[0], () => signer.addresses(...request)),
      room: (asset) => guarded(null, () => signer.room(asset)),
      lastSigned: (payoutId) => guarded(null, () => signer.lastSigned(payoutId)),
      lastOutflow: (orderId) => guarded(null, () => signer.lastOutflow(orderId)),
      sign: (intent, authority) => guarded(null, () => signer.sign(intent, authority)),
    },
  }
}

type Compared = {
  /** Over which the signer has answered. Null: it has not, or there was nothing to compare. */
  readonly connection: object | null
  /** Of which it has answered. */
  readonly families: ReadonlySet<AddressFamily>
  /** One a family at most. */
  readonly differences: readonly KeystoreDifference[]
  /** Why nothing was heard when it was last asked, or null. */
  readonly silence: unknown
}

const nothingCompared: Compared = {
  connection: null,
  families: new Set(),
  differences: [],
  silence: null,
}

/** A signer in this process is its own: it has the same keystore as long as it is there. */
function connectionOf(signer: Signer): object | null {
  return signer.connection === undefined ? signer : signer.connection()
}

class OtherKeystore extends Error {
  override readonly name = 'OtherKeystore'
}

function requireOwn({ connection, families, differences, silence }: Compared, signer: Signer): void {
  const problem = problemOfKeystore(differences)
  if (problem !== null) throw new OtherKeystore(problem)
  const isNew = families.size === 0 && silence === null
  if (isNew || connection === connectionOf(signer)) return
  throw silence ?? new Error('the signer is reached anew since its keystore was compared; it is asked later')
}

/** Asks the signer for nothing where nothing is stored: a new database takes any keystore. */
async function compareKeys({ db, chains, signer }: SigningWorld, before: Compared): Promise<Compared> {
  const own = [...chains.values()].map(({ family }) => family)
  const stored = await readOutermostKeys(db, [...new Set([...own, ...ofKeystoreAlone])])
  if (stored.length === 0) return nothingCompared
  const asked = stored.map((key) => compareKey(signer, key))
  const connection = connectionOf(signer)
  const answers = await Promise.allSettled(asked)
  const heard = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
  if (heard.length === 0 || connection !== connectionOf(signer)) {
    const silent = answers.find((answer) => answer.status === 'rejected')
    return { ...before, silence: silent?.reason ?? new Error('the signer was cut off while it was compared') }
  }
  const families = new Set(heard.map(({ family }) => family))
  const differences = new Map<AddressFamily, KeystoreDifference>()
  // As long as nobody knows better, what was found before stands.
  for (const found of before.differences)
    if (!families.has(found.family)) differences.set(found.family, found)
  for (const { family, found } of heard) {
    if (found !== null && !differences.has(family)) differences.set(family, found)
  }
  return { connection, families, differences: [...differences.values()], silence: null }
}

/** Compares what is stored of these families with what is derived now. */
export async function findDifferences(
  sql: Sql,
  signer: Pick<Signer, 'addresses'>,
  families: readonly AddressFamily[],
): Promise<readonly KeystoreDifference[]> {
  const stored = await readOutermostKeys(sql, families)
  const compared = await Promise.all(stored.map((key) => compareKey(signer, key)))
  return compared.flatMap(({ found }) => found ?? [])
}

async function compareKey(
  signer: Pick<Signer, 'addresses'>,
  { family, purpose, index, address: stored }: StoredKey,
) {
  const [derived = 'nothing'] = await signer.addresses(family, purpose, index, 1)
  return { family, found: derived === stored ? null : { family, purpose, index, stored, derived } }
}

/** Writes down for all processes what was found, and tells once that there is a difference, and once that it is gone. */
function noter({ db, clock, log }: SigningWorld, holder: string): (compared: Compared) => Promise<void> {
  let isTold = false
  return async ({ differences, silence }) => {
    const problem = problemOfKeystore(differences)
    if (problem !== null && !isTold) {
      log.error({ differences }, `no address is derived or handed out, and nothing is signed: ${problem}`)
    }
    if (problem === null && isTold) {
      log.warn({}, 'the signer has the keystore of this database: addresses are derived and outflows go on')
    }
    isTold = problem !== null
    // Whoever has heard nothing takes nothing back.
    const isOver = problem === null && silence === null && (await readDifferences(db)).length > 0
    if (problem === null && !isOver) return
    await noteDifferences(db, { holder, wallMs: clock.wallMs(), keptMs: NOTED_MS }, differences)
  }
}

/** Where an address follows from more than the keystore, the variable that it follows from as well. */
const beside: Partial<Record<AddressFamily, string>> = {
  bitcoin: 'CAMBIST_BTC_NETWORK',
  xrp: 'CAMBIST_XRP_NETWORK_ID',
  eos: 'CAMBIST_EOS_ACCOUNT',
}

/** Compared by whoever offers none of them as well: what is stored of others says whose database it is before anything new is in it. */
const ofKeystoreAlone = Object.values(chainFacts)
  .map(({ family }) => family)
  .filter((family) => beside[family] === undefined)

/** What is wrong, for whoever operates the service, and what to look at; null where nothing differs. */
export function problemOfKeystore(differences: readonly KeystoreDifference[]): string | null {
  const first = differences.find(({ family }) => beside[family] === undefined) ?? differences[0]
  if (first === undefined) return null
  const { family, purpose, index, stored, derived } = first
  const what = `the signer derives ${derived} as ${family} ${purpose} ${index}, which is ${stored} in this database`
  if (beside[family] === undefined)
    return `${what}: it has another keystore (CAMBIST_KEYSTORE_FILE), or this is another's database (DATABASE_URL)`
  const variables = new Set(differences.map((difference) => beside[difference.family]))
  return `${what}: it has another ${[...variables].join(' and ')} than this database was filled with, or another keystore (CAMBIST_KEYSTORE_FILE)`
}

/** Does one after the other; whoever asks while one is done shares the next, which has all begun after he asked. */
function inTurn(work: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> = Promise.resolve()
  let next: Promise<void> | null = null
  return () => {
    next ??= current.then(() => {
      next = null
      const done = work()
      current = done.catch(() => {})
      return done
    })
    return next
  }
}
