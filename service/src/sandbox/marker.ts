import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { CommandRefused } from '../command_refused.ts'
import type { Sql } from '../db/database.ts'
import { readUse } from '../db/database_use.ts'
import { readJson, writeJson } from './json_file.ts'

/**
 * What a folder and its database have in common. A sandbox gives money away and prices orders as it likes: it works on no
 * database that does not say that it is of this folder, and `serve` on none of a sandbox where money is real.
 */
export async function openMarker(dataDir: string): Promise<string> {
  const path = join(dataDir, 'marker.json')
  const kept = await readJson<{ readonly marker: string }>(path)
  if (kept !== null) return kept.marker
  const marker = randomUUID()
  await writeJson(path, { marker })
  return marker
}

/** To be asked before the schema is changed. One that nobody has used may become this folder's. */
export async function refuseForeignDatabase(url: string, dataDir: string, marker: string): Promise<void> {
  const use = await readUse(url)
  if (use.marker === null ? use.isUsed : use.marker !== marker) throw notOf(dataDir)
}

/** Marks the database unless it is marked; gives the marker that it has then. */
export async function markDatabase(db: Sql, marker: string): Promise<string> {
  const [row] = await db.query<{ value: string }>(
    // The conflict changes nothing, and is an update because only then the row is returned.
    `INSERT INTO sandbox_settings AS kept (name, value) VALUES ('marker', $1)
     ON CONFLICT (name) DO UPDATE SET value = kept.value RETURNING value`,
    [JSON.stringify(marker)],
  )
  return row?.value ?? marker
}

export function notOf(dataDir: string): CommandRefused {
  return new CommandRefused(
    `DATABASE_URL names a database that is not of the sandbox in ${dataDir}: a service or another sandbox works on it. ` +
      "Use an empty database, or none, for the sandbox's own.",
  )
}
