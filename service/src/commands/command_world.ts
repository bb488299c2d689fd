import type { Clock } from '../clock.ts'
import type { Database } from '../db/database.ts'

type DatabasePlace = { readonly db: Database }
export type OrderPlace = DatabasePlace & { readonly clock: Clock }

/** `open` connects, and `close` is called however the command ends. */
export type DatabaseWorld<Place extends DatabasePlace = DatabasePlace> = {
  open(): Promise<Place & { close(): Promise<void> }>
  print(text: string): void
}

/** `note` is for whoever gave the command, beside what it prints for whatever reads that: standard error. */
export type ListingWorld = { print(text: string): void; note(text: string): void }

export type OrderCommandWorld = DatabaseWorld<OrderPlace> & ListingWorld

export type Json = { readonly json?: boolean }

export async function withDatabase<Place extends DatabasePlace>(
  world: DatabaseWorld<Place>,
  work: (db: Database, place: Place) => Promise<void>,
): Promise<void> {
  const place = await world.open()
  try {
    await work(place.db, place)
  } finally {
    await place.close()
  }
}
