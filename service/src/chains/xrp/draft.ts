import { assert } from '../../domain/assert.ts'
import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import { larger } from '../../domain/money/larger.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { Intent, Outflow, XrpIntent } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid, Funds } from '../chain.ts'
import { parsePlace, parseTagged, type Spelling } from './address.ts'
import { LEDGERS_TO_LIVE } from './bid.ts'

export type Drafter = {
  readonly networkId: number
  readonly spelling: Spelling
  readonly feeDropsMax: bigint
}

export function draft(
  { networkId, spelling }: Drafter,
  outflow: Outflow,
  bid: FeeBid,
  funds: Funds,
): Outcome<XrpIntent, DraftRejection> {
  assert(bid.family === 'xrp' && funds.model === 'account', 'an XRP payout has an XRP bid and a sequence')
  const payment = paymentOf(outflow, spelling)
  if (!payment.ok) return refuse({ code: 'destination', message: payment.rejection.message })
  const { feeDrops, lastLedgerSequence } = bid
  return accept({
    family: 'xrp',
    chain: 'XRP',
    networkId,
    payoutId: outflow.payoutId,
    attempt: 1,
    from: funds.from,
    sequence: funds.nonce,
    payment: payment.value,
    feeDrops,
    lastLedgerSequence,
  })
}

/** The tag stands beside the address, or inside it where there is no field for it: with a refund address. */
function paymentOf(
  { kind, address, tag, asset, units }: Outflow,
  spelling: Spelling,
): Outcome<XrpIntent['payment']> {
  if (kind === 'filler') {
    assert(units === 0n, 'a filler pays nothing')
    return accept(null)
  }
  assert(units > 0n, 'a payout pays something')
  const drops = toChainUnits(amountOf(asset, units))
  const place = parsePlace(address, spelling)
  if (!place.ok) return place
  if (tag === null) return accept({ to: place.value.account, tag: place.value.tag, drops })
  const tagged = parseTagged(address, tag, spelling)
  if (!tagged.ok) return tagged
  return accept({ to: tagged.value.address, tag: Number.parseInt(tagged.value.tag, 10), drops })
}

/**
 * The same payment under the same sequence, so that at most one of the attempts is ever in a ledger. An attempt whose
 * last ledger is over is outbid by nobody; one that may still wait in a queue takes a quarter more to be replaced
 * (https://xrpl.org/docs/concepts/transactions/transaction-queue).
 */
export function raise(
  { feeDropsMax }: Drafter,
  previous: Intent,
  bid: FeeBid,
): Outcome<XrpIntent, DraftRejection> {
  assert(previous.family === 'xrp' && bid.family === 'xrp', 'an XRP attempt follows an XRP attempt')
  const isOver = previous.lastLedgerSequence < bid.lastLedgerSequence - LEDGERS_TO_LIVE
  const least = isOver ? 0n : (previous.feeDrops * 5n + 3n) / 4n
  const feeDrops = larger(bid.feeDrops, least)
  if (feeDrops > feeDropsMax) {
    const message = `replacing the earlier attempt takes ${feeDrops} drops and the cap is ${feeDropsMax}`
    return refuse({ code: 'fee_cap', message })
  }
  const { lastLedgerSequence } = bid
  return accept({ ...previous, attempt: previous.attempt + 1, feeDrops, lastLedgerSequence })
}
