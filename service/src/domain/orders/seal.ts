/** The words of an order that decide where money may go; what is sealed is what the signer obeys. */
export type SealedTerms = {
  readonly orderId: string
  readonly destination: string
  readonly destinationTag: string | null
  readonly refundAddress: string | null
}

/** The exact text under the seal. JSON keeps fields apart, so no two orders share a text. */
export function sealText(terms: SealedTerms): string {
  return JSON.stringify([
    'cambist-order-v1',
    terms.orderId,
    terms.destination,
    terms.destinationTag,
    terms.refundAddress,
  ])
}
