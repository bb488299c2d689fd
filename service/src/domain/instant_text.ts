import { type InstantMs, MINUTE_MS } from './time.ts'

const dateTime =
  /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/

/**
 * Epoch milliseconds of a date-time of RFC 3339 (https://www.rfc-editor.org/rfc/rfc3339#section-5.6), with any offset; what is finer
 * is cut off. Null when it is none, and for a leap second (`:60`), which epoch time does not have.
 */
export function instantOf(text: string): InstantMs | null {
  const [, day, time, fraction = '', sign, hours = '0', minutes = '0'] = dateTime.exec(text) ?? []
  if (day === undefined || time === undefined) return null
  const written = `${day}T${time}`
  const wallMs = Date.parse(`${written}Z`)
  // The 30th of February is read as the 2nd of March; it was meant otherwise.
  if (Number.isNaN(wallMs) || !new Date(wallMs).toISOString().startsWith(written)) return null
  const offsetMs = (Number.parseInt(hours, 10) * 60 + Number.parseInt(minutes, 10)) * MINUTE_MS
  const partMs = Number.parseInt(fraction.slice(0, 3).padEnd(3, '0'), 10)
  return wallMs + partMs + (sign === '-' ? offsetMs : -offsetMs)
}

/** To the second, in UTC, which is left to be said behind it: `2026-01-31 12:00:05`. */
export function secondText(atMs: InstantMs): string {
  return new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')
}
