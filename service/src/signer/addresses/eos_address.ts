import { assert } from '../../domain/assert.ts'
import type { EosIntent, KeyPath } from '../../domain/payouts/intent.ts'
import { RESERVE_TAG } from '../derivation.ts'
import { Malformed } from '../requests/fields.ts'
import type { EosSettings } from '../settings.ts'
import type { Authority } from '../signer.ts'

/**
 * One account for all, as on the XRP Ledger, whose name is configured; everybody's memo is written behind it. No name has a
 * slash in it.
 */
export function eosAddress(settings: EosSettings | undefined, { purpose, index }: KeyPath): string {
  if (settings === undefined) throw new Malformed('family: EOS is not configured')
  assert(purpose !== 'change', 'EOS has no change addresses')
  if (purpose === 'reserve' && index > 0) return settings.account
  return `${settings.account}/${purpose === 'reserve' ? RESERVE_TAG : index}`
}

/** Whether the intent pays whom the order names: the account and its memo. A refund has its memo behind the name, or none. */
export function isEosPayee(
  { payment }: EosIntent,
  { kind, destination, destinationTag, refundAddress }: Authority,
): boolean {
  if (kind === 'payout') return payment.to === destination && payment.memo === destinationTag
  if (kind !== 'refund' || refundAddress === null) return false
  const [account, memo = ''] = refundAddress.split('/')
  return payment.to === account && payment.memo === memo
}
