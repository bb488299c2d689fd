/** Milliseconds since 1970-01-01T00:00:00Z, by the service's clock or, as `wallMs`, by the wall's (ARCHITECTURE.md tells which). */
export type InstantMs = number

export const SECOND_MS = 1_000
export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** `15 minutes`; of whole minutes, more than one. */
export function inMinutes(ms: number): string {
  return `${ms / MINUTE_MS} minutes`
}

/** Clocks of processes that work together are closer than this. */
export const CLOCKS_APART_MS = 60 * SECOND_MS
