import type { CreatedOrder } from '@cambist/sdk'
import { type AssetId, assetOf } from '../../../src/domain/catalog/assets.ts'
import { chainUnits } from '../../harness/amounts.ts'
import type { Customer, Offers } from './customers.ts'

/** What has to arrive at an address, in chain units. */
type Span = { readonly least: bigint; readonly most: bigint }

export type Due = { readonly payout: Span; readonly refund: Span }

const NOTHING: Span = { least: 0n, most: 0n }
const NONE: Due = { payout: NOTHING, refund: NOTHING }

/**
 * What a customer has coming, by what was shown when the order was created and before he chose; one of several, when he made
 * several choices. The tables are not asked: whether the service believes the right thing is the question.
 */
export function duesOf(customer: Customer): readonly Due[] {
  const { story, order, offers } = customer
  if (order === null) return [NONE]
  switch (story) {
    case 'pays':
    case 'pays in two parts':
      return [pays(exactly(shown(customer.to, order.receive_amount)))]
    case 'loses the payment':
      return [NONE]
    case 'continues':
      return [exchanged(customer, order, offers?.continue ?? null)]
    case 'recalculates':
      return [exchanged(customer, order, offers?.recalculate ?? null)]
    case 'takes back':
      return [returned(customer, offers)]
    case 'wants both':
      return [exchanged(customer, order, offers?.continue ?? null), returned(customer, offers)]
  }
}

/**
 * At the rate of the order the part of what was promised that the payment is of what was asked, to the unit. At the rate of
 * the moment prices are the same, because they never move here: all that differs is that the payout's cost is taken off once,
 * whatever was paid, and that it may have changed, also while somebody was choosing.
 */
function exchanged(
  { from, to, amount, paid }: Customer,
  { receive_amount, rate, network_fee }: CreatedOrder,
  offer: Offers['continue'],
): Due {
  if (offer === null) return NONE
  const asked = shown(from, amount)
  const came = sumOf(paid)
  const partOf = (units: bigint) => roundDown(to, (units * came) / asked)
  const promised = partOf(shown(to, receive_amount))
  const offered = shown(to, offer.receive_amount)
  if (offer.rate === rate) return pays(both(exactly(offered), exactly(promised)))
  const cost = shown(to, network_fee)
  const atMarket = { least: (promised * 9n) / 10n, most: promised + partOf(cost) + unitOf(to) }
  return pays(both(around(offered, cost), atMarket))
}

/** All that was paid, less what sending it back costs: what was said, and never more than a tenth. */
function returned({ from, paid }: Customer, offers: Offers | null): Due {
  const offer = offers?.refund ?? null
  if (offer === null) return NONE
  const came = sumOf(paid)
  const offered = shown(from, offer.refund_amount)
  const atCost = { least: (came * 9n) / 10n, most: came }
  return { payout: NOTHING, refund: both(around(offered, shown(from, offer.network_fee)), atCost) }
}

function sumOf(paid: Customer['paid']): bigint {
  return paid.reduce((sum, { units }) => sum + units, 0n)
}

function pays(payout: Span): Due {
  return { payout, refund: NOTHING }
}

function exactly(units: bigint): Span {
  return { least: units, most: units }
}

function around(units: bigint, tolerated: bigint): Span {
  return { least: units - tolerated, most: units + tolerated }
}

/** Where they contradict one another nothing is right. */
function both(one: Span, other: Span): Span {
  return {
    least: one.least > other.least ? one.least : other.least,
    most: one.most < other.most ? one.most : other.most,
  }
}

function shown(asset: AssetId, amount: number | string): bigint {
  const { currency, network } = assetOf(asset)
  return chainUnits(amount, currency, network)
}

/** The least that the interface shows. */
function unitOf(asset: AssetId): bigint {
  const { chainDecimals, precision } = assetOf(asset)
  return 10n ** BigInt(chainDecimals - precision)
}

function roundDown(asset: AssetId, units: bigint): bigint {
  return units - (units % unitOf(asset))
}
