import type { ChainId } from '../domain/catalog/networks.ts'
import type { Sql } from './database.ts'

/**
 * The next nonce of an account, taken by the transaction that stores what uses it. `minedNonce` is what the
 * chain says: after a restore from a backup it may be ahead of us.
 */
export async function takeNonce(
  tx: Sql,
  chain: ChainId,
  address: string,
  minedNonce: number,
): Promise<number> {
  const [row] = await tx.query<{ taken: number }>(
    `INSERT INTO account_nonces (chain, address, next_nonce) VALUES ($1, $2, $3::bigint + 1)
     ON CONFLICT (chain, address) DO UPDATE SET next_nonce = greatest(account_nonces.next_nonce, $3::bigint) + 1
     RETURNING next_nonce - 1 AS taken`,
    [chain, address, minedNonce],
  )
  if (row === undefined) throw new Error(`no nonce could be taken for ${address} on ${chain}`)
  return row.taken
}

/** What was to use it was never signed: the next one takes it. False: a later one was taken, which waits behind it. */
export async function giveBackNonce(
  tx: Sql,
  chain: ChainId,
  address: string,
  nonce: number,
): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE account_nonces SET next_nonce = $3 WHERE chain = $1 AND address = $2 AND next_nonce = $3::bigint + 1
     RETURNING next_nonce`,
    [chain, address, nonce],
  )
  return rows.length > 0
}

/** Where accounts have no nonce: whoever else drafts from this one waits until the transaction is over. */
export async function lockAccount(tx: Sql, chain: ChainId, address: string): Promise<void> {
  await takeNonce(tx, chain, address, 0)
}
