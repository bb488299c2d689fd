import type { ApiKey } from '../../accounts/api_key.ts'
import type { Clock } from '../../clock.ts'
import { MINUTE_MS, SECOND_MS } from '../../domain/time.ts'
import type { Problem } from '../errors.ts'
import type { HttpLimits } from '../parts.ts'

export type Spent = {
  /** RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers), flat. */
  readonly headers: readonly string[]
  /** Null: go on. */
  readonly refusal: Problem | null
}

/**
 * Counted in this process: with several API processes each allows as much. Synchronous, because it is part of
 * every request and a promise would cost more than the counting.
 */
export type RateLimit = {
  spend(who: string, units: number): Spent
  /** By a key, and by all keys of its account together. What one of both refuses is counted for neither. */
  spendByKey(key: Pick<ApiKey, 'keyId' | 'accountId'>, units: number): Spent
  /**
   * For opening streams, by all keys of an account together, and apart from what these do otherwise: when all its streams come back
   * after a restart, it can still create orders. They may all come back within a minute.
   */
  spendByStreams(accountId: string): Spent
  /** By all sessions of an account together; null: they may. Each spends by itself before anybody knows whose it is. */
  spendBySessions(accountId: string, units: number): Spent | null
}

/** How much all keys of an account may do together, or all its sessions, in times what one may: an account can have a hundred. */
const ACCOUNT_TIMES = 4

type Limits = Pick<HttpLimits, 'unitsPerMinute' | 'burstPerSecond'>

export function rateLimit(
  limits: Limits & Pick<HttpLimits, 'streamsPerCaller'>,
  clock: Pick<Clock, 'wallMs'>,
): RateLimit {
  const together = {
    unitsPerMinute: limits.unitsPerMinute * ACCOUNT_TIMES,
    burstPerSecond: limits.burstPerSecond * ACCOUNT_TIMES,
  }
  const callers = openUsage(limits, byItself, clock.wallMs())
  const byKeys = openUsage(together, withKeys, clock.wallMs())
  const ofStreams = {
    ...together,
    unitsPerMinute: Math.max(together.unitsPerMinute, limits.streamsPerCaller),
  }
  const byStreams = openUsage(ofStreams, forStreams, clock.wallMs())
  const bySessions = openUsage(together, withSessions, clock.wallMs())
  return {
    spend: (who, units) => {
      const nowMs = clock.wallMs()
      const used = callers.of(who, nowMs)
      return callers.refusal(used, units, nowMs) ?? callers.spend(used, units, nowMs)
    },
    spendByKey: ({ keyId, accountId }, units) => {
      const nowMs = clock.wallMs()
      const used = callers.of(`key:${keyId}`, nowMs)
      const usedByAll = byKeys.of(accountId, nowMs)
      const refused = callers.refusal(used, units, nowMs) ?? byKeys.refusal(usedByAll, units, nowMs)
      if (refused !== null) return refused
      count(usedByAll, units)
      return callers.spend(used, units, nowMs)
    },
    spendByStreams: (accountId) => {
      const nowMs = clock.wallMs()
      const used = byStreams.of(accountId, nowMs)
      return byStreams.refusal(used, 1, nowMs) ?? byStreams.spend(used, 1, nowMs)
    },
    spendBySessions: (accountId, units) => {
      const nowMs = clock.wallMs()
      const used = bySessions.of(accountId, nowMs)
      const refused = bySessions.refusal(used, units, nowMs)
      if (refused === null) count(used, units)
      return refused
    },
  }
}

/** A fixed window: so much has been used of what began then. */
type Window = { startedMs: number; used: number }
/** `prefix` is what the names of its policies begin with, `whose` what is told of whom it refuses. */
type Spender = { readonly prefix: '' | 'account-' | 'stream-'; readonly whose: string }
type Used = { readonly minute: Window; readonly second: Window }

const byItself: Spender = { prefix: '', whose: '' }
const withKeys: Spender = { prefix: 'account-', whose: ' with the keys of this account' }
const forStreams: Spender = { prefix: 'stream-', whose: ' for streams with the keys of this account' }
const withSessions: Spender = { prefix: 'account-', whose: ' with the sessions of this account' }

/** What each has used. */
function openUsage(limits: Limits, { prefix, whose }: Spender, openedMs: number) {
  const all = new Map<string, Used>()
  const policy = `"${prefix}minute";q=${limits.unitsPerMinute};w=60, "${prefix}burst";q=${limits.burstPerSecond};w=1`
  let sweptMs = openedMs
  const headersFor = (name: string, left: number, resetSeconds: number) => [
    'RateLimit-Policy',
    policy,
    'RateLimit',
    `"${prefix}${name}";r=${left};t=${resetSeconds}`,
  ]
  const standing = ({ minute }: Used, nowMs: number) => {
    const resetSeconds = Math.max(1, Math.ceil((minute.startedMs + MINUTE_MS - nowMs) / SECOND_MS))
    const headers = headersFor('minute', limits.unitsPerMinute - minute.used, resetSeconds)
    return { headers, resetSeconds }
  }
  return {
    of: (who: string, nowMs: number): Used => {
      if (isOver(sweptMs, MINUTE_MS, nowMs)) {
        sweptMs = nowMs
        forgetIdle(all, nowMs)
      }
      let used = all.get(who)
      if (used === undefined) {
        used = { minute: { startedMs: nowMs, used: 0 }, second: { startedMs: nowMs, used: 0 } }
        all.set(who, used)
      }
      return used
    },
    /** Null: it may. Only what is let through is counted: a create that is too dear leaves the units for asking rates. */
    refusal: (used: Used, units: number, nowMs: number): Spent | null => {
      if (!fits(used.second, SECOND_MS, limits.burstPerSecond, 1, nowMs)) {
        return { headers: headersFor('burst', 0, 1), refusal: refusalOf(whose, 1) }
      }
      if (fits(used.minute, MINUTE_MS, limits.unitsPerMinute, units, nowMs)) return null
      const { headers, resetSeconds } = standing(used, nowMs)
      return { headers, refusal: refusalOf(whose, resetSeconds) }
    },
    spend: (used: Used, units: number, nowMs: number): Spent => {
      count(used, units)
      return { headers: standing(used, nowMs).headers, refusal: null }
    },
  }
}

function count({ minute, second }: Used, units: number): void {
  second.used += 1
  minute.used += units
}

function fits(window: Window, lengthMs: number, allowed: number, units: number, nowMs: number): boolean {
  if (isOver(window.startedMs, lengthMs, nowMs)) {
    window.startedMs = nowMs
    window.used = 0
  }
  return window.used + units <= allowed
}

/** A clock that was set back ends the window, too: the alternative is a client locked out for that long. */
function isOver(startedMs: number, lengthMs: number, nowMs: number): boolean {
  return nowMs >= startedMs + lengthMs || nowMs < startedMs
}

function forgetIdle(all: Map<string, Used>, nowMs: number): void {
  for (const [who, { minute }] of all) {
    if (isOver(minute.startedMs, MINUTE_MS, nowMs)) all.delete(who)
  }
}

function refusalOf(whose: string, retryAfter: number): Problem {
  return {
    code: 'RATE_LIMITED',
    message: `too many requests${whose}; try again in ${retryAfter} s`,
    retry_after: retryAfter,
  }
}
