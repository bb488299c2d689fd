import { type BooksStage, confirmDeposit, lookAt, mineDeposit, placeOrder, tell } from './books_stage.ts'

export type PricedOrder = { readonly id: string; readonly key: string }

/** An order of a hundredth of a bitcoin for one ether, whose deposit is final and whose payout is planned; `key` is that of the deposit. */
export async function pricedOrder(stage: BooksStage): Promise<PricedOrder> {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  const key = await mineDeposit(stage, order, 1_000_000n, 100)
  await confirmDeposit(stage, order, key)
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  await lookAt(stage, 'BTC', 100)
  return { id: order.terms.id, key }
}
