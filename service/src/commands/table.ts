import type { InstantMs } from '../domain/time.ts'

/** Columns as wide as their widest cell; nothing at the ends of lines. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  return [head, ...rows]
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n')
}

/** To the second, UTC: `2026-01-31 12:00:05`. */
export function showTime(atMs: InstantMs | null): string {
  return atMs === null ? '-' : new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')
}

/** Machine-readable: amounts are decimal text in ledger units, so that no digit is lost. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? item.toString() : item), 2)
}
