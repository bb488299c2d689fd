import { findOrder } from '../../db/orders.ts'
import { assetOf } from '../../domain/catalog/assets.ts'
import { chainFacts, isEvmChain } from '../../domain/catalog/networks.ts'
import { showAmount, toChainUnits } from '../../domain/money/amount.ts'
import { isOrderId } from '../../domain/orders/identifiers.ts'
import type { Order } from '../../domain/orders/order.ts'
import { type PaymentStyle, paymentUri, schemeOf } from '../../qr/index.ts'
import type { World } from '../world.ts'
import type { Desk } from './desk.ts'

/** What the QR of an order says (docs/api.md, QR images). */
export function paymentDesk(world: World): Pick<Desk, 'findPayment'> {
  return {
    findPayment: async (orderId) => {
      const order = isOrderId(orderId) ? await findOrder(world.db, orderId) : null
      if (order === null) return null
      const { asks, depositAddress: address } = order.terms
      const scheme = schemeOf(assetOf(asks.asset).network)
      const amountText = showAmount(asks, 'up')
      const inStyle = (style: PaymentStyle) => paymentUri({ scheme, address, amountText, style })
      return {
        address,
        uri: inStyle(ownStyle(world, order)),
        standardUri: inStyle(standardStyle(world, order)),
      }
    },
  }
}

/**
 * The interface's own form, which on Solana is Solana Pay's: to its wallets an amount without a token is one of SOL, and so
 * a thousand dollars of a token would be a thousand SOL.
 */
function ownStyle(world: World, order: Order): PaymentStyle {
  const { family } = chainFacts[assetOf(order.terms.from).chain]
  return family === 'solana' ? standardStyle(world, order) : { kind: 'default' }
}

/** The form that wallets of the order's network agreed on; the interface's own where they did not. */
function standardStyle(world: World, { terms }: Order): PaymentStyle {
  const { chain, isNative } = assetOf(terms.from)
  const { family } = chainFacts[chain]
  if (family === 'bitcoin') return { kind: 'bip21' }
  if (family === 'eos' && terms.depositTag !== null) return { kind: 'memo', memo: terms.depositTag }
  const contract = isNative ? null : world.tokens[terms.from]
  if (family === 'solana')
    return contract === undefined ? withoutContract : { kind: 'solana_pay', mint: contract }
  if (!isEvmChain(chain)) return { kind: 'default' }
  if (contract === undefined) return withoutContract
  return { kind: 'eip681', chainId: world.evmChainIds[chain], units: toChainUnits(terms.asks), contract }
}

/** A token that was listed when its order was made, and is not any more: an amount would be one of the chain's coin. */
const withoutContract: PaymentStyle = { kind: 'address' }
