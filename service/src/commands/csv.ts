import { escapeControls } from '../domain/control_characters.ts'

/**
 * One line with its end as RFC 4180 has it. What a spreadsheet would take for a formula gets an apostrophe before it, and control
 * characters are written as JSON writes them: a cell may hold what a stranger wrote.
 */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`
}

function cellOf(text: string): string {
  const shown = escapeControls(text)
  const safe = /^[=+\-@]/.test(shown) ? `'${shown}` : shown
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
