import type { Clock } from '../../clock.ts'
import type { Sql } from '../../db/database.ts'
import { lockWords, tallyWords } from '../../db/operator_words.ts'
import { lockOrder, readLocked } from '../../db/orders.ts'
import type { OrderId } from '../../domain/orders/identifiers.ts'
import { type Order, orphaned } from '../../domain/orders/order.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { bookWord, type Said, sayWord, type WordPlace, whoseWord } from './operator_word.ts'

/**
 * Writes off what is missing of the deposits that an order was paid or refunded for, all of it: the operator bears it
 * (docs/decisions/0049). Refuses as long as a deposit may come back by itself.
 */
export function writeOff(
  { db, ...place }: WordPlace,
  orderId: OrderId,
  because: string,
): Promise<Outcome<Said>> {
  return db.transaction(async (tx) => {
    const locked = await lockOrder(tx, orderId)
    if (locked === null) return refuse({ code: 'unknown', message: `There is no order ${orderId}.` })
    const order = await readLocked(tx, locked)
    const { status } = order.state
    if (status !== 'DONE' && status !== 'REFUNDED') {
      return refuse({ code: 'under_way', message: `${orderId} is ${status}, and neither DONE nor REFUNDED.` })
    }
    const { missing, units, last, number } = await compareWords(tx, order)
    const waiting = order.deposits.find(isWaiting)
    if (waiting !== undefined) {
      const message = `${waiting.key} is ${waiting.state} and may come back by itself: wait for it, or until it is vanished.`
      return refuse({ code: 'may_come_back', message })
    }
    if (missing === 0n) {
      return refuse({
        code: 'nothing_missing',
        message: `Nothing is missing of what ${orderId} was paid for.`,
      })
    }
    if (units === 0n && last !== undefined) {
      const message = `${orderId} was written off ${await whoseWord(tx, last)}`
      return refuse({ code: 'written_off', message })
    }
    const about = { owner: orderId, about: orderId, number, asset: order.terms.from }
    return accept(await sayWord(tx, place, { act: 'written_off', ...about, units, because }))
  })
}

/**
 * Turns round what was written off of an order and is there again; in the transaction that confirms a deposit, with the order as it is
 * then, locked. Nobody has said it, so it is in no audit log.
 */
export async function takeBackWriteOff(tx: Sql, clock: Clock, order: Order): Promise<void> {
  const { id, from } = order.terms
  if (order.state.status !== 'DONE' && order.state.status !== 'REFUNDED') return
  const { units, number } = await compareWords(tx, order)
  if (units >= 0n) return
  const because = 'what was written off is there again'
  await bookWord(tx, clock, { act: 'written_off', owner: id, about: id, number, asset: from, units, because })
}

/** `units`: what is missing less what was written off of it by now; `last`: by whose word last. */
async function compareWords(tx: Sql, order: Order) {
  const { id } = order.terms
  await lockWords(tx, 'written_off', id)
  const { units: writtenOff, last, next } = await tallyWords(tx, 'written_off', id)
  const missing = orphaned(order).units
  return { missing, units: missing - writtenOff, last, number: next }
}

function isWaiting({ role, state }: Order['deposits'][number]): boolean {
  return role === 'counted' && (state === 'seen' || state === 'mined')
}
