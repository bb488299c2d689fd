import type { Order } from '../../domain/orders/order.ts'
import { type BooksStage, confirmDeposit, lookAt, mineDeposit, placeOrder, tell } from './books_stage.ts'

/** `key` is that of its deposit. */
export type PaidOrder = { readonly order: Order; readonly id: string; readonly key: string }

/** An order of a hundredth of a bitcoin for one ether, whose deposit is final. */
export async function paidOrder(stage: BooksStage): Promise<PaidOrder> {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  const key = await mineDeposit(stage, order, 1_000_000n, 100)
  await confirmDeposit(stage, order, key)
  return { order, id: order.terms.id, key }
}

/** The same, whose payout is planned. */
export async function pricedOrder(stage: BooksStage): Promise<PaidOrder> {
  const paid = await paidOrder(stage)
  await tell(stage, paid.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  await lookAt(stage, 'BTC', 100)
  return paid
}
