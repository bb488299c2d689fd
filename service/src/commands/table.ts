import { escapeControls } from '../domain/control_characters.ts'
import { secondText } from '../domain/instant_text.ts'
import type { InstantMs } from '../domain/time.ts'

/** Columns as wide as their widest cell; nothing at the ends of lines. A cell cannot begin a line or move the cursor. */
export function table(head: readonly string[], cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map(escapeControls))
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  return [head, ...rows]
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n')
}

/** A table below its title; where it has no rows, the title with what `none` says. */
export function section(
  title: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  none = 'none',
): string {
  return rows.length === 0 ? `${title}: ${none}` : `${title}\n${table(head, rows)}`
}

/** To the second, UTC: `2026-01-31 12:00:05Z`. */
export function showTime(atMs: InstantMs | null): string {
  return atMs === null ? '-' : `${secondText(atMs)}Z`
}

/** Machine-readable: amounts are decimal text in ledger units, so that no digit is lost. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? item.toString() : item), 2)
}

/** What a command prints, whatever it was made of: lines, and nothing else that a terminal obeys. JSON stays what it was. */
export function toTerminal(text: string): string {
  return text.split('\n').map(escapeControls).join('\n')
}
