import { connected, unlessEmpty } from './migrate.ts'

/** What a database has been used for so far. */
export type DatabaseUse = {
  /** A service has worked on it, whatever its release. */
  readonly isUsed: boolean
  /** Of the sandbox that it belongs to; null where it is none's. */
  readonly marker: string | null
}

/** A row in one of them is what a service leaves behind: it derives addresses and notes chains first of all. */
const FIRST_TABLES = ['addresses', 'accounts', 'chain_heads'] as const

/** Changes nothing, and needs no schema of ours. */
export function readUse(url: string): Promise<DatabaseUse> {
  return connected(url, async (client) => {
    const rowsOf = async (text: string) => (await unlessEmpty(client.query(text)))?.rows ?? []
    const [marked] = await rowsOf("SELECT value AS marker FROM sandbox_settings WHERE name = 'marker'")
    const marker: string | null = marked?.marker ?? null
    for (const table of FIRST_TABLES) {
      if ((await rowsOf(`SELECT 1 FROM ${table} LIMIT 1`)).length > 0) return { isUsed: true, marker }
    }
    return { isUsed: false, marker }
  })
}
