import type { Clock } from '../clock.ts'
import type { Database } from '../db/database.ts'

export type OrderPlace = { readonly db: Database; readonly clock: Pick<Clock, 'wallMs'> }

/** `open` connects, and `close` is called however the command ends. */
export type OrderCommandWorld = {
  open(): Promise<OrderPlace & { close(): Promise<void> }>
  print(text: string): void
}

export type Json = { readonly json?: boolean }

export async function withDatabase(
  world: OrderCommandWorld,
  work: (db: Database, place: OrderPlace) => Promise<void>,
): Promise<void> {
  const { close, ...place } = await world.open()
  try {
    await work(place.db, place)
  } finally {
    await close()
  }
}
