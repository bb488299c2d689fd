import { createHash } from 'node:crypto'
import { assert } from '../../domain/assert.ts'
import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { EosIntent, Intent, Outflow } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid, Funds } from '../chain.ts'
import { parsePlace, parseTagged } from './address.ts'
import type { EosSettings } from './settings.ts'

export function draft(
  { chainId, account }: Pick<EosSettings, 'chainId' | 'account'>,
  outflow: Outflow,
  bid: FeeBid,
  funds: Funds,
): Outcome<EosIntent, DraftRejection> {
  assert(bid.family === 'eos' && funds.model === 'timed', 'an EOS payout has an EOS bid and no nonce')
  assert(
    outflow.kind !== 'filler' && outflow.units > 0n,
    'nothing waits for a filler, and a payout pays something',
  )
  const payee = payeeOf(outflow)
  if (!payee.ok) return refuse({ code: 'destination', message: payee.rejection.message })
  const { payoutId } = outflow
  return accept({
    family: 'eos',
    chain: 'EOS',
    chainId,
    payoutId,
    attempt: 1,
    from: funds.from,
    account,
    payment: { ...payee.value, units: toChainUnits(amountOf(outflow.asset, outflow.units)) },
    ...lifeOf(bid, payoutId, 1),
  })
}

/** A refund has no tag of its own: its memo, if it needs one, stands behind the name. */
function payeeOf({ address, tag }: Outflow): Outcome<{ readonly to: string; readonly memo: string }> {
  if (tag !== null) {
    const tagged = parseTagged(address, tag)
    return tagged.ok ? accept({ to: tagged.value.address, memo: tagged.value.tag }) : tagged
  }
  const place = parsePlace(address)
  return place.ok ? accept({ to: place.value.account, memo: place.value.memo ?? '' }) : place
}

/**
 * The same payment once more, in a time of its own: it refers to a block that no earlier attempt is valid after. Whether the
 * earlier one was in a block before that is `isOver`'s to say.
 */
export function raise(previous: Intent, bid: FeeBid): Outcome<EosIntent, DraftRejection> {
  assert(previous.family === 'eos' && bid.family === 'eos', 'an EOS attempt follows an EOS attempt')
  if (bid.reference.timeMs < previous.expirationMs)
    return refuse({ code: 'network', message: 'the earlier attempt may still get into a block' })
  const attempt = previous.attempt + 1
  return accept({ ...previous, attempt, ...lifeOf(bid, previous.payoutId, attempt) })
}

type EosBid = FeeBid & { readonly family: 'eos' }

/** A transfer takes seventeen words, and nodes refuse 2^29 - 1 and more (`transaction_header::validate`). */
const NET_WORDS_LEAST = 1_000
const NET_WORDS_SPAN = 2 ** 28

/** The limit tells apart what would be the same bytes: two equal payments that are drafted at one moment. */
function lifeOf({ reference, expirationMs }: EosBid, payoutId: string, attempt: number) {
  const digest = createHash('sha256').update(`${payoutId}#${attempt}`).digest()
  const netWordsMax = NET_WORDS_LEAST + (digest.readUInt32BE() % NET_WORDS_SPAN)
  return { reference, expirationMs, netWordsMax }
}
