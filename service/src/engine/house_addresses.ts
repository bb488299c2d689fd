import { findOwnAddresses, reserveAddresses } from '../db/addresses.ts'
import type { Sql } from '../db/database.ts'
import { type AddressFamily, depositsLie } from '../domain/catalog/networks.ts'
import { batched } from './batched.ts'
import type { World } from './world.ts'

/** Whether payouts leave from the address, or their change comes back to it. In its canonical spelling. */
export type IsHouseAddress = (family: AddressFamily, address: string) => Promise<boolean>

/**
 * A payment to ourselves would be booked as paid while nothing leaves, and ledger and chain would differ for ever. Deposit
 * addresses are none of these: what is paid there is a deposit, and booked as such.
 */
export async function isHouseAddress(sql: Sql, family: AddressFamily, address: string): Promise<boolean> {
  return (await areHouseAddresses(sql, family, [address]))[0] === true
}

async function areHouseAddresses(sql: Sql, family: AddressFamily, addresses: readonly string[]) {
  const own = await findOwnAddresses(sql, family, addresses)
  return addresses.map((address) => {
    const purpose = own.get(address)?.key.purpose
    return purpose !== undefined && purpose !== 'deposit'
  })
}

/**
 * The same for whoever asks often: reserves are few, made once and remembered; only change addresses are looked for, and
 * those that are asked for together in one statement.
 */
export function houseAddressFinder({ db, clock }: Pick<World, 'db' | 'clock'>): IsHouseAddress {
  const reserves = new Map<AddressFamily, readonly string[]>()
  const isFound = new Map<AddressFamily, (address: string) => Promise<boolean>>()
  const find = (family: AddressFamily, address: string) => {
    const known = isFound.get(family)
    if (known !== undefined) return known(address)
    const made = batched((together: readonly string[]) => areHouseAddresses(db, family, together), {
      endOfTurn: clock.endOfTurn,
    })
    isFound.set(family, made)
    return made(address)
  }
  return async (family, address) => {
    if (depositsLie[family] === 'coins') return find(family, address)
    const known = reserves.get(family) ?? (await reserveAddresses(db, family))
    if (known.length > 0) reserves.set(family, known)
    return known.includes(address)
  }
}
