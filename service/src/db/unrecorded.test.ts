import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Order } from '../domain/orders/order.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
} from '../engine/testing/books_stage.ts'
import { solanaIntent } from '../signer/testing/fixtures.ts'
import { signedTransactions } from './signed_transactions.ts'
import { findUnrecorded } from './unrecorded.ts'

/**
 * What: it is noticed when the signer's record is not the one of this database.
 * How: a real PostgreSQL with payouts under way and paid, of which the record knows some.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('unrecorded')
})
beforeEach(async () => {
  await stage.reset()
  await stage.empty('signer.signed_transactions')
})
afterAll(() => stage?.stop())

const unrecorded = () => findUnrecorded(stage.db, stage.db, ['ETH', 'XRP'])

async function sent(): Promise<{ order: Order; payoutId: string; txHash: string }> {
  const order = await placeOrder(stage, 'ETH:ETH', 'XRP:XRP', { asks: 10n ** 18n, promises: 10n ** 7n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 10n ** 18n, 100))
  return { order, ...(await sendPayout(stage, order)) }
}

async function record(payoutId: string, attempt = 1): Promise<void> {
  const intent = solanaIntent({ payoutId, attempt })
  const tx = { txHash: `recorded ${payoutId}`, bytes: '00' }
  await signedTransactions(stage.db).insertOnce(
    { payoutId, attempt, intent, asset: 'XRP:XRP', units: 1n, tx, atMs: 1 },
    [],
  )
}

test('what is under way and what was mined is asked for, attempt by attempt', async () => {
  expect(await unrecorded(), 'nothing was ever signed').toEqual([])
  const [paid, leaving] = [await sent(), await sent()]
  await confirmPayout(stage, paid.order, { ...paid, cost: 12n })
  expect(await unrecorded()).toEqual([paid.payoutId, leaving.payoutId].sort())
  await record(paid.payoutId)
  expect(await unrecorded()).toEqual([leaving.payoutId])
  await record(leaving.payoutId, 2)
  expect(await unrecorded(), 'only a later attempt is known').toEqual([leaving.payoutId])
  await stage.empty('signer.signed_transactions')
  await record(leaving.payoutId)
  expect(await unrecorded(), 'of an earlier state').toEqual([paid.payoutId])
})

test('what was drafted and not signed is not missed', async () => {
  const { payoutId } = await sent()
  await stage.corrupt(`UPDATE attempts SET tx_hash = NULL, bytes = NULL, answer = NULL`)
  expect(await unrecorded()).toEqual([])
  await stage.corrupt(`UPDATE attempts SET tx_hash = 'a', bytes = 'b'`)
  expect(await unrecorded()).toEqual([payoutId])
})

test('what was mined is asked for chain by chain', async () => {
  const last: string[] = []
  for (let count = 0; count < 3; count += 1) {
    const payout = await sent()
    await confirmPayout(stage, payout.order, { ...payout, cost: 12n })
    last.push(payout.payoutId)
  }
  expect(await findUnrecorded(stage.db, stage.db, ['ETH'])).toEqual([])
  expect(await unrecorded()).toEqual(last.sort())
})
