import { assetOf } from '../domain/catalog/assets.ts'
import { exactAmount, showAmount } from '../domain/money/amount.ts'
import { showRate } from '../domain/money/rate.ts'
import { shortIdOf } from '../domain/orders/identifiers.ts'
import { countedDeposits, type Order, receivedSoFar } from '../domain/orders/order.ts'
import { depositAccount } from './deposit_account.ts'
import type { EmergencyView, OrderView } from './desks/desk.ts'
import { emergencyOffers, type Offers } from './emergency_offers.ts'
import type { World } from './world.ts'

/** The order as its client sees it now (docs/api.md, Orders). */
export function viewOrder(order: Order, { market, chains }: Pick<World, 'market' | 'chains'>): OrderView {
  const { terms, state } = order
  const from = assetOf(terms.from)
  const to = assetOf(terms.to)
  const settlement = 'settlement' in state ? state.settlement : null
  const isRefund = state.status === 'REFUND' || state.status === 'REFUNDED'
  return {
    order_id: terms.id,
    short_id: shortIdOf(terms.id),
    status: state.status,
    deposit_address: terms.depositAddress,
    deposit_tag: terms.depositTag,
    ...(terms.depositTag !== null && depositAccount(chains, from.chain, terms.depositAddress)),
    deposit_currency: from.currency,
    deposit_network: from.network,
    deposit_amount: showAmount(terms.asks, 'up'),
    deposit_received: showAmount(receivedSoFar(order), 'down'),
    ...(terms.tolerance.units > 0n && { deposit_tolerance: exactAmount(terms.tolerance) }),
    ...(countedDeposits(order).some(({ isLate }) => isLate) && { is_deposit_late: true }),
    deposit_confirmations: confirmations(order, market.headHeight(from.chain)),
    deposit_required_confirmations: terms.requiredConfirmations,
    deposit_tx_hash: countedDeposits(order)[0]?.txHash ?? null,
    receive_currency: to.currency,
    receive_network: to.network,
    receive_amount: showAmount(terms.promises, 'down'),
    receive_final_amount: showAmount(settlement?.paid ?? terms.promises, 'down'),
    rate: showRate(settlement?.rate ?? terms.rate),
    rate_type: terms.rateType,
    fee: showAmount(settlement?.fee ?? terms.fee, 'up'),
    network_fee: showAmount(settlement?.networkFee ?? terms.networkFee, 'up'),
    destination: terms.destination,
    destination_tag: terms.destinationTag,
    refund_address: order.refundAddress,
    callback_url: terms.callbackUrl,
    withdraw_tx_hash: !isRefund && 'txHash' in state ? state.txHash : null,
    created_at: terms.createdAtMs,
    updated_at: order.updatedAtMs,
    expires_at: terms.expiresAtMs,
    completed_at: 'completedAtMs' in state ? state.completedAtMs : null,
    ...(state.status === 'EMERGENCY' && {
      emergency: { reasons: state.reasons, ...showOffers(order, emergencyOffers(order, market)) },
    }),
    ...(isRefund && {
      refund: {
        address: state.refund.address,
        amount: showAmount(state.refund.amount, 'down'),
        currency: from.currency,
        network: from.network,
        network_fee: showAmount(state.refund.networkFee, 'up'),
        tx_hash: state.txHash,
      },
    }),
  }
}

/**
 * Of the shallowest deposit, because it decides; never more than required, so that it does not change for ever. All that are required
 * are shown of what is confirmed only: where a network says itself what is final, a block may be as deep before and still go.
 */
function confirmations(order: Order, headHeight: number | null): number {
  const required = order.terms.requiredConfirmations
  const depths = countedDeposits(order).map(({ state, block }) => {
    if (state === 'confirmed') return required
    if (block === null || headHeight === null) return 0
    return Math.max(0, Math.min(required - 1, headHeight - block.height + 1))
  })
  return depths.length === 0 ? 0 : Math.min(...depths)
}

function showOffers(order: Order, offers: Offers): Omit<EmergencyView, 'reasons'> {
  const from = assetOf(order.terms.from)
  const exchange = (quote: Offers['continue']) =>
    quote && { receive_amount: showAmount(quote.to, 'down'), rate: showRate(quote.rate) }
  return {
    options: {
      continue: exchange(offers.continue),
      recalculate: exchange(offers.recalculate),
      refund: offers.refund && {
        refund_amount: showAmount(offers.refund.amount, 'down'),
        network_fee: showAmount(offers.refund.networkFee, 'up'),
        currency: from.currency,
        network: from.network,
        has_refund_address: order.refundAddress !== null,
      },
    },
    are_options_known: offers.areKnown,
  }
}
