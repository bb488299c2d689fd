import { chainFacts, isNetworkId, networkChains } from '../catalog/networks.ts'
import type { EmergencyReason, OrderStatus } from './order.ts'

/** What mails and pages tell people where the interface has codes. */
export const statusWords: Readonly<Record<OrderStatus, string>> = {
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

/**
 * Whether money is still to be sent to an order. In EMERGENCY only the rest of what it asks for lets it go on, and only where nothing else
 * is wrong (`emergencyState` in `deposits.ts`): anything more is only more to decide about, and after that it is unclaimed.
 */
export function asksForMoney(status: OrderStatus, reasons: readonly EmergencyReason[]): boolean {
  if (status !== 'EMERGENCY') return status === 'NEW' || status === 'PENDING'
  const [reason, ...others] = reasons
  return reason === 'UNDERPAID' && others.length === 0
}

/**
 * Whether the amount of an order is what its customer is going to receive: not beside a refund or without a payment, and in EMERGENCY
 * what would be paid stands with each action, where there is any.
 */
export function promisesPayout(status: OrderStatus): boolean {
  return !withoutPayout.includes(status)
}

const withoutPayout: readonly OrderStatus[] = ['EXPIRED', 'EMERGENCY', 'REFUND', 'REFUNDED']

/** What to do with an order that has expired. */
export const expiredWords =
  'Do not send anything to its deposit address any more; make a new order. If you have sent it already, it is not lost: when it arrives, you are asked what to do with it.'

/** `ERC20 (Ethereum)`; a chain itself by its name: `Bitcoin`. */
export function showNetwork(network: string): string {
  if (!isNetworkId(network)) return network
  const chain = networkChains[network]
  const { name } = chainFacts[chain]
  return network === chain ? name : `${network} (${name})`
}
