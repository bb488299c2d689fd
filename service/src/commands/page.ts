import { CommandRefused } from '../command_refused.ts'
import type { DatabaseWorld, Json } from './command_world.ts'
import { toJson } from './table.ts'

export type Paged = Json & { readonly limit: string }

export const limitOption = ['--limit <count>', 'how many to show at most, from the first on', '50'] as const

type Page = {
  /** How many rows to ask for: one more than is shown tells whether there are more. */
  readonly ask: number
  print<T>(found: readonly T[], describe: (rows: readonly T[]) => string): void
}

/** How a list is cut to `--limit` and printed; says where there are more. Refuses what is no count. */
export function readPage(world: Pick<DatabaseWorld, 'print'>, { limit: text, json }: Paged): Page {
  const limit = parseLimit(text)
  return {
    ask: limit + 1,
    print: (found, describe) => {
      const rows = found.slice(0, limit)
      const more = found.length > limit ? `\n\nThere are more than these ${limit}: --limit shows them.` : ''
      world.print(json ? toJson(rows) : describe(rows) + more)
    },
  }
}

function parseLimit(text: string): number {
  const limit = /^\d{1,5}$/.test(text) ? Number.parseInt(text, 10) : 0
  if (limit === 0) throw new CommandRefused(`${text} is not a count from 1 to 99999`)
  return limit
}
