import { isFree } from './clocks_set_back.ts'
import type { Sql } from './database.ts'

export type Lease = { readonly name: string; readonly holder: string; readonly fence: number }

/**
 * Takes or renews a lease until `wallMs + holdMs`. A new holder gets a higher fence, so whoever held it before can be
 * told from whoever holds it now, however late it wakes up. Null: somebody else has it.
 */
export async function takeLease(
  sql: Sql,
  name: string,
  holder: string,
  wallMs: number,
  holdMs: number,
): Promise<Lease | null> {
  const [row] = await sql.query<{ fence: number }>(
    `INSERT INTO leases (name, holder, fence, expires_wall_ms) VALUES ($1, $2, 1, $3::bigint + $4::bigint)
     ON CONFLICT (name) DO UPDATE SET
       fence = leases.fence + CASE WHEN leases.holder = $2 THEN 0 ELSE 1 END,
       holder = $2, expires_wall_ms = $3::bigint + $4::bigint
     WHERE leases.holder = $2 OR ${isFree('leases.expires_wall_ms', '$3', '$4::bigint')}
     RETURNING fence`,
    [name, holder, wallMs, holdMs],
  )
  return row === undefined ? null : { name, holder, fence: row.fence }
}

/** Gives it back early, so that the next one need not wait for it to run out. */
export async function releaseLease(sql: Sql, lease: Lease): Promise<void> {
  await sql.query('UPDATE leases SET expires_wall_ms = 0 WHERE name = $1 AND holder = $2 AND fence = $3', [
    lease.name,
    lease.holder,
    lease.fence,
  ])
}

/**
 * A row as long as the lease is held, and it stays so until the transaction ends. Its name, holder and fence are the parameters
 * from `first` on.
 */
export function leaseHeld(first: number): string {
  return `SELECT 1 AS one FROM leases WHERE name = $${first} AND holder = $${first + 1} AND fence = $${first + 2} FOR SHARE`
}

async function isLeaseHeld(tx: Sql, { name, holder, fence }: Lease): Promise<boolean> {
  return (await tx.query(leaseHeld(1), [name, holder, fence])).length > 0
}

/** Whoever lost the lease writes nothing: it may have slept for long, and the world has moved on. */
export async function requireLease(tx: Sql, lease: Lease): Promise<void> {
  if (!(await isLeaseHeld(tx, lease))) throw leaseLost(lease)
}

export function leaseLost({ name }: Lease): Error {
  return new Error(`the lease ${name} was lost`)
}
