import { Command } from 'commander'
import { CommandRefused } from '../../command_refused.ts'
import { registerAuditCommands } from '../../commands/audit.ts'
import { registerOrderCommands } from '../../commands/order.ts'
import type { Database } from '../../db/database.ts'
import type { BooksStage } from './books_stage.ts'

type Stage = Pick<BooksStage, 'db' | 'world'>

/** What `cambist order …` prints; throws what it refuses with. What it says beside that is added to `notes`. */
export function runOrderCommand(
  { db: staged, world: { clock } }: Stage,
  words: readonly string[],
  db: Database = staged,
  notes: string[] = [],
): Promise<string> {
  return run(words, (order, print) =>
    registerOrderCommands(order, {
      open: async () => ({ db, clock, close: async () => {} }),
      print,
      note: (text) => void notes.push(text),
    }),
  )
}

/** The same, with the sentence with which it refuses for an answer. */
export function tellOrderCommand(...given: Parameters<typeof runOrderCommand>): Promise<string> {
  return orRefusal(runOrderCommand(...given))
}

/** What `cambist audit …` prints, or the sentence with which it refuses. */
export function tellAuditCommand(
  { db, world: { clock } }: Stage,
  ...words: readonly string[]
): Promise<string> {
  return orRefusal(
    run(words, (audit, print) =>
      registerAuditCommands(audit, {
        open: async () => ({ db, clock, close: async () => {} }),
        print,
        note: () => {},
      }),
    ),
  )
}

async function run(
  words: readonly string[],
  register: (command: Command, print: (text: string) => void) => void,
): Promise<string> {
  const printed: string[] = []
  const command = new Command().exitOverride()
  register(command, (text) => void printed.push(text))
  await command.parseAsync([...words], { from: 'user' })
  return printed.join('\n')
}

async function orRefusal(told: Promise<string>): Promise<string> {
  try {
    return await told
  } catch (error) {
    if (!(error instanceof CommandRefused)) throw error
    return error.message
  }
}
