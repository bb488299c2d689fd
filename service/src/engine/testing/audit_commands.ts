import { Command } from 'commander'
import { CommandRefused } from '../../command_refused.ts'
import { registerAuditCommands } from '../../commands/audit.ts'
import type { BooksStage } from './books_stage.ts'

/** What `cambist audit …` prints, or the sentence with which it refuses. */
export async function tellAuditCommand(
  { db, world: { clock } }: Pick<BooksStage, 'db' | 'world'>,
  ...words: readonly string[]
): Promise<string> {
  const printed: string[] = []
  const audit = new Command('audit').exitOverride()
  registerAuditCommands(audit, {
    open: async () => ({ db, clock, close: async () => {} }),
    print: (text) => void printed.push(text),
    note: () => {},
  })
  try {
    await audit.parseAsync([...words], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommandRefused)) throw error
    return error.message
  }
  return printed.join('\n')
}
