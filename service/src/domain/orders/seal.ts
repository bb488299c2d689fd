import type { AssetId } from '../catalog/assets.ts'
import { type OutflowKind, paysSomebody } from '../payouts/intent.ts'
import type { Order } from './order.ts'

/** The words of an order that decide where money may go, and which; what is sealed is what the signer obeys. */
export type SealedTerms = {
  readonly orderId: string
  /** What a payout to `destination` is made in. */
  readonly payoutAsset: AssetId
  readonly destination: string
  readonly destinationTag: string | null
  /** What a refund to `refundAddress` is made in. */
  readonly depositAsset: AssetId
  readonly refundAddress: string | null
}

/** What a seal is good for: the payouts and refunds of an order, or a transfer from us to us. */
export type SealedFor = 'order' | 'own'

const FIRST_WORDS = { order: 'cambist-order-v2', own: 'cambist-own-v1' } as const satisfies Record<
  SealedFor,
  string
>

/** The one of the two that an outflow of this kind needs. */
export function sealedFor(outflow: { readonly kind: OutflowKind }): SealedFor {
  return paysSomebody(outflow) ? 'order' : 'own'
}

/**
 * The exact text under the seal. JSON keeps fields apart, so no two orders share a text. What is sealed for a transfer of our own names
 * whatever payee stands in its row: with an order's first word, that seal would pay there as well.
 */
export function sealText(terms: SealedTerms, whose: SealedFor = 'order'): string {
  return JSON.stringify([
    FIRST_WORDS[whose],
    terms.orderId,
    terms.payoutAsset,
    terms.destination,
    terms.destinationTag,
    terms.depositAsset,
    terms.refundAddress,
  ])
}

/** What an order's terms come to under the seal. */
export function sealedTermsOf({ terms, refundAddress }: Pick<Order, 'terms' | 'refundAddress'>): SealedTerms {
  return {
    orderId: terms.id,
    payoutAsset: terms.to,
    destination: terms.destination,
    destinationTag: terms.destinationTag,
    depositAsset: terms.from,
    refundAddress,
  }
}
