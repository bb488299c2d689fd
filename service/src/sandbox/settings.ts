import type { Database, Sql } from '../db/database.ts'

/** What the sandbox moves and a restart must find again: the clock and the prices. */
export type SandboxSettings = {
  readonly clockOffsetMs: number
  readonly prices: Readonly<Record<string, string>>
}

export async function readSettings(db: Database): Promise<SandboxSettings> {
  const rows = await db.query<{ name: string; value: unknown }>('SELECT name, value FROM sandbox_settings')
  const byName = new Map(rows.map(({ name, value }) => [name, value]))
  return {
    clockOffsetMs: (byName.get('clock_offset_ms') as number | undefined) ?? 0,
    prices: (byName.get('prices') as Record<string, string> | undefined) ?? {},
  }
}

export async function saveSetting(
  db: Sql,
  name: 'clock_offset_ms' | 'prices',
  value: number | Readonly<Record<string, string>>,
): Promise<void> {
  await db.query(
    'INSERT INTO sandbox_settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    [name, JSON.stringify(value)],
  )
}
