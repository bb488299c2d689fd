import { createSecretKey } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { CommandRefused } from '../command_refused.ts'
import { readSealKeyId } from '../db/order_seal_key.ts'
import { findOpenSeals, findOrder } from '../db/orders.ts'
import { assert } from '../domain/assert.ts'
import { sealedTermsOf } from '../domain/orders/seal.ts'
import { makeSeal, sealKeyIdOf } from '../engine/seal.ts'
import { type BooksStage, openBooksStage, placeOrder } from '../engine/testing/books_stage.ts'
import { refuseOtherSealKey } from './own_seal_key.ts'

/**
 * What: nobody starts with another seal key than the one that the orders of a database are sealed with.
 * How: a real PostgreSQL, as one that was just made and as one that an earlier release has left with its orders.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('own-seal-key')
})
beforeEach(async () => {
  await stage.reset()
  await stage.empty('order_seal_key')
})
afterAll(() => stage?.stop())

const ours = createSecretKey(Buffer.alloc(32, 1))
const theirs = createSecretKey(Buffer.alloc(32, 2))

const startWith = (key: typeof ours) => refuseOtherSealKey(stage.db, key)

/** Sealed with that key; answers its id. */
async function place(key: typeof ours): Promise<string> {
  const { terms } = await placeOrder(stage, 'ETH:ETH', 'XRP:XRP', { asks: 10n ** 17n, promises: 10n ** 6n })
  await stage.corrupt(
    `UPDATE orders SET destination_tag = '7', refund_address = 'back' WHERE order_id = $1`,
    [terms.id],
  )
  const order = await findOrder(stage.db, terms.id)
  assert(order !== null, 'it was placed')
  await stage.corrupt('UPDATE orders SET seal = $2 WHERE order_id = $1', [
    terms.id,
    makeSeal(key, sealedTermsOf(order)),
  ])
  return terms.id
}

test('the key of the first start is that of every later one', async () => {
  await startWith(ours)
  await startWith(ours)
  await expect(startWith(theirs)).rejects.toThrow(CommandRefused)
  const message = await startWith(theirs).catch((error: Error) => error.message)
  for (const word of [sealKeyIdOf(ours), sealKeyIdOf(theirs), 'CAMBIST_ORDER_SEAL_KEY_FILE'])
    expect(message).toContain(word)
  expect(await readSealKeyId(stage.db)).toBe(sealKeyIdOf(ours))
})

test('of two keys that start at once on an empty database one does', async () => {
  const starts = await Promise.allSettled([ours, theirs, ours, theirs].map(startWith))
  const noted = await readSealKeyId(stage.db)
  expect([ours, theirs].map(sealKeyIdOf)).toContain(noted)
  const started = noted === sealKeyIdOf(ours) ? 'fulfilled' : 'rejected'
  const refused = noted === sealKeyIdOf(ours) ? 'rejected' : 'fulfilled'
  expect(starts.map(({ status }) => status)).toEqual([started, refused, started, refused])
})

test('where no key is noted yet, the open orders say which it is', async () => {
  await place(ours)
  await expect(startWith(theirs)).rejects.toThrow('none that is open has its seal')
  expect(await readSealKeyId(stage.db)).toBeNull()
  await startWith(ours)
  await expect(startWith(theirs)).rejects.toThrow(sealKeyIdOf(ours))
})

test('an order that was changed in the database keeps nobody from starting while others are intact', async () => {
  const changed = await place(ours)
  await place(ours)
  await stage.corrupt(`UPDATE orders SET destination = 'thief' WHERE order_id = $1`, [changed])
  await startWith(ours)
  expect(await readSealKeyId(stage.db)).toBe(sealKeyIdOf(ours))
})

test('orders that have ended ask for no key', async () => {
  const ended = await place(theirs)
  await stage.corrupt(`UPDATE orders SET status = 'EXPIRED' WHERE order_id = $1`, [ended])
  await startWith(ours)
})

test('what was sealed is read as the order says it, of those that changed last', async () => {
  const ids = [await place(ours), await place(ours)]
  const [older = '', newer = ''] = ids
  await stage.corrupt('UPDATE orders SET updated_at_ms = updated_at_ms + 1 WHERE order_id = $1', [newer])
  for (const [limit, found] of [[1, [newer]] as const, [5, [newer, older]] as const]) {
    const seals = await findOpenSeals(stage.db, limit)
    expect(seals.map(({ terms }) => terms.orderId)).toEqual(found)
    for (const { terms, seal } of seals) {
      const order = await findOrder(stage.db, terms.orderId)
      expect(terms).toEqual(order && sealedTermsOf(order))
      expect(seal).toBe(makeSeal(ours, terms))
    }
  }
})

test('the service cannot change which key it is, and the owner of its table can', async () => {
  await startWith(ours)
  const [own, other] = [sealKeyIdOf(ours), sealKeyIdOf(theirs)]
  await expect(stage.db.query('DELETE FROM order_seal_key')).rejects.toThrow('permission denied')
  await expect(stage.db.query('UPDATE order_seal_key SET key_id = $1', [other])).rejects.toThrow('permission')
  await expect(stage.corrupt('INSERT INTO order_seal_key VALUES (false, $1)', [own])).rejects.toThrow('check')
  // As docs/operating/running.md says.
  await stage.corrupt(
    `INSERT INTO order_seal_key (key_id) VALUES ('${other}') ON CONFLICT (is_only) DO UPDATE SET key_id = excluded.key_id`,
  )
  await startWith(theirs)
})
