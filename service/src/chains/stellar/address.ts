import {
  encodeMuxedAccount,
  encodeMuxedAccountToAddress,
  extractBaseAddress,
  MuxedAccount,
  StrKey,
} from '@stellar/stellar-sdk/base'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { isPlainMemo } from '../../domain/payouts/memo.ts'
import { STELLAR_MEMO_BYTES_MAX } from '../../domain/payouts/stellar_memo.ts'

/** An account, and with an id one of the many who share it. */
export type Place = { readonly account: string; readonly id: string | null }

/** The account whose key is all noughts: nobody can sign for it. */
const KEYLESS = 'GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF'

/** One text for one place: without an id the account (G…), with one the muxed address (M…, SEP-23). */
export function textOf({ account, id }: Place): string {
  return id === null ? account : encodeMuxedAccountToAddress(encodeMuxedAccount(account, id))
}

/** An account or a muxed address that may be paid. Contracts (C…) are not: what they do with it is theirs to say. */
export function parsePlace(text: string): Outcome<Place> {
  const place = readPlace(text)
  if (place === null) {
    return refuse({
      code: 'address_malformed',
      message: 'must be an account (G…) or a muxed address (M…) of Stellar',
    })
  }
  if (place.account === KEYLESS) {
    return refuse({ code: 'address_unpayable', message: 'belongs to no one: what is sent there is lost' })
  }
  return accept(place)
}

/** What is written, also where nobody should pay: strangers do. Null: it is no address. */
export function readPlace(text: string): Place | null {
  if (/^G[A-Z2-7]{55}$/.test(text))
    return StrKey.isValidEd25519PublicKey(text) ? { account: text, id: null } : null
  if (!/^M[A-Z2-7]{68}$/.test(text) || !StrKey.isValidMed25519PublicKey(text)) return null
  return { account: extractBaseAddress(text), id: MuxedAccount.fromAddress(text, '0').id() }
}

/**
 * The memo stands beside an account, and a muxed address has its id inside; given twice, it has to be the same. Spec 4.3,
 * rule 6. Of which kind it is, `stellarMemoKind` says.
 */
export function parseTagged(
  text: string,
  tag: string | null,
): Outcome<{ readonly address: string; readonly tag: string }> {
  const place = parsePlace(text)
  if (!place.ok) return place
  const { id } = place.value
  if (id !== null) {
    if (tag === null || tag === id) return accept({ address: text, tag: id })
    return refuse({ code: 'tag_malformed', message: `is not ${id}, the id that the muxed address carries` })
  }
  if (tag === null) {
    return refuse({
      code: 'tag_required',
      message: 'Stellar needs a destination_tag (the memo), or a muxed address (M…)',
    })
  }
  if (!isPlainMemo(tag) || Buffer.byteLength(tag) > STELLAR_MEMO_BYTES_MAX) {
    const message = `must be a number below 2^64 or text of 1 to ${STELLAR_MEMO_BYTES_MAX} bytes in UTF-8, without spaces around it`
    return refuse({ code: 'tag_malformed', message })
  }
  return accept({ address: text, tag })
}
