import type { KeyObject } from 'node:crypto'
import { CommandRefused } from '../command_refused.ts'
import type { Sql } from '../db/database.ts'
import { noteSealKeyId, readSealKeyId } from '../db/order_seal_key.ts'
import { findOpenSeals } from '../db/orders.ts'
import { makeSeal, sealKeyIdOf } from '../engine/seal.ts'

/**
 * Orders that one process seals with another key than the signer's would take deposits and never be paid. Throws CommandRefused
 * where the orders of the database are sealed with another key; notes the key where none is noted yet.
 */
export async function refuseOtherSealKey(sql: Sql, sealKey: KeyObject): Promise<void> {
  const own = sealKeyIdOf(sealKey)
  let noted = await readSealKeyId(sql)
  if (noted === null) {
    if (await isOfOthers(sql, sealKey)) throw refusal(own, 'another one; none that is open has its seal')
    noted = await noteSealKeyId(sql, own)
  }
  if (noted !== own) throw refusal(own, `the one with id ${noted}`)
}

/** Whether there are open orders, and this key has sealed none of them; a few may have been changed by an intruder. */
async function isOfOthers(sql: Sql, sealKey: KeyObject): Promise<boolean> {
  const open = await findOpenSeals(sql, 100)
  return open.length > 0 && open.every(({ terms, seal }) => makeSeal(sealKey, terms) !== seal)
}

function refusal(own: string, sealedWith: string): CommandRefused {
  return new CommandRefused(
    `CAMBIST_ORDER_SEAL_KEY_FILE: holds another key (its id is ${own}) than the orders of this database are sealed with (${sealedWith}). The signer pays only what was sealed with its own key: give all processes with the role api, engine or signer the file that belongs to this database. If it is lost, see "The seal key" in docs/operating/running.md.`,
  )
}
