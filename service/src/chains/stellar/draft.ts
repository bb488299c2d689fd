import { assert } from '../../domain/assert.ts'
import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { Intent, Outflow, StellarIntent } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid, Funds } from '../chain.ts'
import { parsePlace, parseTagged } from './address.ts'
import { LIFE_S } from './bid.ts'

export function draft(
  passphrase: string,
  outflow: Outflow,
  bid: FeeBid,
  funds: Funds,
): Outcome<StellarIntent, DraftRejection> {
  assert(bid.family === 'stellar' && funds.model === 'account', 'a Stellar payout has a bid and a sequence')
  const payment = paymentOf(outflow, bid.creates)
  if (!payment.ok) return refuse({ code: 'destination', message: payment.rejection.message })
  return accept({
    family: 'stellar',
    chain: 'XLM',
    passphrase,
    payoutId: outflow.payoutId,
    attempt: 1,
    from: funds.from,
    sequence: bid.sequenceBase + BigInt(funds.nonce),
    payment: payment.value,
    feeStroops: bid.feeStroops,
    maxTimeS: bid.maxTimeS,
  })
}

/** A memo stands beside an account, and nowhere with a muxed address, which says as much itself. */
function paymentOf(
  { kind, address, tag, asset, units }: Outflow,
  creates: boolean,
): Outcome<StellarIntent['payment']> {
  if (kind === 'filler') {
    assert(units === 0n, 'a filler pays nothing')
    return accept(null)
  }
  assert(units > 0n, 'a payout pays something')
  const stroops = toChainUnits(amountOf(asset, units))
  const place = parsePlace(address)
  if (!place.ok) return place
  if (tag === null) return accept({ to: address, memo: null, stroops, creates })
  const tagged = parseTagged(address, tag)
  if (!tagged.ok) return tagged
  return accept({ to: address, memo: place.value.id === null ? tag : null, stroops, creates })
}

/**
 * The same payment under the same sequence, so that at most one of the attempts is ever in a ledger, and only when the
 * earlier one can be in none any more: until then its place in the queue is taken.
 */
export function raise(previous: Intent, bid: FeeBid): Outcome<StellarIntent, DraftRejection> {
  assert(
    previous.family === 'stellar' && bid.family === 'stellar',
    'a Stellar attempt follows a Stellar attempt',
  )
  const { feeStroops, maxTimeS, creates } = bid
  const closedAtS = maxTimeS - LIFE_S
  if (closedAtS <= previous.maxTimeS) {
    const message = `the earlier attempt may still be in a ledger for ${previous.maxTimeS - closedAtS} s`
    return refuse({ code: 'network', message })
  }
  const payment = previous.payment === null ? null : { ...previous.payment, creates }
  return accept({ ...previous, attempt: previous.attempt + 1, payment, feeStroops, maxTimeS })
}
