import { findOwnAddresses, reserveAddresses } from '../db/addresses.ts'
import type { Sql } from '../db/database.ts'
import { type AddressFamily, depositsLie } from '../domain/catalog/networks.ts'

/** Whether payouts leave from the address, or their change comes back to it. In its canonical spelling. */
export type IsHouseAddress = (family: AddressFamily, address: string) => Promise<boolean>

/**
 * A payment to ourselves would be booked as paid while nothing leaves, and ledger and chain would differ for ever. Deposit
 * addresses are none of these: what is paid there is a deposit, and booked as such.
 */
export async function isHouseAddress(sql: Sql, family: AddressFamily, address: string): Promise<boolean> {
  const own = (await findOwnAddresses(sql, family, [address])).get(address)
  return own !== undefined && own.key.purpose !== 'deposit'
}

/** The same for whoever asks often: reserves are few, made once and remembered; only change addresses are looked for. */
export function houseAddressFinder(sql: Sql): IsHouseAddress {
  const reserves = new Map<AddressFamily, readonly string[]>()
  return async (family, address) => {
    if (depositsLie[family] === 'coins') return isHouseAddress(sql, family, address)
    const known = reserves.get(family) ?? (await reserveAddresses(sql, family))
    if (known.length > 0) reserves.set(family, known)
    return known.includes(address)
  }
}
