import { createHash } from 'node:crypto'
import { createBase58check } from '@scure/base'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'

const base58check = createBase58check((bytes: Uint8Array) => createHash('sha256').update(bytes).digest())

/** The byte that every address of TRON begins with: https://developers.tron.network/docs/account */
const PREFIX = '41'

/** Nobody has the key of it: what is sent there is burnt. */
const BLACK_HOLES = new Set([`41${'00'.repeat(20)}`])

/**
 * An address in base58, with `contracts` (in hex) refused: a token that is paid to a token's contract is lost. The other
 * spellings that libraries take (41…, 0x…) are none here, because people do not use them and an EVM address is one of them.
 */
export function parseAddress(text: string, contracts: ReadonlySet<string>): Outcome<string> {
  const hex = /^T[1-9A-HJ-NP-Za-km-z]{33}$/.test(text) ? decode(text) : null
  if (hex === null)
    return refuse({ code: 'address_malformed', message: 'must be an address of TRON (T and 33 more)' })
  if (contracts.has(hex) || BLACK_HOLES.has(hex))
    return refuse({ code: 'address_unpayable', message: 'belongs to no one: what is sent there is lost' })
  return accept(text)
}

/** `41…` in lowercase. */
export function hexOf(address: string): string {
  return Buffer.from(base58check.decode(address)).toString('hex')
}

export function base58Of(hex: string): string {
  return base58check.encode(Buffer.from(hex, 'hex'))
}

function decode(text: string): string | null {
  try {
    const hex = hexOf(text)
    return hex.length === 42 && hex.startsWith(PREFIX) ? hex : null
  } catch {
    return null
  }
}
