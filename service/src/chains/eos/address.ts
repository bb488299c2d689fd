import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { EOS_MEMO_BYTES_MAX, eosName } from '../../domain/payouts/eos_transfer.ts'
import { isPlainMemo } from '../../domain/payouts/memo.ts'

/** An account, and with a memo one of the many who share it. */
export type Place = { readonly account: string; readonly memo: string | null }

/**
 * EOS has no spelling for both in one. Ours is `account/memo`: no name has a slash in it. The interface shows the two apart.
 */
export function textOf({ account, memo }: Place): string {
  return memo === null ? account : `${account}/${memo}`
}

/** Inside an address a memo is what exchanges give: a number or a word. */
const PLAIN_MEMO = /^[\w:.-]{1,64}$/

/**
 * An account that may be paid, perhaps with a memo behind a slash. Names have no checksum: whether there is such an account
 * is for the chain to say, when it is paid.
 */
export function parsePlace(text: string): Outcome<Place> {
  const [account = '', memo = null, ...more] = text.split('/')
  if (!eosName.test(account) || more.length > 0 || (memo !== null && !PLAIN_MEMO.test(memo))) {
    const message = 'must be an account of EOS: 1 to 12 of a-z, 1-5 and dots'
    return refuse({ code: 'address_malformed', message })
  }
  if (account === 'eosio' || account.startsWith('eosio.')) {
    return refuse({
      code: 'address_unpayable',
      message: 'belongs to the network: what is sent there is lost',
    })
  }
  return accept({ account, memo })
}

/** The memo stands beside the name; given behind a slash as well, it has to be the same. Spec 4.3, rule 6. */
export function parseTagged(
  text: string,
  tag: string | null,
): Outcome<{ readonly address: string; readonly tag: string }> {
  const place = parsePlace(text)
  if (!place.ok) return place
  const { account: address, memo } = place.value
  if (memo !== null && tag !== null && tag !== memo)
    return refuse({ code: 'tag_malformed', message: `is not ${memo}, the memo that the address carries` })
  const given = tag ?? memo
  if (given === null)
    return refuse({ code: 'tag_required', message: 'EOS needs a destination_tag (the memo)' })
  if (!isPlainMemo(given) || Buffer.byteLength(given) > EOS_MEMO_BYTES_MAX) {
    const message = `must be text of 1 to ${EOS_MEMO_BYTES_MAX} bytes in UTF-8, without spaces around it`
    return refuse({ code: 'tag_malformed', message })
  }
  return accept({ address, tag: given })
}
