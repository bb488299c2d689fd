import type { Command } from 'commander'
import { registerCloseOwed } from './close_owed.ts'
import { registerCloseUnclaimed } from './close_unclaimed.ts'
import type { OrderCommandWorld } from './command_world.ts'
import { registerFind } from './find_order.ts'
import { registerJudge } from './judge_order.ts'
import { registerList } from './list_orders.ts'
import { registerShow } from './show_order.ts'
import { registerUnclaimed } from './unclaimed.ts'
import { registerWriteOff } from './write_off.ts'

/**
 * Registers what is below `order`. `show`, `find`, `list` and `unclaimed` look and change nothing; `judge` writes down, and
 * `close-unclaimed`, `write-off` and `close-owed` book, an operator's word.
 */
export function registerOrderCommands(order: Command, world: OrderCommandWorld): void {
  order.description('orders, for the operator')
  registerShow(order, world)
  registerFind(order, world)
  registerList(order, world)
  registerUnclaimed(order, world)
  registerJudge(order, world)
  registerCloseUnclaimed(order, world)
  registerWriteOff(order, world)
  registerCloseOwed(order, world)
}
