import { chainFacts, isNetworkId, networkChains } from '../catalog/networks.ts'
import type { InstantMs } from '../time.ts'
import type { EmergencyReason, OrderStatus } from './order.ts'
import { howPaid, type OrderToPay, type ToSend } from './what_to_send.ts'

/** What mails and pages tell people where the interface has codes. */
export function statusWords(
  { status, expires_at }: Pick<OrderToPay, 'status' | 'expires_at'>,
  nowMs: InstantMs,
): string {
  return status === 'NEW' && nowMs >= expires_at
    ? 'looking whether it was paid in time'
    : wordsOfStatus[status]
}

const wordsOfStatus: Readonly<Record<OrderStatus, string>> = {
  NEW: 'waiting for your deposit',
  PENDING: 'waiting for the network to confirm the deposit',
  EXCHANGE: 'being exchanged',
  WITHDRAW: 'the payout is on its way',
  DONE: 'completed',
  EXPIRED: 'expired without a payment in time',
  EMERGENCY: 'stopped until somebody decides',
  REFUND: 'the refund is on its way',
  REFUNDED: 'refunded',
}

export const reasonWords: Readonly<Record<EmergencyReason, string>> = {
  UNDERPAID: 'Less was received than the order asks for.',
  OVERPAID: 'More was received than the order asks for.',
  LATE_DEPOSIT: 'The payment came too late for the order.',
  RATE_SLIPPAGE: 'The rate has fallen further below the quote than was agreed.',
  // Also for want of a reserve, of a price, or of ours that is too little; and after a refund.
  NETWORK_PROBLEM: 'The payout or refund could not be made: a network, or this service, was not able to.',
  // Not always the last one: after a reorganisation it is said of what had failed before.
  DESTINATION_PROBLEM:
    'A payment of the order could not be made to its address (the destination, or the refund address): the same choice may fail again, and a failed attempt may cost its network fee.',
}

/** What to do with an order that has expired. */
export const expiredWords =
  'Do not send anything to its deposit address any more; make a new order. If you have sent it already, it is not lost: when it arrives, the order goes on or you are asked. For another currency or network ask the operator of this service.'

type PlaceToPay = {
  readonly deposit_address: string
  readonly deposit_account?: string
  readonly deposit_tag: string | null
}

/** Where the address carries the tag, whoever pays needs one or the other: the address, or account and tag. */
export function isAccountApart(place: PlaceToPay): boolean {
  const { deposit_address: address, deposit_account: account, deposit_tag: tag } = place
  return account !== undefined && account !== address && tag !== null
}

function placeWords(place: PlaceToPay): string {
  const { deposit_address: address, deposit_account: account, deposit_tag: tag } = place
  if (isAccountApart(place))
    return `${address} (or, where your wallet asks for account and tag or memo, to ${account} with ${tag})`
  return tag === null ? address : `${address} with the tag or memo ${tag}`
}

type OrderInWords = OrderToPay &
  PlaceToPay & { readonly deposit_currency: string; readonly deposit_network: string }

/** What a payment that was seen means for its order, which waits. `expiredAt` is as it is shown. */
export function paymentWords(order: OrderInWords, toSend: ToSend, expiredAt: string): string {
  const { deposit_received: received, deposit_amount: asked, deposit_currency: currency } = order
  if (howPaid(order) === 'more') return overpaidWords
  const soFar = `So far ${received} of ${asked} ${currency} was seen.`
  if (toSend.kind === 'rest')
    return `${soFar} Send the remaining ${restWords(order, toSend.amount)} before ${expiredAt} to ${placeWords(order)}, or the order stops and you are asked. If you have sent it already, do not send it again: the order's page shows what has come.`
  if (toSend.kind === 'too_late')
    return `${soFar} ${timeUpWords(expiredAt)} Unless the rest was sent in time, the order stops and you are asked.`
  if (order.is_deposit_late) return lateWords
  return 'Your payment was seen. It is exchanged when the network has confirmed it; you need not do anything.'
}

/** Of an order that waits. */
export const overpaidWords =
  'More was seen than the order asks for: when the network has confirmed it, the order stops and you are asked.'

/** Of an order that waits, to which all has come that was asked. */
export const lateWords =
  'All that the order asks for was seen, but not all of it came in time: when the network has confirmed it, the order stops and you are asked.'

/** What still lets an order go on that has stopped; null: nothing but a choice. */
export function goesOnWords(order: OrderInWords, toSend: ToSend, expiredAt: string): string | null {
  if (order.status !== 'EMERGENCY' || (toSend.kind !== 'all' && toSend.kind !== 'rest')) return null
  return `If the remaining ${restWords(order, toSend.amount)} comes to ${placeWords(order)} before ${expiredAt}, the order goes on by itself.`
}

function restWords({ deposit_currency, deposit_network }: OrderInWords, rest: string): string {
  return `${rest} ${deposit_currency} on ${showNetwork(deposit_network)}`
}

/** Of an order that may still have been paid, although nothing more is to be sent to it. `expiredAt`: as it is shown. */
export function timeUpWords(expiredAt: string): string {
  return `The time to pay it ended at ${expiredAt}: send nothing any more. What you have sent already is not lost.`
}

/** Of an order whose deposits count no more: what comes besides is unclaimed. */
export const unclaimedWords =
  'Send nothing more to its deposit address. What came there besides is kept for its sender: ask the operator of this service, and name the order and the transaction.'

/** Beside the rest that is to be sent: a rest that is dust shows when all of it is in blocks, and not before. */
export const sentAlreadyWords =
  'If you have sent the rest already, do not send it again: it may show only when the network has all of it in blocks.'

/** Of an order to which all has come that was asked, or more. */
export const sendNothingWords = 'Send nothing more to its deposit address.'

/** Where a refund goes: to the address that the order has, if any, unless another one comes with the choice. */
export function refundPlaceWords(refundAddress: string | null): string {
  return refundAddress === null
    ? 'an address that you name as refund_address'
    : `${refundAddress}, or another that you name as refund_address`
}

/** `ERC20 (Ethereum)`; a chain itself by its name: `Bitcoin`. */
export function showNetwork(network: string): string {
  if (!isNetworkId(network)) return network
  const chain = networkChains[network]
  const { name } = chainFacts[chain]
  return network === chain ? name : `${network} (${name})`
}
