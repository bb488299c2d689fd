import { assert } from '../../domain/assert.ts'
import type { BitcoinNetwork } from '../../domain/catalog/networks.ts'
import { toChainUnits } from '../../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { BitcoinIntent, Coin, Intent, Outflow } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid, Funds } from '../chain.ts'
import { type OutputKind, type ParsedAddress, parseAddress } from './addresses.ts'
import { isWithinTotal, refuseAboveTotal, selectCoins, totalOf } from './coin_selection.ts'
import { BITCOIN, type BitcoinSettings } from './settings.ts'
import { dustLimit, feeFor, highest, vbytesOf } from './sizes.ts'

/** A replacement pays for its own relay on top of what it replaces (BIP-125 rule 4); the usual node asks 1 sat/vB. */
const INCREMENTAL_MILLI_SAT_PER_VB = 1_000n

type Rules = Pick<BitcoinSettings, 'id' | 'network' | 'milliSatPerVbMax' | 'feeSatoshiMax'>

/** Attempt 1: the payment, the fee on top of it, and what is left back to us. */
export function draft(
  rules: Rules,
  outflow: Outflow,
  bid: FeeBid,
  funds: Funds,
): Outcome<BitcoinIntent, DraftRejection> {
  assert(bid.family === 'bitcoin' && funds.model === 'coins', 'bitcoin is paid by bitcoin bids and funds')
  if (outflow.kind === 'filler') return draftFiller(rules, outflow, bid, funds)
  const payable = parsePayment(rules.network, outflow)
  if (!payable.ok) return payable
  const rate = rateWithin(bid.milliSatPerVb, rules)
  if (!rate.ok) return rate
  assertOurs(rules.network, funds.coins)

  const { address, satoshi } = payable.value
  const selection = selectCoins(funds.coins, {
    satoshi,
    paidTo: address.kind,
    changeTo: kindOf(rules.network, funds.change.address),
    milliSatPerVb: rate.value,
    feeSatoshiMax: rules.feeSatoshiMax,
  })
  if (!selection.ok) return selection
  const { inputs, changeSatoshi, feeSatoshi } = selection.value
  return accept(
    checked({
      family: 'bitcoin',
      chain: rules.id,
      payoutId: outflow.payoutId,
      attempt: 1,
      inputs,
      payment: { address: address.canonical, satoshi },
      change: changeSatoshi === 0n ? null : { ...funds.change, satoshi: changeSatoshi },
      feeSatoshi,
    }),
  )
}

/**
 * All the coins of an outflow that cannot be sent, less the fee, back to us: mined, it excludes every attempt of that
 * outflow. It outbids them all, because a node may have one of them without having told us. Every attempt of its own
 * after the first spends the same coins for more.
 */
function draftFiller(
  rules: Rules,
  outflow: Outflow,
  bid: FeeBid & { readonly family: 'bitcoin' },
  { coins, outbids }: Funds & { readonly model: 'coins' },
): Outcome<BitcoinIntent, DraftRejection> {
  assert(outflow.units === 0n && outbids !== undefined, 'a filler pays what its coins hold')
  assertOurs(rules.network, coins)
  for (const { inputs } of outbids) {
    const isShared = inputs.some((input) => coins.some((coin) => isSameCoin(coin, input)))
    assert(coins.length === 0 || isShared, 'a filler shares a coin with all it excludes')
  }
  const vbytes = vbytesOf(coins.length, [kindOf(rules.network, outflow.address)])
  const least = outbids.reduce((most, { feeSatoshi }) => highest(most, feeSatoshi), 0n)
  const feeSatoshi = highest(
    feeFor(vbytes, bid.milliSatPerVb),
    least + feeFor(vbytes, INCREMENTAL_MILLI_SAT_PER_VB),
  )
  const satoshi = totalOf(coins) - feeSatoshi
  if (satoshi < dustLimit('wpkh')) {
    return refuse({
      code: 'funds',
      message: `${coins.length} coins do not cover a fee of ${feeSatoshi} satoshi`,
    })
  }
  if (feeSatoshi > feeFor(vbytes, rules.milliSatPerVbMax)) return refuseAboveCap(bid.milliSatPerVb, rules)
  if (!isWithinTotal(feeSatoshi, rules)) return refuseAboveTotal(feeSatoshi, rules)
  const own = outbids.filter(({ payoutId }) => payoutId === outflow.payoutId)
  return accept(
    checked({
      family: 'bitcoin',
      chain: rules.id,
      payoutId: outflow.payoutId,
      attempt: 1 + own.length,
      inputs: coins,
      payment: { address: outflow.address, satoshi },
      change: null,
      feeSatoshi,
    }),
  )
}

function isSameCoin(left: Coin, right: Coin): boolean {
  return left.txHash === right.txHash && left.index === right.index
}

/**
 * The same coins and the same payment for a higher fee, taken from the change: whichever of the attempts is mined
 * excludes the others, and the payment is made once.
 */
export function raise(rules: Rules, previous: Intent, bid: FeeBid): Outcome<BitcoinIntent, DraftRejection> {
  assert(previous.family === 'bitcoin' && bid.family === 'bitcoin', 'bitcoin is raised by bitcoin bids')
  const { inputs, payment, change } = previous
  if (change === null) {
    return refuse({ code: 'fee_cap', message: 'there is no change left to take a higher fee from' })
  }
  const paidTo = kindOf(rules.network, payment.address)
  const changeTo = kindOf(rules.network, change.address)
  const feeOver = (outputs: readonly OutputKind[]) => {
    const vbytes = vbytesOf(inputs.length, outputs)
    const least = previous.feeSatoshi + feeFor(vbytes, INCREMENTAL_MILLI_SAT_PER_VB)
    const feeSatoshi = highest(feeFor(vbytes, bid.milliSatPerVb), least)
    return { feeSatoshi, isCapped: feeSatoshi > feeFor(vbytes, rules.milliSatPerVbMax) }
  }
  const available = previous.feeSatoshi + change.satoshi
  const kept = feeOver([paidTo, changeTo])
  const bare = feeOver([paidTo])
  const rest = available - kept.feeSatoshi
  const next = { ...previous, attempt: previous.attempt + 1 }

  if (rest >= dustLimit(changeTo)) {
    if (kept.isCapped) return refuseAboveCap(bid.milliSatPerVb, rules)
    if (!isWithinTotal(kept.feeSatoshi, rules)) return refuseAboveTotal(kept.feeSatoshi, rules)
    return accept(checked({ ...next, change: { ...change, satoshi: rest }, feeSatoshi: kept.feeSatoshi }))
  }
  if (available < bare.feeSatoshi) {
    return refuse({ code: 'fee_cap', message: 'the change does not cover the higher fee' })
  }
  if (bare.isCapped) return refuseAboveCap(bid.milliSatPerVb, rules)
  if (!isWithinTotal(available, rules)) return refuseAboveTotal(available, rules)
  return accept(checked({ ...next, change: null, feeSatoshi: available }))
}

/** Whom and how much an outflow pays, when this chain can pay it at all. */
export function parsePayment(
  network: BitcoinNetwork,
  outflow: Outflow,
): Outcome<{ address: ParsedAddress; satoshi: bigint }, DraftRejection> {
  assert(outflow.asset === BITCOIN, `the bitcoin chain pays ${outflow.asset}`)
  const address = parseAddress(network, outflow.address)
  if (!address.ok) return refuse({ code: 'destination', message: address.rejection.message })
  const satoshi = toChainUnits(outflow)
  const dust = dustLimit(address.value.kind)
  if (satoshi < dust) {
    return refuse({
      code: 'destination',
      message: `${satoshi} satoshi are dust there: at least ${dust} can be paid`,
    })
  }
  return accept({ address: address.value, satoshi })
}

/** Above the cap nothing is bid: a payout that pays too little would be stuck where it can only be raised. */
export function rateWithin(
  milliSatPerVb: bigint,
  rules: Pick<Rules, 'milliSatPerVbMax'>,
): Outcome<bigint, DraftRejection> {
  return milliSatPerVb > rules.milliSatPerVbMax ? refuseAboveCap(milliSatPerVb, rules) : accept(milliSatPerVb)
}

function refuseAboveCap(milliSatPerVb: bigint, { milliSatPerVbMax }: Pick<Rules, 'milliSatPerVbMax'>) {
  const message = `a fee of ${milliSatPerVb} msat/vB or the step above the last attempt passes the cap of ${milliSatPerVbMax}`
  return refuse<DraftRejection>({ code: 'fee_cap', message })
}

function kindOf(network: BitcoinNetwork, address: string): OutputKind {
  const parsed = parseAddress(network, address)
  assert(parsed.ok, `${address} is a bitcoin ${network} address`)
  return parsed.value.kind
}

/** Sizes are those of P2WPKH inputs, the only ones we have keys for; a coin counted twice would be money invented. */
function assertOurs(network: BitcoinNetwork, coins: readonly Coin[]) {
  for (const { address } of coins) assert(kindOf(network, address) === 'wpkh', `${address} is P2WPKH`)
  const outpoints = new Set(coins.map(({ txHash, index }) => `${txHash}:${index}`))
  assert(outpoints.size === coins.length, 'every coin is given once')
}

function checked(intent: BitcoinIntent): BitcoinIntent {
  const total = totalOf(intent.inputs)
  const spent = intent.payment.satoshi + (intent.change?.satoshi ?? 0n) + intent.feeSatoshi
  assert(total === spent, `inputs of ${total} satoshi are payment, change and fee of ${spent}`)
  return intent
}
