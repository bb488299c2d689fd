import { type ChainHead, readHeads, silenceMs } from '../db/chain_heads.ts'
import { readSession, SERVICE_ROLE, type Session, type Sql } from '../db/database.ts'
import { readDifferences } from '../db/keystore_differences.ts'
import { compareMigrations } from '../db/migrations_done.ts'
import { assets } from '../domain/catalog/assets.ts'
import { SECOND_MS } from '../domain/time.ts'
import { keptFor } from './kept.ts'
import { problemOfKeystore } from './own_keystore.ts'
import type { World } from './world.ts'

type Check = { readonly ok: boolean; readonly detail?: string }

/** `checks` name what the service stands on; `detail` is for the operator and says what is wrong. */
export type Readiness = { readonly ready: boolean; readonly checks: Readonly<Record<string, Check>> }

/** What this process has beside what all have. */
type Parts = {
  /** Whether it reads prices. */
  readonly quotes: boolean
  /** The signer's record, where this process signs and the record is in a database of its own. */
  readonly record?: Sql | null
}

/** For `/readyz`, which anybody may ask as often as they like: looked at once a second at most, and once at a time. */
export function openReadiness(world: World, options: Parts): () => Promise<Readiness> {
  return keptFor({ clock: world.clock, keepMs: SECOND_MS, keepMsMax: SECOND_MS, restsPerReading: 0 }, () =>
    readReadiness(world, options),
  )
}

/**
 * Whether requests should be sent here now. Without the database or its schema nothing works, nor where it can only be read; on
 * the schema of a later release, as a role that may rewrite the books, and with commits that a crash may forget nothing should, and while a signer has another keystore than that of
 * the database nobody is to pay us anything. The same holds of the signer's record, without which nothing is signed. A chain or a
 * price that is missing takes its currencies off the list and no more, so only when none is left is the process of no use; the checks
 * still name each one.
 */
export async function readReadiness(
  world: World,
  { quotes, record = null }: Parts = { quotes: true },
): Promise<Readiness> {
  const database = await checkSession(world.db, 'DATABASE_URL')
  const signerRecord = record === null ? null : await checkSession(record, 'SIGNER_DATABASE_URL')
  const migrations = await check(async () => {
    return problemOfSchema(await compareMigrations(world.db))
  })
  const keystore = await check(async () => problemOfKeystore(await readDifferences(world.db)))
  const chains = await checkChains(world)
  const prices = quotes ? { prices: checkPrices(world) } : {}
  // Who neither quotes nor decides, such as a signer on its own, stands on no chain either.
  const hasChain = !quotes || Object.values(chains).some(({ ok }) => ok)
  const hasPrice = !quotes || pricesOf(world).some(({ usd }) => usd !== null)
  return {
    ready: database.ok && signerRecord?.ok !== false && migrations.ok && keystore.ok && hasPrice && hasChain,
    checks: {
      database,
      ...(signerRecord && { signer_record: signerRecord }),
      migrations,
      keystore,
      ...chains,
      ...prices,
    },
  }
}

async function check(problemOf: () => Promise<string | null>): Promise<Check> {
  try {
    const detail = await problemOf()
    return detail === null ? { ok: true } : { ok: false, detail }
  } catch (error) {
    return { ok: false, detail: String(error) }
  }
}

/** `variable` is where its address was read from. */
function checkSession(db: Sql, variable: 'DATABASE_URL' | 'SIGNER_DATABASE_URL'): Promise<Check> {
  return check(async () => problemOfSession(await readSession(db), variable))
}

function problemOfSession(session: Session, variable: string): string | null {
  const { role, user, isReadOnly, isCommitKept, revokes } = session
  if (isReadOnly)
    return `the database is read only: ${variable} leads to a server that stands by for another, or was told to change nothing`
  if (role === SERVICE_ROLE && revokes.length > 0)
    return `${SERVICE_ROLE} may rewrite what is only ever added to, as after a GRANT on all tables; as the owner of the tables in the database of ${variable}: ${revokes.join('; ')}`
  if (role === SERVICE_ROLE && !isCommitKept)
    return `a commit need not be on disk when it is answered, and what a crash makes the database forget may be paid twice: something on the way to the database of ${variable} drops the options of the connection; connect without it, or say there: ALTER ROLE ${user} SET synchronous_commit = on`
  if (role === SERVICE_ROLE) return null
  return `the service works as ${role}, who may be able to rewrite its books, instead of as ${SERVICE_ROLE}: something on the way to the database of ${variable} drops the options of the connection, as PgBouncer does with ignore_startup_parameters; connect without it`
}

/**
 * Also of a later release: nobody can say what this one would make of its tables, which was started before they were changed. Nothing was
 * missing then: what is missing now was taken away, as by a restore, and a start brings it or says why not.
 */
function problemOfSchema({ missing, unknown }: Awaited<ReturnType<typeof compareMigrations>>): string | null {
  if (unknown.length > 0)
    return `a later release has changed the schema (it also has: ${unknown.join(', ')}); stop this process and start that release`
  return missing.length === 0
    ? null
    : `this process started on another schema (the database now lacks ${missing.join(', ')}); start it anew`
}

async function checkChains(world: World): Promise<Record<string, Check>> {
  if (world.chains.size === 0) return {}
  const heads = readHeads(world.db)
  const checks: Record<string, Check> = {}
  for (const chain of world.chains.keys()) {
    checks[`chain_${chain}`] = await check(async () =>
      problemOfHead(
        world,
        (await heads).find((one) => one.chain === chain),
      ),
    )
  }
  return checks
}

function problemOfHead({ clock, policy }: World, head: ChainHead | undefined): string | null {
  if (head === undefined) return 'it was never looked at; is a watcher running?'
  const silentMs = silenceMs(head, clock.wallMs())
  if (silentMs < policy.chainTroubleMs) return null
  const why = head.trouble === null ? '' : `: ${head.trouble}`
  return head.lookedWallMs === 0
    ? `the first look is not finished${why}`
    : `the last whole look was ${Math.floor(silentMs / 1_000)} s ago${why}`
}

function pricesOf(world: World) {
  const currencies = new Set(
    assets.filter(({ chain }) => world.chains.has(chain)).map(({ currency }) => currency),
  )
  return [...currencies].map((currency) => ({ currency, usd: world.prices.usd(currency) }))
}

function checkPrices(world: World): Check {
  const missing = pricesOf(world).filter(({ usd }) => usd === null)
  if (missing.length === 0) return { ok: true }
  const why = missing.map(({ currency }) => {
    const explained = world.prices.why?.(currency)
    return explained === undefined ? currency : `${currency} (${explained})`
  })
  return { ok: false, detail: `no reliable price for ${why.join(', ')}` }
}
