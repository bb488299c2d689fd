import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import * as eos from '../chains/eos/address.ts'
import * as stellar from '../chains/stellar/address.ts'
import * as xrp from '../chains/xrp/address.ts'
import { assert } from '../domain/assert.ts'
import { assets } from '../domain/catalog/assets.ts'
import type { Order } from '../domain/orders/order.ts'
import { accept, type Outcome } from '../domain/outcome.ts'
import { HOUR_MS } from '../domain/time.ts'
import { findForgotten } from '../engine/payouts/unwritten.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
} from '../engine/testing/books_stage.ts'
import { pagesTouched } from '../engine/testing/pages_touched.ts'
import type { SigningWorld } from '../engine/world.ts'
import {
  bitcoinIntent,
  customerBitcoin,
  customerEvm,
  evmIntent,
  otherEvm,
  solanaIntent,
  xrpIntent,
} from '../signer/testing/fixtures.ts'
import type { ClaimedOutflow } from './claim_outflows.ts'
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

const unrecorded = () => findUnrecorded(stage.db, stage.db, stage.world.clock.nowMs())

async function sent(): Promise<{ order: Order; payoutId: string; txHash: string }> {
  const order = await placeOrder(stage, 'ETH:ETH', 'XRP:XRP', { asks: 10n ** 18n, promises: 10n ** 7n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 10n ** 18n, 100))
  const payout = await sendPayout(stage, order)
  const draftedAtMs = stage.world.clock.nowMs()
  await stage.corrupt('UPDATE attempts SET drafted_at_ms = $1 WHERE payout_id = $2', [
    draftedAtMs,
    payout.payoutId,
  ])
  return { order, ...payout }
}

async function record(payoutId: string, attempt = 1): Promise<void> {
  const intent = solanaIntent({ payoutId, attempt })
  const tx = { txHash: `recorded ${payoutId}`, bytes: '00' }
  const atMs = stage.world.clock.nowMs()
  await signedTransactions(stage.db).insertOnce(
    { payoutId, attempt, intent, asset: 'XRP:XRP', units: 1n, tx, atMs },
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

test('a record of many signatures is not read whole', async () => {
  await stage.corrupt(
    `INSERT INTO signer.signed_transactions (payout_id, attempt, intent, asset, units, tx_hash, bytes, at_ms)
     SELECT 'CB' || lpad(i::text, 16, '0') || ':1', 1, '{}', CASE i % 2 WHEN 0 THEN 'XRP:XRP' ELSE 'ETH:ETH' END, 1, i, '00', i
     FROM generate_series(1, 20000) AS i`,
  )
  await stage.corrupt('ANALYZE signer.signed_transactions')
  const { nowMs } = stage.world.clock
  const pages = await pagesTouched(stage.db, (sql) => findUnrecorded(stage.db, sql, nowMs()))
  // Of each asset the first one: a few pages of an index.
  expect(pages).toBeLessThan(5 * assets.length)
})

test('a record that was lost is told what the service knows, as running.md says', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/operating/running.md'), 'utf8')
  const [, statement] = /```sql\n(INSERT INTO signer\.signed_transactions[^`]*)```/.exec(page) ?? []
  assert(statement !== undefined, 'the page has the statement')
  const [paid, leaving, known] = [await sent(), await sent(), await sent()]
  await confirmPayout(stage, paid.order, { ...paid, cost: 12n })
  stage.advance(72 * HOUR_MS)
  // One has been signed since the record was begun anew, and another is moved between addresses of ours.
  await record(known.payoutId)
  const swept = await sent()
  await stage.corrupt(`UPDATE outflows SET kind = 'sweep' WHERE payout_id = $1`, [swept.payoutId])
  expect(await unrecorded()).toEqual([leaving.payoutId, swept.payoutId].sort())
  await stage.corrupt(statement)
  expect(await unrecorded()).toEqual([])
  const store = signedTransactions(stage.db)
  const told = async ({ payoutId }: { payoutId: string }) => {
    const attempts = await store.attempts(payoutId)
    return attempts.map(({ attempt, asset, units, tx }) => ({ attempt, asset, units, txHash: tx.txHash }))
  }
  const one = { attempt: 1, asset: 'XRP:XRP', units: 10n ** 7n }
  expect(await told(leaving)).toEqual([{ ...one, txHash: leaving.txHash }])
  expect(await told(paid)).toEqual([{ ...one, txHash: paid.txHash }])
  expect(await told(swept), 'from us to us').toEqual([{ ...one, units: 0n, txHash: swept.txHash }])
  expect(await told(known), 'what is known stays').toMatchObject([{ txHash: `recorded ${known.payoutId}` }])
  const day = { asset: 'XRP:XRP', windowMs: 24 * HOUR_MS, unitsMax: 1n, countsEveryAttempt: false } as const
  const nowMs = stage.world.clock.nowMs()
  expect(await store.spent(day, nowMs), 'what was sent three days ago').toBe(1n)
  expect(await store.spent({ ...day, windowMs: 100 * HOUR_MS }, nowMs)).toBe(1n + 2n * 10n ** 7n)
  await stage.corrupt(statement)
  expect(await unrecorded(), 'given twice').toEqual([])
})

test('an order that was paid without a record of it is paid no more once the record is told, as running.md says', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/operating/running.md'), 'utf8')
  const [, statement] =
    /```sql\n *(INSERT INTO signer\.signed_transactions[^`]*'CB\d{16}:2'[^`]*)```/.exec(page) ?? []
  assert(statement !== undefined, 'the page has the statement')
  const order = await placeOrder(stage, 'ETH:ETH', 'XRP:XRP', { asks: 10n ** 18n, promises: 10n ** 7n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 10n ** 18n, 100))
  const { id } = order.terms
  await stage.corrupt(statement.replace(/CB\d{16}/, id))
  const store = signedTransactions(stage.db)
  const signer = {
    lastOutflow: store.lastOutflow,
    lastSigned: async (payoutId: string) => (await store.attempts(payoutId)).at(-1)?.attempt ?? 0,
  }
  const nextOutflow = async (number: number) => {
    const payout = { kind: 'payout', orderId: id, payoutId: `${id}:${number}` } as ClaimedOutflow
    return findForgotten({ ...stage.world, signer } as unknown as SigningWorld, payout)
  }
  expect(await nextOutflow(1)).toEqual({
    why: `the signer has signed ${id}:2, which comes after ${id}:1: nothing is paid`,
    needsSomebody: true,
  })
  expect(await nextOutflow(2)).toMatchObject({ needsSomebody: true })
  const day = { asset: 'XRP:XRP', windowMs: 24 * HOUR_MS, unitsMax: 1n, countsEveryAttempt: true } as const
  expect(await store.spent(day, stage.world.clock.nowMs()), 'counts against no limit').toBe(0n)
  expect(await unrecorded()).toEqual([])
})

test('of what was signed for an order only its last number may be owed, as running.md lists it', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/operating/running.md'), 'utf8')
  const [, statement] = /```sql\n *(SELECT payout_id,[^`]*LIKE 'CB%'[^`]*)```/.exec(page) ?? []
  assert(statement !== undefined, 'the page has the statement')
  const [refunded, paid] = ['CB0000000000000017', 'CB0000000000000042']
  for (let number = 1; number <= 9; number += 1) await record(`${refunded}:${number}`)
  stage.advance(1)
  await record(`${paid}:1`)
  await stage.corrupt("UPDATE signer.signed_transactions SET tx_hash = tx_hash || ', attempt 1'")
  await record(`${paid}:1`, 2)
  await record('house-ETH-5:1')
  stage.advance(1)
  await record(`${refunded}:10`)
  const rows = await stage.db.query<{ payout_id: string; attempt: number; may_be_owed: string }>(statement)
  const told = rows.map((row) => [row.payout_id, row.attempt, row.may_be_owed])
  const perhaps = 'if nothing of its order succeeded'
  expect(told).toEqual([
    [`${refunded}:10`, 1, perhaps],
    ...[9, 8, 7, 6, 5, 4, 3, 2, 1].map((number) => [`${refunded}:${number}`, 1, 'NEVER']),
    [`${paid}:1`, 2, perhaps],
    [`${paid}:1`, 1, perhaps],
  ])
})

test('what was signed from us to us is listed as what it does, fillers too, as running.md says', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/operating/running.md'), 'utf8')
  const [, statement] = /```sql\n *(SELECT payout_id,[^`]*LIKE 'sweep-%'[^`]*)```/.exec(page) ?? []
  assert(statement !== undefined, 'the page has the statement')
  const deposit = { purpose: 'deposit', index: 3 } as const
  const units = 21_000n
  const intents = [
    bitcoinIntent({ payoutId: 'house-BTC-CB0000000000000017-1:1', change: null }),
    evmIntent({ payoutId: 'house-ETH-5:1', to: otherEvm, units: 0n }),
    xrpIntent({ payoutId: 'house-XRP-5:1', payment: null }),
    evmIntent({ payoutId: 'sweep-ETH-3-1:1', to: customerEvm, units }),
    evmIntent({ payoutId: 'sweep-ETH-3-2:1', to: otherEvm, units, from: deposit }),
    evmIntent({ payoutId: 'CB0000000000000017:1' }),
  ]
  for (const intent of intents) {
    const { payoutId, attempt } = intent
    const tx = { txHash: `recorded ${payoutId}`, bytes: '00' }
    const signed = { payoutId, attempt, intent, asset: 'ETH:ETH', units: 0n, tx, atMs: 1 }
    await signedTransactions(stage.db).insertOnce(signed, [])
  }
  const rows = await stage.db.query<{
    payout_id: string
    does: string
    goes_to: string
    chain_units: string
  }>(statement)
  const told = rows.map((row) => [row.payout_id, row.does, row.goes_to, row.chain_units]).toSorted()
  expect(told).toEqual([
    ['house-BTC-CB0000000000000017-1:1', 'fills', customerBitcoin, null],
    ['house-ETH-5:1', 'fills', otherEvm, '0'],
    ['house-XRP-5:1', 'fills', null, null],
    ['sweep-ETH-3-1:1', 'brings gas', customerEvm, String(units)],
    ['sweep-ETH-3-2:1', 'sweeps', otherEvm, String(units)],
  ])
})

// What customers give, and what the transfer of a payout to it names on the chain.
const stellarAccount = 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'
/** Of id 2^63, an example of SEP-23: https://stellar.org/protocol/sep-23 */
const stellarMuxed = 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLK'
const xrpAccount = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe'
/** Of tag 48213. */
const xrpTagged = 'XV5kHfQmzDQjbFNv4jX3FX9Y7ig5Qh3mJa4kW6JccnkpmaX'
const onMain = { isMain: true }

test.each([
  ['an account of Stellar', stellar.parseTagged(stellarAccount, '7'), [stellarAccount]],
  ['a muxed address of Stellar', stellar.parseTagged(stellarMuxed, null), [stellarAccount, stellarMuxed]],
  [
    'a refund to one',
    refund(stellar.parsePlace(stellarMuxed), stellar.textOf),
    [stellarAccount, stellarMuxed],
  ],
  ['an account of the XRP Ledger', xrp.parseTagged(xrpAccount, '48213', onMain), [xrpAccount, xrpTagged]],
  ['an X-address', xrp.parseTagged(xrpTagged, null, onMain), [xrpAccount, xrpTagged]],
  [
    'a refund to one',
    refund(xrp.parsePlace(xrpTagged, onMain), (place) => xrp.textOf(place, onMain)),
    [xrpAccount, xrpTagged],
  ],
  ['an account of EOS', eos.parseTagged('somebody1/48213', null), ['somebody1', 'somebody1/48213']],
  [
    'a refund to one with its memo',
    refund(eos.parsePlace('somebody1/48213'), eos.textOf),
    ['somebody1', 'somebody1/48213'],
  ],
])('who was paid is found by the names that running.md tells: %s', async (_, stored, names) => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/operating/running.md'), 'utf8')
  const [, statement] = /```sql\n *(SELECT order_id, status, to_asset,[^`]*)```/.exec(page) ?? []
  assert(statement !== undefined && stored.ok, 'the page has the statement, and the address is valid')
  await placeOrder(stage, 'ETH:ETH', 'XRP:XRP', { asks: 10n ** 18n, promises: 10n ** 7n })
  const { terms } = await placeOrder(stage, 'ETH:ETH', 'XRP:XRP', { asks: 10n ** 18n, promises: 10n ** 7n })
  const { tag, address } = stored.value
  await stage.corrupt(
    tag === null
      ? 'UPDATE orders SET refund_address = $1, destination_tag = $2 WHERE order_id = $3'
      : 'UPDATE orders SET destination = $1, destination_tag = $2 WHERE order_id = $3',
    [address, tag, terms.id],
  )
  const asked = statement.replace("'…', '…'", names.map((name) => `'${name}'`).join(', '))
  expect(await stage.db.query(asked)).toMatchObject([{ order_id: terms.id, outflow_count: 0 }])
})

/** A refund address is stored as one text, and has no tag beside it. */
function refund<P>(place: Outcome<P>, textOf: (place: P) => string): Outcome<{ address: string; tag: null }> {
  return place.ok ? accept({ address: textOf(place.value), tag: null }) : place
}

test('what was drafted and not signed is not missed', async () => {
  const { payoutId } = await sent()
  await stage.corrupt(`UPDATE attempts SET tx_hash = NULL, bytes = NULL, answer = NULL`)
  expect(await unrecorded()).toEqual([])
  await stage.corrupt(`UPDATE attempts SET tx_hash = 'a', bytes = 'b'`)
  expect(await unrecorded()).toEqual([payoutId])
})

test('what is mined is missed for two days by a record that was begun anew, and by an empty one for ever', async () => {
  const paid = await sent()
  stage.advance(1)
  const known = await sent()
  await confirmPayout(stage, paid.order, { ...paid, cost: 12n })
  await record(known.payoutId)
  stage.advance(48 * HOUR_MS - 1)
  expect(await unrecorded(), 'what counts against a limit').toEqual([paid.payoutId])
  stage.advance(1)
  expect(await unrecorded()).toEqual([])
  await stage.corrupt('UPDATE attempts SET broadcast_at_ms = drafted_at_ms + 1 WHERE payout_id = $1', [
    paid.payoutId,
  ])
  expect(await unrecorded(), 'signed a moment later').toEqual([paid.payoutId])
  stage.advance(1)
  expect(await unrecorded()).toEqual([])
  await stage.empty('signer.signed_transactions')
  expect(await unrecorded(), 'nothing is known').toEqual([paid.payoutId, known.payoutId].sort())
})

test('what is mined is missed for ever by a record of an earlier state', async () => {
  const known = await sent()
  await record(known.payoutId)
  stage.advance(1)
  const paid = await sent()
  await confirmPayout(stage, paid.order, { ...paid, cost: 12n })
  stage.advance(1_000 * HOUR_MS)
  expect(await unrecorded()).toEqual([paid.payoutId])
})

test('what is under way is missed until it has ended', async () => {
  const leaving = await sent()
  stage.advance(1)
  const known = await sent()
  await record(known.payoutId)
  stage.advance(1_000 * HOUR_MS)
  expect(await unrecorded()).toEqual([leaving.payoutId])
  await confirmPayout(stage, leaving.order, { ...leaving, cost: 12n })
  expect(await unrecorded()).toEqual([])
})
