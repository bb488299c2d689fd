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
export type RateLimit = { spend(who: string, units: number): Spent }

/** A fixed window: so much has been used of what began then. */
type Window = { startedMs: number; used: number }
type Account = { readonly minute: Window; readonly second: Window }

export function rateLimit(
  limits: Pick<HttpLimits, 'unitsPerMinute' | 'burstPerSecond'>,
  clock: Pick<Clock, 'wallMs'>,
): RateLimit {
  const accounts = new Map<string, Account>()
  const policy = `"minute";q=${limits.unitsPerMinute};w=60, "burst";q=${limits.burstPerSecond};w=1`
  let sweptMs = clock.wallMs()
  const accountOf = (who: string, nowMs: number): Account => {
    if (isOver(sweptMs, MINUTE_MS, nowMs)) {
      sweptMs = nowMs
      forgetIdle(accounts, nowMs)
    }
    let account = accounts.get(who)
    if (account === undefined) {
      account = { minute: { startedMs: nowMs, used: 0 }, second: { startedMs: nowMs, used: 0 } }
      accounts.set(who, account)
    }
    return account
  }
  const headersFor = (name: string, left: number, resetSeconds: number) => [
    'RateLimit-Policy',
    policy,
    'RateLimit',
    `"${name}";r=${left};t=${resetSeconds}`,
  ]
  return {
    spend(who, units) {
      const nowMs = clock.wallMs()
      const { minute, second } = accountOf(who, nowMs)
      // Only what is let through is counted: a create that is too dear leaves the units for asking rates.
      if (!fits(second, SECOND_MS, limits.burstPerSecond, 1, nowMs)) {
        return { headers: headersFor('burst', 0, 1), refusal: refusalOf(1) }
      }
      const isAllowed = fits(minute, MINUTE_MS, limits.unitsPerMinute, units, nowMs)
      if (isAllowed) {
        second.used += 1
        minute.used += units
      }
      const resetSeconds = Math.max(1, Math.ceil((minute.startedMs + MINUTE_MS - nowMs) / SECOND_MS))
      const headers = headersFor('minute', limits.unitsPerMinute - minute.used, resetSeconds)
      return { headers, refusal: isAllowed ? null : refusalOf(resetSeconds) }
    },
  }
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

function forgetIdle(accounts: Map<string, Account>, nowMs: number): void {
  for (const [who, { minute }] of accounts) {
    if (isOver(minute.startedMs, MINUTE_MS, nowMs)) accounts.delete(who)
  }
}

function refusalOf(retryAfter: number): Problem {
  return {
    code: 'RATE_LIMITED',
    message: `too many requests; try again in ${retryAfter} s`,
    retry_after: retryAfter,
  }
}
