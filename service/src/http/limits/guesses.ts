import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../clock.ts'
import { type InstantMs, MINUTE_MS } from '../../domain/time.ts'
import type { Problem } from '../errors.ts'
import type { HttpLimits } from '../parts.ts'
import { type ClientAddress, limitedAs } from './client_address.ts'

/**
 * In which the guesses of an address come back, one by one and as many as it has units in that time. So whoever is new
 * is looked up a moment after a neighbour has stopped guessing, and by luck before.
 */
const REFILL_MS = MINUTE_MS
/** How often what is whole again is forgotten. */
const SWEEP_MS = MINUTE_MS
/** Only good ones push each other out, and one that was is looked up like a new one. */
const KNOWN_MAX = 10_000

/** Keeps credentials from being guessed at the expense of the database. Counted in this process. */
export type Guesses = {
  /** Whether it was good the last time. Only that: it is looked up all the same. */
  isKnown(credential: string): boolean
  /**
   * What `find` finds by the credential. A wrong one is a guess of its address; while that has none left, only a
   * credential that was good the last time is looked up, so that whoever shares the address goes on.
   */
  look<Found extends object>(
    credential: string,
    request: IncomingMessage,
    find: () => Promise<Found | null>,
  ): Promise<Found | null | 'refused'>
  /** A guess whose credential is known and whose proof is wrong. False: the address has none left. */
  count(request: IncomingMessage): boolean
}

export function guesses(
  { unitsPerMinute }: Pick<HttpLimits, 'unitsPerMinute'>,
  clock: Pick<Clock, 'wallMs'>,
  addressOf: ClientAddress,
): Guesses {
  const known = new Set<string>()
  const left = guessesLeft(unitsPerMinute, clock)
  return {
    isKnown: (credential) => known.has(credential),
    look: async (credential, request, find) => {
      if (known.has(credential)) {
        const found = await find()
        if (found === null) known.delete(credential)
        return found
      }
      const who = limitedAs(addressOf(request))
      // Taken before it is known to be wrong: many at once would all find one left.
      if (!left.take(who)) return 'refused'
      const found = await find().catch((error: unknown) => {
        // Nobody was told whether it is right.
        left.giveBack(who)
        throw error
      })
      if (found === null) return null
      left.giveBack(who)
      rememberIn(known, credential)
      return found
    },
    count: (request) => left.take(limitedAs(addressOf(request))),
  }
}

/** The oldest makes room. */
function rememberIn(known: Set<string>, credential: string): void {
  known.add(credential)
  if (known.size <= KNOWN_MAX) return
  const [oldest] = known
  if (oldest !== undefined) known.delete(oldest)
}

function guessesLeft(guessesMax: number, clock: Pick<Clock, 'wallMs'>) {
  const guessMs = REFILL_MS / guessesMax
  /** When all guesses of an address are there again. */
  const whole = new Map<string, InstantMs>()
  let sweptMs = clock.wallMs()
  const forgetWhole = (nowMs: InstantMs) => {
    if (Math.abs(nowMs - sweptMs) < SWEEP_MS) return
    sweptMs = nowMs
    for (const [who, atMs] of whole) if (atMs <= nowMs) whole.delete(who)
  }
  return {
    take: (who: string): boolean => {
      const nowMs = clock.wallMs()
      forgetWhole(nowMs)
      // Never further away than all of them: a clock that was set back must lock nobody out.
      const wholeMs = Math.min(Math.max(whole.get(who) ?? nowMs, nowMs), nowMs + REFILL_MS)
      if (wholeMs + guessMs > nowMs + REFILL_MS) {
        whole.set(who, wholeMs)
        return false
      }
      whole.set(who, wholeMs + guessMs)
      return true
    },
    giveBack: (who: string): void => {
      const wholeMs = whole.get(who)
      if (wholeMs !== undefined) whole.set(who, wholeMs - guessMs)
    },
  }
}

/** What `refused` is answered with. */
export const tooManyGuesses: Problem = {
  code: 'RATE_LIMITED',
  message: 'too many unknown credentials came from this address; try again in 1 s',
  retry_after: 1,
}
