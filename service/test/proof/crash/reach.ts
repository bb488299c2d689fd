import { appendFileSync } from 'node:fs'
import { isPostgres, killPostgres } from './kill_postgres.ts'
import { type Call, commitMoments, type Place, points, type Role } from './points.ts'

/** Whom a process that reaches its point kills: itself, or the server that its data is in. */
export type Target = 'process' | 'postgres'

/** The next thing to die of. */
export type Armed = {
  readonly target: Target
  /** The name of a point; null with a subject: at any point. */
  readonly point: string | null
  /** Only where the work is about this order or block. */
  readonly subject: string | null
  /** At so many times of reaching it, from now on. */
  readonly nth: number
  /** The server's process, as it was when this was armed. */
  readonly postmaster: number
  /** Who has not come to it in so long dies of something else. */
  readonly patienceMs: number
}

/** One kill, written down by whoever was about to die of it. */
export type Death = {
  readonly role: Role
  readonly pid: number
  readonly target: Target
  readonly point: string
  readonly subject: string | null
  /** It was armed with a subject: this came while the work of an earlier death was taken up again. */
  readonly isAgain: boolean
}

/** What a process is told at its start. */
export type Fate = {
  readonly role: Role
  readonly armed: Armed | null
  /** Where deaths are written down. */
  readonly deathsFile: string
}

let fate: Fate | null = null
let armed: Armed | null = null
let left = 0

/** From now on this process dies as its parent says. */
export function meet(told: Fate): void {
  fate = told
  arm(told.armed)
  process.on('message', (message: { readonly arm: Armed | null }) => arm(message.arm))
}

function arm(next: Armed | null): void {
  armed = next
  left = next?.nth ?? 0
}

/** The process is here. If this is where it dies, nothing after this line happens. */
function reach(point: string, subject: string | null): void {
  if (fate === null || armed === null) return
  const isHere =
    (armed.point === null || armed.point === point) && (armed.subject === null || armed.subject === subject)
  if (!isHere) return
  left -= 1
  if (left > 0) return
  const { target, postmaster } = armed
  const isAgain = armed.subject !== null
  armed = null
  // It died of something else, and nobody has told us yet.
  if (target === 'postgres' && !isPostgres(postmaster)) return
  const death: Death = { role: fate.role, pid: process.pid, target, point, subject, isAgain }
  appendFileSync(fate.deathsFile, `${JSON.stringify(death)}\n`)
  if (target === 'process') process.kill(process.pid, 'SIGKILL')
  killPostgres(postmaster)
  process.send?.({ died: death })
}

type Work = (...args: never[]) => unknown

/** An exported function with the points that are before and after it. */
export function withPoints(file: string, name: string, real: Work | undefined): Work {
  if (typeof real !== 'function')
    throw new Error(`a point no longer fits the code: ${file} exports no ${name}`)
  const here = points
    .filter(({ role }) => role === fate?.role)
    .flatMap((point) =>
      point.places
        .filter((place) => place.file === file && place.name === name)
        .map((place) => ({ ...place, point: point.name })),
    )
  const own = here.filter(({ method }) => method === undefined)
  const wrapped = own.length === 0 ? real : around(real, own)
  const inner = here.filter(({ method }) => method !== undefined)
  if (inner.length === 0) return wrapped
  return (...args) => {
    const made = wrapped(...args) as Record<string, Work>
    const methods = Object.groupBy(inner, ({ method = '' }) => method)
    const replaced = Object.entries(methods).map(([method, places = []]) => {
      const work = made[method]
      if (work === undefined) throw new Error(`${name} of ${file} gives nothing with a ${method}`)
      return [method, around(work, places)]
    })
    return { ...made, ...Object.fromEntries(replaced) }
  }
}

type Here = Place & { readonly point: string }

function around(real: Work, here: readonly Here[]): Work {
  const reachAll = (when: Place['when'], call: Call) => {
    for (const place of here) {
      if (place.when === when && (place.only?.(call) ?? true)) reach(place.point, subjectOf(call.args))
    }
  }
  return async (...args) => {
    reachAll('before', { args })
    const result = await real(...args)
    reachAll('after', { args, result })
    return result
  }
}

type Query = (...args: unknown[]) => unknown
type Answered = (error: unknown, ...rest: unknown[]) => void

/** A statement that commits has left us when its bytes are with the kernel, which is before `query` returns. */
export function commitWithPoints(query: Query, args: readonly unknown[]): unknown {
  const [notSent, inFlight, answered] = commitMoments
  reach(notSent, null)
  const last = args.at(-1)
  const told: Answered | null = typeof last === 'function' ? (last as Answered) : null
  const answer =
    told === null
      ? query(...args)
      : query(...args.slice(0, -1), (error: unknown, ...rest: unknown[]) => {
          if (!error) reach(answered, null)
          told(error, ...rest)
        })
  reach(inFlight, null)
  if (!(answer instanceof Promise)) return answer
  return answer.then((value: unknown) => {
    reach(answered, null)
    return value
  })
}

const ORDER = /CB\d{16}/

/** Whose a transaction is, by its hash: a connector that sends one is not told, but whoever stored its bytes was. */
const orderOfTx = new Map<string, string>()

/** What a call is about: an order, or else a block. */
function subjectOf(args: readonly unknown[]): string | null {
  const txHash = args.map(txHashOf).find((hash) => hash !== null) ?? ''
  for (const arg of args) {
    const order = ORDER.exec(orderTextOf(arg))?.[0]
    if (order === undefined) continue
    if (txHash !== '') orderOfTx.set(txHash, order)
    return order
  }
  const sent = orderOfTx.get(txHash)
  if (sent !== undefined) return sent
  const block = args.find((arg) => typeof arg === 'object' && arg !== null && 'hash' in arg)
  return block === undefined ? null : String((block as { hash: unknown }).hash)
}

function txHashOf(arg: unknown): string | null {
  const isTx = typeof arg === 'object' && arg !== null && 'txHash' in arg && 'bytes' in arg
  return isTx ? String(arg.txHash) : null
}

function orderTextOf(arg: unknown): string {
  if (typeof arg === 'string') return arg
  if (typeof arg !== 'object' || arg === null) return ''
  const { orderId, payoutId, terms } = arg as {
    orderId?: string
    payoutId?: string
    terms?: { id?: string }
  }
  return orderId ?? payoutId ?? terms?.id ?? ''
}
