import { assert } from '../domain/assert.ts'
import type { Sql } from './database.ts'

/** The id of the key that the orders are sealed with. Null: no process that has one was here yet. */
export async function readSealKeyId(sql: Sql): Promise<string | null> {
  const [row] = await sql.query<{ key_id: string }>('SELECT key_id FROM order_seal_key')
  return row?.key_id ?? null
}

/** Notes the id where none is noted; answers the one that is, which another process may have noted meanwhile. */
export async function noteSealKeyId(sql: Sql, keyId: string): Promise<string> {
  const [row] = await sql.query<{ key_id: string }>(
    'INSERT INTO order_seal_key (key_id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING key_id',
    [keyId],
  )
  const noted = row?.key_id ?? (await readSealKeyId(sql))
  assert(noted !== null, 'a seal key is noted')
  return noted
}
