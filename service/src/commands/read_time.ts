import { CommandRefused } from '../command_refused.ts'
import { instantOf } from '../domain/instant_text.ts'
import type { InstantMs } from '../domain/time.ts'

/** How a time is given to a command, for its description. */
export const TIME_FORM = '2026-01-31 or 2026-01-31T12:00:00Z'

/** A time of RFC 3339, or a day for its beginning in UTC, in epoch milliseconds; refuses whatever else. */
export function readTime(option: string, text: string): InstantMs {
  const atMs = instantOf(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text)
  if (atMs === null) throw new CommandRefused(`${option}: ${text} is not a time such as ${TIME_FORM}`)
  return atMs
}
