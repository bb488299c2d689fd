import {
  classicAddressToXAddress,
  isValidClassicAddress,
  isValidXAddress,
  xAddressToClassicAddress,
} from 'ripple-address-codec'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'

/** An account, and with a tag one of the many who share it. */
export type Place = { readonly account: string; readonly tag: number | null }

/** XLS-5: an X-address carries its tag; `X…` is the main network and `T…` every other one. */
export type Spelling = { readonly isMain: boolean }

/** Accounts that nobody has the key of: https://xrpl.org/docs/concepts/accounts/addresses#special-addresses */
const KEYLESS = new Set([
  'rrrrrrrrrrrrrrrrrrrrrhoLvTp',
  'rrrrrrrrrrrrrrrrrrrrBZbvji',
  'rrrrrrrrrrrrrrrrrNAMEtxvNvQ',
  'rrrrrrrrrrrrrrrrrrrn5RM1rHd',
])

/** One text for one place: without a tag the classic address, with one the X-address. */
export function textOf({ account, tag }: Place, { isMain }: Spelling): string {
  return tag === null ? account : classicAddressToXAddress(account, tag, !isMain)
}

/** A classic address or an X-address of this network that may be paid. */
export function parsePlace(text: string, { isMain }: Spelling): Outcome<Place> {
  const place = readPlace(text, isMain)
  if (place === null) {
    const kinds = `a classic address (r…) or an X-address (${isMain ? 'X' : 'T'}…)`
    return refuse({ code: 'address_malformed', message: `must be ${kinds} of the XRP Ledger` })
  }
  if (KEYLESS.has(place.account)) {
    return refuse({ code: 'address_unpayable', message: 'belongs to no one: what is sent there is lost' })
  }
  return accept(place)
}

function readPlace(text: string, isMain: boolean): Place | null {
  if (/^r[1-9A-HJ-NP-Za-km-z]{24,34}$/.test(text))
    return isValidClassicAddress(text) ? { account: text, tag: null } : null
  if (!/^[XT][1-9A-HJ-NP-Za-km-z]{40,60}$/.test(text) || !isValidXAddress(text)) return null
  const { classicAddress, tag, test } = xAddressToClassicAddress(text)
  return test === isMain ? null : { account: classicAddress, tag: tag === false ? null : tag }
}

export const TAG_MAX = 2 ** 32 - 1

/** The tag stands beside the address or inside it; in both, it has to be the same. Spec 4.3, rule 6. */
export function parseTagged(
  text: string,
  tag: string | null,
  spelling: Spelling,
): Outcome<{ readonly address: string; readonly tag: string }> {
  const place = parsePlace(text, spelling)
  if (!place.ok) return place
  const { account, tag: inside } = place.value
  if (tag === null) {
    if (inside !== null) return accept({ address: account, tag: String(inside) })
    return refuse({
      code: 'tag_required',
      message: 'the XRP Ledger needs a destination_tag, or an X-address that carries one',
    })
  }
  if (!/^(0|[1-9]\d{0,9})$/.test(tag) || Number.parseInt(tag, 10) > TAG_MAX) {
    return refuse({ code: 'tag_malformed', message: `must be a whole number from 0 to ${TAG_MAX}` })
  }
  if (inside !== null && String(inside) !== tag) {
    return refuse({ code: 'tag_malformed', message: `is not ${inside}, the tag that the X-address carries` })
  }
  return accept({ address: account, tag })
}
