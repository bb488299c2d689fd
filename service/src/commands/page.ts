import { CommandRefused } from '../command_refused.ts'
import type { Json, ListingWorld } from './command_world.ts'
import { toJson } from './table.ts'

export type Paged = Json & { readonly limit: string }

export const limitOption = ['--limit <count>', 'how many to show at most, from the first on', '50'] as const

type Page = {
  /** How many rows to ask for: one more than is shown tells whether there are more. */
  readonly ask: number
  print<T>(found: readonly T[], describe: (rows: readonly T[]) => string): void
}

/** How a list is cut to `--limit` and printed; says where there are more. Refuses what is no count. */
export function readPage(world: ListingWorld, { limit: text, json }: Paged): Page {
  const limit = parseLimit(text)
  return {
    ask: limit + 1,
    print: (found, describe) => {
      const rows = found.slice(0, limit)
      printRows(world, json ? toJson(rows) : describe(rows), {
        json: json === true,
        more: found.length > limit ? `There are more than these ${limit}: --limit shows them.` : null,
      })
    },
  }
}

/** Where there are more than these, a table ends with that; JSON stays what it is, and whoever gave the command is told beside it. */
export function printRows(
  world: ListingWorld,
  text: string,
  { json, more }: { readonly json: boolean; readonly more: string | null },
): void {
  world.print(json || more === null ? text : `${text}\n\n${more}`)
  if (json && more !== null) world.note(more)
}

function parseLimit(text: string): number {
  const limit = /^\d{1,5}$/.test(text) ? Number.parseInt(text, 10) : 0
  if (limit === 0) throw new CommandRefused(`${text} is not a count from 1 to 99999`)
  return limit
}
