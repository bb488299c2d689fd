import { address, getAddressEncoder, isAddress, isOffCurveAddress } from '@solana/kit'
import { findAssociatedTokenPda, TOKEN_PROGRAM_ADDRESS } from '@solana-program/token'
import { BoundedMap } from '../../domain/bounded_map.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'

/** Owns every account that is simply somebody's. Its own address is 32 zeros, of which nobody has the key. */
export const SYSTEM_PROGRAM = '1'.repeat(32)
export const TOKEN_PROGRAM: string = TOKEN_PROGRAM_ADDRESS
/** https://www.solana-program.com/docs/token-2022: its mints may keep fees, be frozen from the first, and run what others wrote. */
export const TOKEN_2022_PROGRAM = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'

/**
 * The account of somebody who may have a key. What a program derives (multi-signature vaults, what others hold of a token) is
 * none: whoever pays there has to know the program. Mints are refused, because what is sent there is lost.
 */
export function parseAddress(text: string, mints: ReadonlySet<string>): Outcome<string> {
  if (!/^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(text) || !isAddress(text))
    return refuse({ code: 'address_malformed', message: 'must be an address of Solana (32 bytes in base58)' })
  if (text === SYSTEM_PROGRAM || mints.has(text))
    return refuse({ code: 'address_unpayable', message: 'belongs to no one: what is sent there is lost' })
  if (isOffCurveAddress(text))
    return refuse({
      code: 'address_unpayable',
      message: 'belongs to a program; give the address of its owner',
    })
  return accept(text)
}

/** The 32 bytes. */
export function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(getAddressEncoder().encode(address(text)))
}

/**
 * What was derived last, in two megabytes. The same addresses are asked about with every comparison, and deriving is arithmetic of a
 * millisecond.
 */
const derived = new BoundedMap<string, string>(10_000)

/** Where a wallet keeps a token: https://www.solana-program.com/docs/associated-token-account */
export async function holdingOf(owner: string, mint: string): Promise<string> {
  const name = `${owner} ${mint}`
  const known = derived.get(name)
  if (known !== undefined) return known
  const [holding] = await findAssociatedTokenPda({
    owner: address(owner),
    mint: address(mint),
    tokenProgram: TOKEN_PROGRAM_ADDRESS,
  })
  derived.set(name, holding)
  return holding
}
