import type { Asset } from '@stellar/stellar-sdk/base'
import type { Draft } from '../simulated/state.ts'
import { type LedgerEntry, type OfferEntry, offerKey, parseAmount, readTrustLine } from './entries.ts'
import { give, holdingOf, own, take } from './holdings.ts'
import type { Of, Scene } from './operation.ts'
import type { Claim, Done } from './results.ts'

const INT32_MAX = 2n ** 31n - 1n
/** Prices are fractions of two small integers; here always so many ten-millionths. */
const PRICE_UNIT = 10_000_000n

export type Fixed = { readonly spend: bigint } | { readonly receive: bigint }
export type Deal =
  | { readonly code: string }
  | { readonly spent: bigint; readonly received: bigint; readonly claims: readonly Claim[] }
type Sides = { readonly source: string; readonly selling: Asset; readonly buying: Asset }

/** Old offers cannot be changed here: they are there so that a path payment leads somewhere. */
export function isNewOffer({ offerId, amount, price, selling, buying }: Of<'manageSellOffer'>): boolean {
  const isPriced =
    /^\d+(\.\d{1,7})?$/.test(price) && parseAmount(price) > 0n && parseAmount(price) <= INT32_MAX
  return offerId === '0' && parseAmount(amount) > 0n && isPriced && !selling.equals(buying)
}

/** Is not crossed with the offers that are there. */
export function makeOffer(operation: Of<'manageSellOffer'>, { draft, source, height }: Scene): Done {
  const { selling, buying, amount, price } = operation
  if (!isHeld(draft, source, selling)) return { code: 'op_sell_no_trust' }
  if (!isHeld(draft, source, buying)) return { code: 'op_buy_no_trust' }
  if (holdingOf(draft, source, selling) < parseAmount(amount)) return { code: 'op_underfunded' }
  if (!own(draft, source, 1)) return { code: 'op_low_reserve' }
  const offer: OfferEntry = {
    type: 'offer',
    id: BigInt(draft.keys('offer:').length + 1),
    seller: source,
    selling: String(selling),
    buying: String(buying),
    amount: parseAmount(amount),
    priceN: Number(parseAmount(price)),
    priceD: Number(PRICE_UNIT),
    ledger: height,
  }
  draft.set(offerKey(offer.id), offer)
  return { code: 'op_success', offer }
}

function isHeld(draft: Draft<LedgerEntry>, id: string, asset: Asset): boolean {
  return asset.isNative() || asset.issuer === id || readTrustLine(draft, id, asset) !== undefined
}

/** With the offers that are there, the cheapest first. Their sellers are paid; the source is not yet. */
export function trade(draft: Draft<LedgerEntry>, { source, selling, buying }: Sides, fixed: Fixed): Deal {
  let [spent, received] = [0n, 0n]
  const claims: Claim[] = []
  const isDone = () => ('spend' in fixed ? spent === fixed.spend : received === fixed.receive)
  for (const offer of offersOf(draft, selling, buying)) {
    if (isDone()) break
    if (offer.seller === source) return { code: 'op_cross_self' }
    const [n, d] = [BigInt(offer.priceN), BigInt(offer.priceD)]
    const held = holdingOf(draft, offer.seller, selling)
    const onOffer = offer.amount < held ? offer.amount : held
    const wanted = 'spend' in fixed ? ((fixed.spend - spent) * d) / n : fixed.receive - received
    const sold = wanted < onOffer ? wanted : onOffer
    const paid = 'spend' in fixed && wanted <= onOffer ? fixed.spend - spent : (sold * n + d - 1n) / d
    const wrong = take(draft, offer.seller, selling, sold) ?? give(draft, offer.seller, buying, paid)
    if (wrong !== undefined || sold === 0n) continue
    shrink(draft, offer, sold)
    claims.push({ offer, sold, paid })
    spent += paid
    received += sold
  }
  return isDone() ? { spent, received, claims } : { code: 'op_too_few_offers' }
}

function offersOf(draft: Draft<LedgerEntry>, selling: Asset, buying: Asset): OfferEntry[] {
  const offers = draft.keys('offer:').map((key) => draft.get(key) as OfferEntry)
  return offers
    .filter((offer) => offer.amount > 0n)
    .filter((offer) => offer.selling === String(selling) && offer.buying === String(buying))
    .sort((one, other) => one.priceN - other.priceN || Number(one.id - other.id))
}

/** One that is bought up stays, as nothing: so no later offer gets its number. */
function shrink(draft: Draft<LedgerEntry>, offer: OfferEntry, sold: bigint): void {
  const amount = offer.amount - sold
  draft.set(offerKey(offer.id), { ...offer, amount })
  if (amount === 0n) own(draft, offer.seller, -1)
}
