import type { Sql } from '../../db/database.ts'
import { findSignedOutflows, sumUnsignedOutflows } from '../../db/leaving_outflows.ts'
import { type Outflow, type PayoutId, paysSomebody } from '../../domain/payouts/intent.ts'
import type { Room } from '../../signer/signer.ts'
import type { SigningWorld } from '../world.ts'

/** What the signer's limits leave, and whose signatures they had certainly counted by then. */
export type CountedRoom = { readonly room: Room; readonly counted: readonly PayoutId[] }

/** Null: it goes from us to us and nothing limits it, or the signer is away and says so once more when it is to sign. */
export async function readRoom(world: SigningWorld, outflow: Outflow): Promise<CountedRoom | null> {
  if (!paysSomebody(outflow)) return null
  const { asset } = outflow
  const counted = await findSignedOutflows(world.db, asset)
  const room = await world.signer.room(asset).catch(() => null)
  return room === null ? null : { room, counted }
}

/**
 * Why the signer would refuse the outflow now, or null. Those that are written down and were perhaps not counted yet come
 * before it; asked where others who write one down wait for this one.
 */
export async function findLackOfRoom(
  sql: Sql,
  { asset, units }: Outflow,
  { room: { onePayout, together }, counted }: CountedRoom,
): Promise<string | null> {
  if (units > onePayout)
    return `one payout of ${asset} is at most ${onePayout} ledger units, by the signer's limits`
  if (together === null) return null
  const left = together - (await sumUnsignedOutflows(sql, asset, counted))
  return units > left
    ? `the signer's limits over time leave ${left} ledger units of ${asset} at present`
    : null
}
