import { countAsk } from '../db/ask_counts.ts'
import type { By } from '../db/audit_log.ts'
import type { Sql } from '../db/database.ts'
import type { Rejection } from '../domain/outcome.ts'
import { MINUTE_MS, SECOND_MS } from '../domain/time.ts'
import type { AccountsPlace } from './accounts.ts'

export const ASK_WINDOW_MS = 15 * MINUTE_MS

/** How often somebody may be asked to be sent a mail, within a quarter of an hour. */
export type AskLimits = { readonly perEmail: number; readonly perAddress: number }

/** Too many: in how many seconds to ask again. */
export type TooOften = Rejection & { readonly code: 'asked_too_often'; readonly retryAfterSeconds: number }

/**
 * Null: it may go on. Counted alike for addresses that are an account's and those that are not, so that the limit tells
 * nothing about either.
 */
export async function refuseFlood(
  { db, wallMs }: Pick<AccountsPlace, 'wallMs'> & { readonly db: Sql },
  asked: readonly { readonly what: string; readonly max: number }[],
  tooMany = 'too many mails were asked for',
): Promise<TooOften | null> {
  const nowMs = wallMs()
  let isOver = false
  let untilMs = nowMs
  // One after another, in the order given, and no more once one is over: it costs others nothing that somebody floods.
  for (const { what, max } of asked) {
    const counted = await countAsk(db, what, nowMs, ASK_WINDOW_MS)
    untilMs = counted.untilMs
    isOver = counted.count > max
    if (isOver) break
  }
  if (!isOver) return null
  const retryAfterSeconds = Math.max(1, Math.ceil((untilMs - nowMs) / SECOND_MS))
  const message = `${tooMany}; try again in ${retryAfterSeconds} s`
  return { code: 'asked_too_often', message, retryAfterSeconds }
}

/** How often an account may be changed within a quarter of an hour. */
export type ChangeLimits = {
  /** Keys made, and secrets of keys: each is a row that is kept for good, and a mail that nobody can switch off. */
  readonly keys: number
  /** Everything else: each is a row that is kept for good, of up to 2 kB. */
  readonly settings: number
}

type Changing = Pick<AccountsPlace, 'wallMs'> & { readonly db: Sql; readonly changeLimits: ChangeLimits }

/** When a key was made or got a new secret. Ending one is never refused. */
export function refuseManyKeyActs(place: Changing, accountId: string): Promise<TooOften | null> {
  const asked = [{ what: `keys:${accountId}`, max: place.changeLimits.keys }]
  return refuseFlood(place, asked, 'too many keys and secrets were made')
}

/**
 * When something else of an account was changed; what only ends something is never refused. Who is signed in is counted apart
 * from keys: a stolen one must not keep its owner from anything.
 */
export function refuseManyChanges(
  place: Changing,
  accountId: string,
  { actor }: By,
): Promise<TooOften | null> {
  const asked = [{ what: `changes:${actor}:${accountId}`, max: place.changeLimits.settings }]
  return refuseFlood(place, asked, 'the settings were changed too often')
}
