import { currencies, isCurrencyCode } from '../../domain/catalog/currencies.ts'
import { depositUrl, type Explorers, transactionUrl } from '../../domain/catalog/explorers.ts'
import type { EmergencyOptionsInMail, OrderInMail } from '../../domain/notifications/mail_content.ts'
import {
  expiredWords,
  goesOnWords,
  isAccountApart,
  paymentWords,
  reasonWords,
  refundPlaceWords,
  showNetwork,
  statusWords,
} from '../../domain/orders/order_words.ts'
import { promisesPayout, whatToSend } from '../../domain/orders/what_to_send.ts'
import type { InstantMs } from '../../domain/time.ts'
import type { View } from './template.ts'

export type OrderLinks = {
  /** The page of an order, for whoever has the link. */
  readonly orderUrl: (orderId: string) => string
  readonly explorers: Explorers
}

/**
 * What the templates of an order's mails may say; the names are theirs. The order is as it was when its event happened, and what it asks
 * for as of now, when it is sent.
 */
export function orderView(order: OrderInMail, links: OrderLinks, nowMs: InstantMs): View {
  const { emergency, deposit_address: address, deposit_account: account, deposit_tag: tag } = order
  const isApart = isAccountApart(order)
  const expiresAt = showTime(order.expires_at)
  const toSend = whatToSend(order, nowMs)
  const goesOn = goesOnWords(order, toSend, expiresAt)
  const url = links.orderUrl(order.order_id)
  const actions = emergency === undefined ? [] : actionViews(order, emergency.options, url)
  return {
    order_id: order.order_id,
    status: order.status,
    status_words: statusWords(order, nowMs),
    ...sideView('deposit', order.deposit_currency, order.deposit_network),
    is_to_pay: order.status === 'NEW',
    deposit_amount: order.deposit_amount,
    deposit_received: /[1-9]/.test(order.deposit_received) ? { amount: order.deposit_received } : null,
    deposit_address: address,
    deposit_apart: isApart ? { account: account ?? address, tag } : null,
    deposit_tag: tag === null || isApart ? null : { tag },
    deposit_address_url: linkTo(depositUrl(links.explorers, order.deposit_network, address)),
    deposit_tx: transactionView(links, order.deposit_network, order.deposit_tx_hash),
    ...sideView('receive', order.receive_currency, order.receive_network),
    receives: promisesPayout(order, nowMs),
    receive_amount: order.receive_final_amount,
    destination: order.destination,
    destination_tag: order.destination_tag === null ? null : { tag: order.destination_tag },
    withdraw_tx: transactionView(links, order.receive_network, order.withdraw_tx_hash),
    rate: order.rate,
    rate_type: order.rate_type,
    expires_at: expiresAt,
    payment_words: paymentWords(order, toSend, expiresAt),
    goes_on: goesOn === null ? null : { text: goesOn },
    expired_words: expiredWords,
    order_url: url,
    is_refunded: order.status === 'REFUNDED',
    refund: refundView(order, links),
    reasons: emergency?.reasons.map((reason) => ({ text: reasonWords[reason] })) ?? [],
    has_reasons: (emergency?.reasons.length ?? 0) > 0,
    actions,
    has_actions: actions.length > 0,
    are_actions_known: emergency?.are_options_known === true,
  }
}

function sideView(side: 'deposit' | 'receive', currency: string, network: string): View {
  return {
    [`${side}_currency`]: currency,
    [`${side}_currency_name`]: isCurrencyCode(currency) ? currencies[currency].name : currency,
    [`${side}_network`]: showNetwork(network),
  }
}

function linkTo(url: string | null): View | null {
  return url === null ? null : { url }
}

function transactionView({ explorers }: OrderLinks, network: string, hash: string | null): View | null {
  return hash === null ? null : { hash, url: transactionUrl(explorers, network, hash) }
}

function refundView({ refund }: OrderInMail, links: OrderLinks): View | null {
  if (refund === undefined) return null
  const { amount, currency, network, address, tx_hash } = refund
  return {
    amount,
    currency,
    network: showNetwork(network),
    address,
    refund_tx: transactionView(links, network, tx_hash),
  }
}

function actionViews(order: OrderInMail, options: EmergencyOptionsInMail, url: string): View[] {
  const pays = (amount: string) =>
    `${amount} ${order.receive_currency} on ${showNetwork(order.receive_network)}`
  const { continue: goOn, recalculate, refund } = options
  return [
    ...(goOn === null
      ? []
      : [
          {
            label: 'Continue',
            says: `Exchange what was received and confirmed, and receive ${pays(goOn.receive_amount)}.`,
            url: `${url}#continue`,
          },
        ]),
    ...(recalculate === null
      ? []
      : [
          {
            label: 'Recalculate',
            says: `Exchange what was received and confirmed at the rate of the moment, and receive ${pays(recalculate.receive_amount)}.`,
            url: `${url}#recalculate`,
          },
        ]),
    ...(refund === null
      ? []
      : [
          {
            label: 'Refund',
            says: `Get ${refund.refund_amount} ${refund.currency} back on ${showNetwork(refund.network)}, at ${refundPlaceWords(order.refund_address)}.`,
            url: `${url}#refund`,
          },
        ]),
  ]
}

/** To the minute: `2026-11-22 09:30 UTC`. */
export function showTime(atMs: InstantMs): string {
  return `${new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
