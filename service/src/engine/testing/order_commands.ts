import { Command } from 'commander'
import { CommandRefused } from '../../command_refused.ts'
import { registerOrderCommands } from '../../commands/order.ts'
import type { Database } from '../../db/database.ts'
import type { BooksStage } from './books_stage.ts'

/** What `cambist order …` prints; throws what it refuses with. What it says beside that is added to `notes`. */
export async function runOrderCommand(
  { db: staged, world: { clock } }: Pick<BooksStage, 'db' | 'world'>,
  words: readonly string[],
  db: Database = staged,
  notes: string[] = [],
): Promise<string> {
  const printed: string[] = []
  const order = new Command('order').exitOverride()
  registerOrderCommands(order, {
    open: async () => ({ db, clock, close: async () => {} }),
    print: (text) => void printed.push(text),
    note: (text) => void notes.push(text),
  })
  await order.parseAsync([...words], { from: 'user' })
  return printed.join('\n')
}

/** The same, with the sentence with which it refuses for an answer. */
export async function tellOrderCommand(...given: Parameters<typeof runOrderCommand>): Promise<string> {
  try {
    return await runOrderCommand(...given)
  } catch (error) {
    if (!(error instanceof CommandRefused)) throw error
    return error.message
  }
}
