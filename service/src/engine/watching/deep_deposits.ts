import { findDeepDeposits } from '../../db/deposits.ts'
import { noteUnswept } from '../../db/unswept.ts'
import { assert } from '../../domain/assert.ts'
import { takeBackWriteOff } from '../books/write_off.ts'
import type { Look } from './look.ts'
import { type News, tellOrderByOrder } from './tell_orders.ts'

/** Tells orders which of their deposits are in blocks of `counted` height or below: deep enough to be booked. */
export async function confirmDeposits(look: Look, counted: number): Promise<void> {
  const { world, chain } = look
  const deep = await findDeepDeposits(world.db, chain.id, counted)
  const news = deep.map(({ orderId, key, blockHash }): News => {
    assert(blockHash !== null, 'a mined deposit has a block')
    return {
      orderId,
      what: `${key}:confirmed:${blockHash}`,
      fact: { kind: 'DepositConfirmed', key },
      alongside: async (tx, order) => {
        await takeBackWriteOff(tx, world.clock, order)
        await noteUnswept(tx, chain.id, order.terms.depositAddress, world.clock.nowMs())
      },
    }
  })
  await tellOrderByOrder(look, news)
}
