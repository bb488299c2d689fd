import { insertAddresses } from '../../db/addresses.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import type { Order } from '../../domain/orders/order.ts'
import {
  type BooksStage,
  confirmDeposit,
  fundReserve,
  mineDeposit,
  placeOrder,
  RESERVE,
} from './books_stage.ts'

const ETHER = 10n ** 18n

/** A reserve on Ethereum that can pay and bring gas: 1,000 ether. */
export async function openReserve(stage: BooksStage): Promise<void> {
  await insertAddresses(stage.db, 'evm', 'reserve', 0, [RESERVE])
  await fundReserve(stage, 'ETH:ETH', 1_000n * ETHER)
}

/** An order whose deposit, 10^18 units, is deep: there is something to sweep at its address. */
export async function deepDeposit(
  stage: BooksStage,
  asset: Extract<AssetId, 'ETH:ETH' | 'USDT:ERC20'> = 'ETH:ETH',
): Promise<Order> {
  const order = await placeOrder(stage, asset, 'BTC:BTC', { asks: ETHER, promises: 1_000n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 80))
  return order
}
