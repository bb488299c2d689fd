import { isAddress } from 'viem/utils'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { checksummed } from './decode.ts'

/** No one holds a key below this: the zero address, precompiles, BNB Smart Chain's system contracts, 0x…dEaD. */
const KEYLESS_BELOW = 0x10000n

/**
 * The EIP-55 text of an address that we may pay to. All-lowercase passes; mixed case must carry a right checksum.
 * https://eips.ethereum.org/EIPS/eip-55
 */
export function parseAddress(text: string, tokenContracts: ReadonlySet<string>): Outcome<string> {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) {
    return refuse({ code: 'address_malformed', message: 'must be 0x and 40 hexadecimal digits' })
  }
  if (!isAddress(text, { strict: true })) {
    return refuse({
      code: 'address_checksum',
      message: 'has a wrong checksum (EIP-55): copy it again, a letter is mistyped',
    })
  }
  const lower = text.toLowerCase()
  if (BigInt(lower) < KEYLESS_BELOW) {
    return refuse({ code: 'address_unpayable', message: 'belongs to no one: what is sent there is lost' })
  }
  if (tokenContracts.has(lower)) {
    return refuse({
      code: 'address_unpayable',
      message: 'is the contract of a token, not a wallet: what is sent there is lost',
    })
  }
  return accept(checksummed(lower))
}
