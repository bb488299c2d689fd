import { chainFacts, isNetworkId, networkChains } from '../catalog/networks.ts'
import type { InstantMs } from '../time.ts'
import type { EmergencyReason, OrderStatus } from './order.ts'
import type { OrderToPay } from './what_to_send.ts'

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
  EXPIRED: 'expired without a payment',
  EMERGENCY: 'stopped until somebody decides',
  REFUND: 'the refund is on its way',
  REFUNDED: 'refunded',
}

export const reasonWords: Readonly<Record<EmergencyReason, string>> = {
  UNDERPAID: 'Less was received than the order asks for.',
  OVERPAID: 'More was received than the order asks for.',
  LATE_DEPOSIT: 'The payment came too late for the order.',
  RATE_SLIPPAGE: 'The rate has fallen further below the quote than was agreed.',
  NETWORK_PROBLEM: 'A network has had trouble for too long.',
  DESTINATION_PROBLEM: 'The destination cannot be paid.',
}

/** What to do with an order that has expired. */
export const expiredWords =
  'Do not send anything to its deposit address any more; make a new order. If you have sent it already, it is not lost: when it arrives, you are asked what to do with it.'

/** Of an order that may still have been paid, although nothing more is to be sent to it. `expiredAt`: as it is shown. */
export function timeUpWords(expiredAt: string): string {
  return `The time to pay it ended at ${expiredAt}: send nothing any more. What you have sent already is not lost.`
}

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
