import type { RouteOptions } from 'fastify'
import { secondText } from '../../domain/instant_text.ts'
import { isOrderId, isShortId } from '../../domain/orders/identifiers.ts'
import {
  expiredWords,
  goesOnWords,
  isAccountApart,
  lateWords,
  overpaidWords,
  reasonWords,
  refundPlaceWords,
  sendNothingWords,
  sentAlreadyWords,
  showNetwork,
  statusWords,
  timeUpWords,
  unclaimedWords,
} from '../../domain/orders/order_words.ts'
import { howPaid, promisesPayout, type ToSend, whatToSend } from '../../domain/orders/what_to_send.ts'
import type { InstantMs } from '../../domain/time.ts'
import type { EmergencyOptions, EmergencyView, OrderView } from '../../engine/desks/desk.ts'
import { readLinkToken } from '../auth/order_token.ts'
import { admitAnonymous, parameterOf, type RouteContext } from '../route_context.ts'
import { answerPage, type Html, html } from './html.ts'

/** An order for whoever has its link: what mails lead to. It shows, and does nothing. */
export function orderPageRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'GET',
    url: '/order/:order_id',
    schema: { hide: true },
    async handler(request, reply) {
      if (!admitAnonymous(context, request, reply)) return
      const token = readLinkToken(request)
      const id = parameterOf(request, 'order_id')
      const isPossible = token !== null && (isOrderId(id) || isShortId(id))
      const order = isPossible ? await parts.desk.findOrder(id, { kind: 'token', token }) : null
      if (order === null) return answerPage(answers, request, reply, 404, unknownOrder)
      answerPage(answers, request, reply, 200, {
        title: `Order ${order.order_id}`,
        body: orderBody(order, parts.baseUrl(), parts.clock.nowMs()),
      })
    },
  }
}

const unknownOrder = {
  title: 'No such order',
  body: html`<h1>There is no such order</h1>
<p>Or the link is not whole: open it from the mail again.</p>`,
}

function orderBody(order: OrderView, baseUrl: string, nowMs: InstantMs): Html {
  const { emergency, refund } = order
  const toSend = whatToSend(order, nowMs)
  const asks = toSend.kind === 'all' || toSend.kind === 'rest'
  return html`<h1>Order ${order.order_id}</h1>
<dl>
${row('Status', `${order.status}: ${statusWords(order, nowMs)}`)}
${amountRows(order, toSend)}
${placeRows(order, toSend)}
${row('Received', `${order.deposit_received} ${order.deposit_currency}`)}
${row('Confirmations', `${order.deposit_confirmations} of ${order.deposit_required_confirmations}`)}
${row('Deposit', order.deposit_tx_hash)}
${promisesPayout(order, nowMs) ? payoutRows(order) : destinationRows('Destination', `${order.destination} for ${payoutOf(order)}`, order)}
${row('Payout', order.withdraw_tx_hash)}
${row('Created', showTime(order.created_at))}
${asks ? row('Pay before', showTime(order.expires_at)) : ''}
${row('Completed', order.completed_at === null ? null : showTime(order.completed_at))}
${refund === undefined ? '' : row('Refund', `${refund.amount} ${refund.currency} on ${showNetwork(refund.network)} to ${refund.address}`)}
${refund === undefined ? '' : row('Refund sent', refund.tx_hash)}
</dl>
${noMorePart(order, toSend)}
${emergency === undefined ? '' : emergencyPart(order, emergency, toSend, baseUrl)}
<p>This page shows the order as it is now; load it again to see what changed.</p>`
}

function amountRows(order: OrderView, toSend: ToSend): Html {
  const inAll = (amount: string) =>
    `${amount} ${order.deposit_currency} on ${showNetwork(order.deposit_network)}`
  if (toSend.kind === 'all') return row('You send', inAll(toSend.amount))
  return html`${row('It asked for', inAll(order.deposit_amount))}
${toSend.kind === 'rest' ? row('Still to send', inAll(toSend.amount)) : ''}`
}

function placeRows(order: OrderView, { kind }: ToSend): Html {
  if (order.status === 'EXPIRED') return html``
  return kind === 'all' || kind === 'rest' ? placeToPayRows(order) : placeOfDepositRows(order)
}

/** Why nothing is to be sent, where that is so. */
function noMorePart(order: OrderView, { kind }: ToSend): Html | '' {
  if (kind === 'too_late') return html`<p>${timeUpWords(showTime(order.expires_at))}</p>`
  if (kind === 'rest') return html`<p>${sentAlreadyWords}</p>`
  if (kind !== 'nothing') return ''
  switch (order.status) {
    case 'NEW':
      return ''
    case 'PENDING':
      return html`<p>${whyItStops(order)}${sendNothingWords}</p>`
    case 'EMERGENCY':
      return html`<p>${sendNothingWords}</p>`
    case 'EXPIRED':
      return expiredPart(order)
    case 'EXCHANGE':
    case 'WITHDRAW':
    case 'DONE':
    case 'REFUND':
    case 'REFUNDED':
      return html`<p>${unclaimedWords}</p>`
  }
}

/** Of an order that waits, to which all has come that was asked, or more. */
function whyItStops(order: OrderView): string {
  if (howPaid(order) === 'more') return `${overpaidWords} `
  return order.is_deposit_late ? `${lateWords} ` : ''
}

function expiredPart(order: OrderView): Html {
  return html`<p>The order has expired: the network has no payment to it from before ${showTime(order.expires_at)}. ${expiredWords}</p>`
}

/** Where an order was to be paid, in words that cannot be read as asking for another payment. */
function placeOfDepositRows({ deposit_address, deposit_tag }: OrderView): Html {
  return html`${row('Deposit address', deposit_address)}
${row('Its tag or memo', deposit_tag)}`
}

function placeToPayRows(order: OrderView): Html {
  const { deposit_address: address, deposit_account: account = null, deposit_tag: tag } = order
  const isApart = isAccountApart(order)
  return html`${row('To', address)}
${isApart ? row('Or, where your wallet asks for account and tag, to', account) : ''}
${row(isApart ? 'With the tag or memo' : 'Tag or memo', tag)}`
}

function payoutRows(order: OrderView): Html {
  return html`${row('You receive', `${order.receive_final_amount} ${payoutOf(order)}`)}
${destinationRows('At', order.destination, order)}`
}

function payoutOf({ receive_currency, receive_network }: OrderView): string {
  return `${receive_currency} on ${showNetwork(receive_network)}`
}

function destinationRows(name: string, says: string, { destination_tag }: OrderView): Html {
  return html`${row(name, says)}
${row('Its tag or memo', destination_tag)}`
}

function emergencyPart(
  order: OrderView,
  { reasons, options, are_options_known }: EmergencyView,
  toSend: ToSend,
  baseUrl: string,
): Html {
  const choices = [
    ...exchangeChoice('continue', 'Continue', order, options.continue, baseUrl),
    ...exchangeChoice('recalculate', 'Recalculate', order, options.recalculate, baseUrl),
    ...refundChoice(order, options.refund, baseUrl),
  ]
  const goesOn = goesOnWords(order, toSend, showTime(order.expires_at))
  return html`<h2>A decision is needed</h2>
<p>The order has stopped. ${reasons.map((reason) => reasonWords[reason]).join(' ')}</p>
${goesOn === null ? '' : html`<p>${goesOn}</p>`}
${choices.length === 0 ? '' : html`<p>Whoever has the account's API key chooses, with one signed request. The amounts are those of this moment.</p>`}
${whyMissing(choices.length, are_options_known)}
${choices}`
}

/** Nothing where what is shown is all that there is. */
function whyMissing(choices: number, areKnown: boolean): Html | '' {
  if (!areKnown) {
    return html`<p>It is not known at the moment what every action would pay: a price, a network or the reserve for it is not available. Load this page again later.</p>`
  }
  if (choices > 0) return ''
  return html`<p>At this moment there is nothing to choose: what was received is too little to be exchanged or sent back.</p>`
}

function exchangeChoice(
  action: 'continue' | 'recalculate',
  label: string,
  order: OrderView,
  option: EmergencyOptions['continue'],
  baseUrl: string,
): readonly Html[] {
  if (option === null) return []
  const says = `Exchanges what was received and confirmed, and pays ${option.receive_amount} ${payoutOf(order)}.`
  return [choice(action, label, says, requestFor(order, { action }, baseUrl))]
}

function refundChoice(
  order: OrderView,
  option: EmergencyOptions['refund'],
  baseUrl: string,
): readonly Html[] {
  if (option === null) return []
  const says = `Sends ${option.refund_amount} ${option.currency} back on ${showNetwork(option.network)}, to ${refundPlaceWords(order.refund_address)}.`
  const body = {
    action: 'refund',
    ...(!option.has_refund_address && { refund_address: '<your address>' }),
  }
  return [choice('refund', 'Refund', says, requestFor(order, body, baseUrl))]
}

function choice(action: string, label: string, says: string, request: string): Html {
  return html`<h2 id="${action}">${label}</h2>
<p>${says}</p>
<pre>${request}</pre>`
}

function requestFor(order: OrderView, body: object, baseUrl: string): string {
  return `POST ${baseUrl}/v1/order/${order.order_id}/emergency\n${JSON.stringify(body)}`
}

function row(name: string, value: string | null): Html {
  return value === null ? html`` : html`<dt>${name}</dt><dd>${value}</dd>`
}

function showTime(atMs: number): string {
  return `${secondText(atMs)} UTC`
}
