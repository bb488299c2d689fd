import type { ChainId } from '../../../src/domain/catalog/networks.ts'
import type { Chance } from '../../harness/chance.ts'
import type { Reaper } from './fleet.ts'
import { type ComebackMoment, comebackMoments, type MortalPostgres } from './mortal_postgres.ts'
import { commitMoments, points, type Role } from './points.ts'
import type { Death } from './reach.ts'

/** One way to die: who is killed, and at which named moment of whom. */
type Way = { readonly victim: Role | 'postgres'; readonly at: Role | 'postgres'; readonly point: string }

export type Tally = {
  /** Every way to die that has a name, and how often it was taken. */
  readonly hits: ReadonlyMap<string, number>
  readonly kills: Readonly<Record<Role | 'postgres', number>>
  /** Processes that were killed while they took up the work of an earlier death, and PostgreSQL while it came back. */
  readonly again: number
}

export function killsOf({ kills }: Tally): number {
  return Object.values(kills).reduce((sum, count) => sum + count, 0)
}

export type RandomReaper = Reaper & {
  tally(): Tally
  /** From now on whoever starts, or is asked for anew, dies, as long as there were fewer kills than this says. */
  begin(killsNow: () => number): void
  /** From now on whoever starts, or is asked for anew, lives. */
  calm(): void
  /** True once for every process that waits for a reorganisation to die of. */
  takeReorgWish(): boolean
}

const roles = ['api', 'watcher', 'engine', 'signer'] as const
const [, IN_FLIGHT] = commitMoments

function waysOfProcesses(chains: readonly ChainId[]): readonly Way[] {
  return [
    ...points
      .filter(({ chain }) => chain === undefined || chains.includes(chain))
      .map(({ role, name }): Way => ({ victim: role, at: role, point: name })),
    ...roles.map((role): Way => ({ victim: role, at: role, point: IN_FLIGHT })),
  ]
}
const waysOfPostgres: readonly Way[] = roles.flatMap((role) =>
  commitMoments.map((point): Way => ({ victim: 'postgres', at: role, point })),
)
const comebacks: readonly Way[] = comebackMoments.map((point) => ({
  victim: 'postgres',
  at: 'postgres',
  point,
}))

function nameOf({ victim, at, point }: Way): string {
  return victim === at ? `${victim}: ${point}` : `${victim}: ${point}, of the ${at}`
}

/** Counts the ways that were taken, and knows which was taken least. */
function openTally(chance: Chance, ways: readonly Way[]) {
  const hits = new Map(ways.map((way) => [nameOf(way), 0]))
  const kills = { api: 0, watcher: 0, engine: 0, signer: 0, postgres: 0 }
  let again = 0
  const count = (way: Way) => hits.get(nameOf(way)) ?? 0
  return {
    read: (): Tally => ({ hits, kills, again }),
    hit: (way: Way, isAgain: boolean) => {
      hits.set(nameOf(way), count(way) + 1)
      kills[way.victim] += 1
      if (isAgain) again += 1
    },
    leastTaken: (candidates: readonly Way[]): Way => {
      const least = Math.min(...candidates.map(count))
      return chance.pick(candidates.filter((way) => count(way) === least))
    },
  }
}

/** Of a hundred that were killed at work, so many are killed again as soon as the same work is taken up. */
const AGAIN_PERCENT = 35
const NTH_MAX = 4
/** So many processes die between two deaths of PostgreSQL. */
const BETWEEN_POSTGRES = 4
const PATIENCE_MS = 2_500
/** What needs a reorganisation has to wait for one. */
const REORG_PATIENCE_MS = 15_000
/** Payouts on a chain that few are paid out on have to be waited for too. */
const CHAIN_PATIENCE_MS = 5_000
const reorgPoints = points.map(({ name }) => name).filter((name) => /left its block|goes back/.test(name))
const chainPoints = points.filter(({ chain }) => chain !== undefined).map(({ name }) => name)

/** Kills whoever it can at the moment that was had least so far; by chance among equals. `chains`: where there are payouts. */
export function randomReaper(
  chance: Chance,
  postgres: MortalPostgres,
  chains: readonly ChainId[],
): RandomReaper {
  const processWays = waysOfProcesses(chains)
  const tally = openTally(chance, [...processWays, ...waysOfPostgres, ...comebacks])
  const server = killerOfPostgres(chance, postgres, tally)
  let killsNow = () => 0
  let isReorgWanted = false
  const isCalm = () => killsOf(tally.read()) >= killsNow()
  return {
    tally: tally.read,
    begin: (most) => {
      killsNow = most
    },
    calm: () => {
      killsNow = () => 0
    },
    takeReorgWish: () => {
      const isWanted = isReorgWanted
      isReorgWanted = false
      return isWanted
    },
    wantsNow: () => (isCalm() ? null : server.wantsNow()),
    arm: ({ role, at }, last) => {
      server.forget(at)
      if (isCalm()) return null
      const shared = { postmaster: postgres.pid(), patienceMs: PATIENCE_MS, subject: null }
      const nth = 1 + chance.below(NTH_MAX)
      const commit = server.choose(role, at)
      if (commit !== null) return { ...shared, target: 'postgres', point: commit.point, nth }
      if (last !== null && last.subject !== null && chance.happens(AGAIN_PERCENT / 100)) {
        return { ...shared, target: 'process', point: null, subject: last.subject, nth: 1 }
      }
      const { point } = tally.leastTaken(processWays.filter(({ victim }) => victim === role))
      if (chainPoints.includes(point))
        return { ...shared, target: 'process', point, nth: 1, patienceMs: CHAIN_PATIENCE_MS }
      if (!reorgPoints.includes(point)) return { ...shared, target: 'process', point, nth }
      isReorgWanted = true
      return { ...shared, target: 'process', point, nth: 1, patienceMs: REORG_PATIENCE_MS }
    },
    onDeath: async ({ target, role, point, isAgain }) => {
      tally.hit({ victim: target === 'postgres' ? 'postgres' : role, at: role, point }, isAgain)
      if (target === 'postgres') await server.bringBack()
      else server.noteOther()
    },
  }
}

/** Which process has to kill PostgreSQL: one at a time, so that each kill is of a live server. */
function killerOfPostgres(chance: Chance, postgres: MortalPostgres, tally: ReturnType<typeof openTally>) {
  let killer: number | null = null
  let othersLeft = BETWEEN_POSTGRES
  let next = tally.leastTaken(waysOfPostgres)
  const wantsNow = () => (othersLeft <= 0 && killer === null && postgres.isUp() ? (next.at as Role) : null)
  return {
    wantsNow,
    /** What a process of this role kills it at, if it is its turn. */
    choose: (role: Role, at: number): Way | null => {
      if (wantsNow() !== role) return null
      killer = at
      return next
    },
    forget: (at: number) => {
      if (killer === at) killer = null
    },
    noteOther: () => {
      othersLeft -= 1
    },
    /** Every other time it dies once more on its way back. */
    bringBack: async () => {
      const comeback = chance.happens(50 / 100) ? tally.leastTaken(comebacks) : null
      const deaths = postgres.deaths()
      await postgres.bringBack((comeback?.point ?? null) as ComebackMoment | null)
      if (comeback !== null && postgres.deaths() === deaths + 2) tally.hit(comeback, true)
      killer = null
      othersLeft = BETWEEN_POSTGRES
      next = tally.leastTaken(waysOfPostgres)
    },
  }
}

/** Kills at these points only, each once, whoever comes to them first. */
export type AimedReaper = Reaper & {
  /** From now on; what is done after each death, before the dead is started again. */
  begin(afterDeath: () => Promise<void>): void
  /** Points that nobody has come to. */
  left(): readonly string[]
}

export function aimedReaper(
  aims: readonly { readonly role: Role; readonly point: string }[],
  postgres: MortalPostgres,
): AimedReaper {
  const left = [...aims]
  let afterDeath: (() => Promise<void>) | null = null
  return {
    begin: (then) => {
      afterDeath = then
    },
    left: () => left.map(({ point }) => point),
    wantsNow: () => null,
    arm: ({ role }) => {
      const aim = left.find((each) => each.role === role)
      if (aim === undefined || afterDeath === null) return null
      const shared = { postmaster: postgres.pid(), patienceMs: Number.POSITIVE_INFINITY }
      return { ...shared, target: 'process', point: aim.point, subject: null, nth: 1 }
    },
    onDeath: async ({ role, point }: Death) => {
      const at = left.findIndex((aim) => aim.role === role && aim.point === point)
      if (at >= 0) left.splice(at, 1)
      await afterDeath?.()
    },
  }
}
