import { connected, unlessEmpty } from './migrate.ts'

/** A row in one of them is what a service leaves behind: it derives addresses and notes chains first of all. */
const FIRST_TABLES = ['addresses', 'accounts', 'chain_heads'] as const

/** Whether a service has worked on the database, whatever its release; changes nothing. */
export function isUsed(url: string): Promise<boolean> {
  return connected(url, async (client) => {
    for (const table of FIRST_TABLES) {
      const found = await unlessEmpty(client.query(`SELECT 1 FROM ${table} LIMIT 1`))
      if (found !== null && found.rows.length > 0) return true
    }
    return false
  })
}
