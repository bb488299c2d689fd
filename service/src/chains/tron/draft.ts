import { createHash } from 'node:crypto'
import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { Intent, Outflow, TronIntent } from '../../domain/payouts/intent.ts'
import { DAY_MS } from '../../domain/time.ts'
import type { DraftRejection, FeeBid, Funds } from '../chain.ts'
import { base58Of } from './address.ts'

export type Drafter = {
  /** The contract of a token asset in hex, or null for TRX; throws for an asset of another chain. */
  readonly contractOf: (asset: AssetId) => string | null
  readonly parseAddress: (text: string) => Outcome<string>
}

export function draft(
  { contractOf, parseAddress }: Drafter,
  outflow: Outflow,
  bid: FeeBid,
  funds: Funds,
): Outcome<TronIntent, DraftRejection> {
  assert(bid.family === 'tron' && funds.model === 'timed', 'a TRON payout has a TRON bid and no nonce')
  assert(
    outflow.kind !== 'filler' && outflow.units > 0n,
    'nothing waits for a filler, and a payout pays something',
  )
  const to = parseAddress(outflow.address)
  if (!to.ok) return refuse({ code: 'destination', message: to.rejection.message })
  const contract = contractOf(outflow.asset)
  const paid = payable(outflow, contract, bid, funds)
  if (!paid.ok) return paid
  const { payoutId } = outflow
  return accept({
    family: 'tron',
    chain: 'TRX',
    payoutId,
    attempt: 1,
    from: funds.from,
    to: to.value,
    token: contract === null ? null : base58Of(contract),
    ...paid.value,
    ...lifeOf(bid, payoutId, 1),
  })
}

type TronBid = FeeBid & { readonly family: 'tron' }
type TimedFunds = Funds & { readonly model: 'timed' }

/** Out of a deposit address TRX goes whole, less its cost; a token's cost has to be there beside it. */
function payable(
  outflow: Outflow,
  contract: string | null,
  { energySun, feeLimitSun, otherSun }: TronBid,
  { held }: TimedFunds,
): Outcome<Pick<TronIntent, 'units' | 'feeLimitSun'>, DraftRejection> {
  const units = toChainUnits(amountOf(outflow.asset, outflow.units))
  if (outflow.from === undefined) return accept({ units, feeLimitSun })
  assert(held !== undefined, 'whoever drafts a sweep says what its address holds')
  const left = held - otherSun
  if (contract === null) {
    return left > 0n
      ? accept({ units: left, feeLimitSun })
      : shortOf(`${held} sun are not worth their own cost`)
  }
  if (left < energySun)
    return shortOf(`${held} sun do not pay for a transfer that takes ${energySun + otherSun}`)
  return accept({ units, feeLimitSun: left < feeLimitSun ? left : feeLimitSun })
}

function shortOf(message: string): Outcome<never, DraftRejection> {
  return refuse({ code: 'funds', message })
}

/**
 * The same payment once more, in a time of its own: it refers to a block that no earlier attempt is valid after. Whether the
 * earlier one was in a block before that is `isOver`'s to say.
 */
export function raise(previous: Intent, bid: FeeBid): Outcome<TronIntent, DraftRejection> {
  assert(previous.family === 'tron' && bid.family === 'tron', 'a TRON attempt follows a TRON attempt')
  if (bid.reference.timeMs < previous.expirationMs)
    return refuse({ code: 'network', message: 'the earlier attempt may still get into a block' })
  const attempt = previous.attempt + 1
  const { feeLimitSun } = bid
  return accept({ ...previous, attempt, feeLimitSun, ...lifeOf(bid, previous.payoutId, attempt) })
}

/** The timestamp tells apart what would be the same bytes: two equal payments that are drafted at one moment. */
function lifeOf({ reference, expirationMs }: TronBid, payoutId: string, attempt: number) {
  const digest = createHash('sha256').update(`${payoutId}#${attempt}`).digest()
  return { reference, expirationMs, timestampMs: expirationMs - (digest.readUInt32BE() % DAY_MS) }
}
