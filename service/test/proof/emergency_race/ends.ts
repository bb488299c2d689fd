import type { CreatedOrder, Order } from '@cambist/sdk'
import { findAsset } from '../../../src/domain/catalog/assets.ts'
import type { CurrencyCode } from '../../../src/domain/catalog/currencies.ts'
import type { NetworkId } from '../../../src/domain/catalog/networks.ts'
import { defaultPolicy } from '../../../src/engine/default_policy.ts'
import { chainUnits } from '../../harness/amounts.ts'

export type Action = 'continue' | 'recalculate' | 'refund'

type Asset = { readonly currency: CurrencyCode; readonly network: NetworkId }

/** An order at a fixed rate that was paid a half, what was taken of the choices that its customer was offered, and what came of it. */
export type RaceEnd = {
  readonly order: Pick<
    CreatedOrder,
    'receive_currency' | 'receive_network' | 'receive_amount' | 'fee' | 'network_fee'
  >
  /** What it was paid in, and how much that was. */
  readonly paidIn: Asset & { readonly amount: number }
  readonly offers: NonNullable<Order['emergency']>['options']
  readonly action: Action
  readonly end: Pick<Order, 'status' | 'receive_final_amount' | 'network_fee' | 'refund'>
  /** What the destination and the refund address hold, in chain units. */
  readonly arrived: bigint
  readonly returned: bigint
}

/**
 * Prices stand still. What `continue` pays is half of what was promised; the others are offered less what the network costs, which
 * may change until somebody chooses: what it came to is shown at the end, and what is paid follows from it to the unit.
 */
export function findWrongEnd(one: RaceEnd): string[] {
  const { action, end, arrived, returned } = one
  const status = action === 'refund' ? 'REFUNDED' : 'DONE'
  const wrong = [
    ...(end.status === status ? [] : [`it is ${end.status}`]),
    ...(action === 'refund' ? same('arrived', arrived, 0n) : same('returned', returned, 0n)),
    ...(action === 'refund' ? judgeRefund(one) : judgePayout(one)),
  ]
  return wrong.map((what) => `${action}: ${what}`)
}

function judgePayout({ order, offers, action, end, arrived }: RaceEnd): string[] {
  const to = { currency: order.receive_currency, network: order.receive_network } as Asset
  const units = (amount: number | undefined) => chainUnits(amount ?? 0, to.currency, to.network)
  const shown = unitShown(to)
  const isShown = same('arrived', arrived, units(end.receive_final_amount))
  if (action === 'continue') {
    const half = (units(order.receive_amount) / 2n / shown) * shown
    return [
      ...isShown,
      ...same('arrived', arrived, half),
      ...same('offered', units(offers.continue?.receive_amount), half),
    ]
  }
  const cost = units(end.network_fee)
  const said = units(order.network_fee)
  const half = (units(order.receive_amount) + units(order.fee) + said) / 2n
  const due = ((half - cost) * WHOLE_BASIS_POINTS) / (WHOLE_BASIS_POINTS + defaultPolicy.fees.fixed)
  return [
    ...isShown,
    ...judgeCost(cost, said),
    ...around('arrived', arrived, due, ROUNDED_TIMES * shown),
    ...around('offered', units(offers.recalculate?.receive_amount), arrived, said),
  ]
}

function judgeRefund({ paidIn, offers, end, returned }: RaceEnd): string[] {
  const units = (amount: number | undefined) => chainUnits(amount ?? 0, paidIn.currency, paidIn.network)
  const { refund_amount: offered, network_fee: said } = offers.refund ?? {}
  const came = units(paidIn.amount)
  const cost = units(end.refund?.network_fee)
  return [
    ...same('returned', returned, units(end.refund?.amount)),
    ...same('returned', returned, came - cost),
    ...same('offered', units(offered), came - units(said)),
    ...judgeCost(cost, units(said)),
  ]
}

/** It is never nothing, and seldom more than was said. */
function judgeCost(cost: bigint, said: bigint): string[] {
  return cost > 0n && cost <= 2n * said ? [] : [`it cost ${cost}, and ${said} was said`]
}

const WHOLE_BASIS_POINTS = 10_000n

/** Four amounts are shown, each rounded, and half of three of them counts. */
const ROUNDED_TIMES = 3n

/** The least that the interface shows: of the 18 decimals that USDC has on BNB Smart Chain, 6. */
function unitShown({ currency, network }: Asset): bigint {
  const asset = findAsset(currency, network)
  if (asset === undefined) throw new Error(`${currency} does not travel on ${network}`)
  return 10n ** BigInt(asset.chainDecimals - asset.precision)
}

function same(what: string, is: bigint, should: bigint): string[] {
  return is === should ? [] : [`${what} ${is}, and that is ${should}`]
}

function around(what: string, is: bigint, should: bigint, tolerated: bigint): string[] {
  const isNear = should - tolerated <= is && is <= should + tolerated
  return isNear ? [] : [`${what} ${is}, and that is ${should}, or ${tolerated} more or less`]
}
