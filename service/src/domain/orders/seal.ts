import type { AssetId } from '../catalog/assets.ts'
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

/** The exact text under the seal. JSON keeps fields apart, so no two orders share a text. */
export function sealText(terms: SealedTerms): string {
  return JSON.stringify([
    'cambist-order-v2',
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
