import type { Client } from 'pg'
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
    const marker = await markerIn(client)
    for (const table of FIRST_TABLES) {
      const [row] = await rowsOf(client, `SELECT 1 FROM ${table} LIMIT 1`)
      if (row !== undefined) return { isUsed: true, marker }
    }
    return { isUsed: false, marker }
  })
}

/**
 * The marker alone. A migration of another process may hold the large tables for longer than a start waits for an answer: this asks
 * none of them.
 */
export function readMarker(url: string): Promise<string | null> {
  return connected(url, markerIn)
}

async function markerIn(client: Client): Promise<string | null> {
  const [marked] = await rowsOf(client, "SELECT value AS marker FROM sandbox_settings WHERE name = 'marker'")
  return marked?.marker ?? null
}

async function rowsOf(client: Client, text: string): Promise<readonly { readonly marker?: string }[]> {
  return (await unlessEmpty(client.query(text)))?.rows ?? []
}
