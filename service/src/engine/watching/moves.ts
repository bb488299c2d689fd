import type { Chain, Transfer } from '../../chains/chain.ts'
import type { OwnAddress } from '../../db/addresses.ts'

/** Money that came to an address of ours. */
export type Move = {
  readonly transfer: Transfer
  readonly own: OwnAddress
  /** The order that has the address is full, and hears nothing of it; see `spareFullOrders`. */
  readonly isBeyond?: true
}
export type OrderMove = Move & { readonly own: { readonly orderId: string } }

/**
 * An order hears of everything of our catalogue that is sent to its address on its chain; `decide` knows what counts. What is
 * told of a block is no payment: nobody sent it.
 */
export function isForOrder(chain: Pick<Chain, 'id'>, move: Move): move is OrderMove {
  const { own, transfer, isBeyond } = move
  if (transfer.isOfBlock || isBeyond) return false
  return own.orderId !== null && own.chain === chain.id && typeof transfer.asset === 'string'
}
