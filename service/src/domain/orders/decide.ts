import { unreachable } from '../assert.ts'
import type { InstantMs } from '../time.ts'
import { onActionChosen } from './action_chosen.ts'
import type { Decision } from './decision.ts'
import {
  onDepositConfirmed,
  onDepositSeen,
  onDepositUnmined,
  onDepositVanished,
  onOrderExpired,
} from './deposits.ts'
import { onExchangePriced, onExchangeStalled } from './exchange.ts'
import type { Fact } from './facts.ts'
import type { Order } from './order.ts'
import { onPayoutBroadcast, onPayoutConfirmed, onPayoutFailed } from './outflows.ts'

/**
 * What an order becomes when something has happened. Pure and total: every state answers every fact.
 * The transitions are the table of docs/api.md, Lifecycle.
 */
export function decide(order: Order, fact: Fact, nowMs: InstantMs): Decision {
  switch (fact.kind) {
    case 'DepositSeen':
      return onDepositSeen(order, fact, nowMs)
    case 'DepositUnmined':
      return onDepositUnmined(order, fact.key, nowMs)
    case 'DepositVanished':
      return onDepositVanished(order, fact.key, nowMs)
    case 'DepositConfirmed':
      return onDepositConfirmed(order, fact.key, nowMs)
    case 'OrderExpired':
      return onOrderExpired(order, fact.atMs, nowMs)
    case 'ExchangePriced':
      return onExchangePriced(order, fact, nowMs)
    case 'ExchangeStalled':
      return onExchangeStalled(order, fact, nowMs)
    case 'PayoutBroadcast':
      return onPayoutBroadcast(order, fact, nowMs)
    case 'PayoutConfirmed':
      return onPayoutConfirmed(order, fact, nowMs)
    case 'PayoutFailed':
      return onPayoutFailed(order, fact, nowMs)
    case 'ActionChosen':
      return onActionChosen(order, fact, nowMs)
    default:
      return unreachable(fact)
  }
}
