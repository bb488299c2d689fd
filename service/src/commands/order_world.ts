import type { Database } from '../db/database.ts'

/** `open` connects, and `close` is called however the command ends. */
export type OrderCommandWorld = {
  open(): Promise<{ readonly db: Database; close(): Promise<void> }>
  print(text: string): void
}

export type Json = { readonly json?: boolean }

export async function withDatabase(
  world: OrderCommandWorld,
  work: (db: Database) => Promise<void>,
): Promise<void> {
  const { db, close } = await world.open()
  try {
    await work(db)
  } finally {
    await close()
  }
}
