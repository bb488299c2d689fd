import type { Clock } from '../../clock.ts'
import type { Sql } from '../../db/database.ts'
import { lockWords, tallyWords } from '../../db/operator_words.ts'
import { findOrder, lockOrder, readLocked } from '../../db/orders.ts'
import { assert } from '../../domain/assert.ts'
import { type Amount, amountOf } from '../../domain/money/amount.ts'
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

/** What an order was paid or refunded for and is gone: by how much that is missing still, and how much of it was written off by now. */
export type Loss = { readonly missing: Amount; readonly writtenOff: Amount }

/** As it is now, for looking only. */
export async function readLoss(sql: Sql, orderId: OrderId): Promise<Loss> {
  const order = await findOrder(sql, orderId)
  assert(order !== null, `order ${orderId} exists`)
  const { units, writtenOff } = await compareMissing(sql, order)
  const { from } = order.terms
  return { missing: amountOf(from, units > 0n ? units : 0n), writtenOff: amountOf(from, writtenOff) }
}

async function compareWords(tx: Sql, order: Order) {
  await lockWords(tx, 'written_off', order.terms.id)
  return compareMissing(tx, order)
}

/** `units`: what is missing less what was written off of it by now; `last`: by whose word last. */
async function compareMissing(sql: Sql, order: Order) {
  const { units: writtenOff, last, next } = await tallyWords(sql, 'written_off', order.terms.id)
  const missing = orphaned(order).units
  return { missing, units: missing - writtenOff, writtenOff, last, number: next }
}

function isWaiting({ role, state }: Order['deposits'][number]): boolean {
  return role === 'counted' && (state === 'seen' || state === 'mined')
}
