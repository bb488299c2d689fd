import { CommandRefused } from '../command_refused.ts'
import type { InstantMs } from '../domain/time.ts'

/** How a time is given to a command, for its description. */
export const TIME_FORM = '2026-01-31 or 2026-01-31T12:00:00Z'

/** A time in UTC, a day alone being its beginning, in epoch milliseconds; refuses whatever else. */
export function readTime(option: string, text: string): InstantMs {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text)
  const isShaped = isDay || /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/.test(text)
  const atMs = isShaped ? Date.parse(text) : Number.NaN
  // The 30th of February is read as the 2nd of March; it was meant otherwise.
  const isReal = !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(text.slice(0, 19))
  if (!isReal) throw new CommandRefused(`${option}: ${text} is not a time in UTC such as ${TIME_FORM}`)
  return atMs
}
