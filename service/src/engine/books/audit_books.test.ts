import { Command } from 'commander'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { CommandRefused } from '../../command_refused.ts'
import { registerLedgerCommands } from '../../commands/ledger.ts'
import { registerOrderCommands } from '../../commands/order.ts'
import { readAuditedOrders } from '../../db/audited_orders.ts'
import { readAuditedHouseOutflows } from '../../db/false_books.ts'
import { readHouseEntriesToExplain } from '../../db/house_entries.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Order } from '../../domain/orders/order.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  fundReserve,
  mineDeposit,
  minePayout,
  openBooksStage,
  placeOrder,
  sendPayout,
  strayDeposit,
  tell,
  writeAttempt,
} from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { pagesTouched } from '../testing/pages_touched.ts'
import { toldProblems } from '../testing/told_problems.ts'
import { auditBooks } from './audit_books.ts'
import { bookHouseDeposits, unmineHouseDeposits } from './house.ts'

/**
 * What: the audit finds nothing wrong with orders in any state, and names every kind of corruption.
 * How: a real PostgreSQL with orders that facts brought where they are; a superuser then bends one thing at a time.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('audit')
})

beforeEach(async () => {
  await stage.reset()
  await stage.empty('audit_log', 'audit_heads')
})

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n
const AMOUNTS = { asks: ETHER, promises: 100n * ETHER }

function place(): Promise<Order> {
  return placeOrder(stage, 'ETH:ETH', 'USDT:ERC20', AMOUNTS)
}

async function received(units = ETHER): Promise<Order> {
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, units, 100))
  return order
}

async function done(): Promise<Order> {
  const order = await received()
  const { payoutId, txHash } = await sendPayout(stage, order)
  minePayout(stage, order, { txHash, height: 100, units: AMOUNTS.promises, cost: 21_000n })
  await confirmPayout(stage, order, { payoutId, txHash, cost: 21_000n })
  return order
}

/** Underpaid and sent back; the refund is planned. */
async function refunding(): Promise<Order> {
  const order = await received(ETHER / 2n)
  const refund = {
    amount: amountOf('ETH:ETH', ETHER / 2n - 500n),
    networkFee: amountOf('ETH:ETH', 500n),
    address: 'outside-refund',
  }
  await tell(stage, order.terms.id, 'action:1', { kind: 'ActionChosen', action: 'refund', refund })
  return order
}

async function refunded(): Promise<Order> {
  const order = await refunding()
  const payoutId = `${order.terms.id}:1`
  await writeAttempt(stage, payoutId, 1, 'refund-tx')
  await tell(stage, order.terms.id, `${payoutId}:broadcast:1`, {
    kind: 'PayoutBroadcast',
    payoutId,
    txHash: 'refund-tx',
  })
  stage.chain('ETH').move(100, 'ETH:ETH', 'reserve-0', -(ETHER / 2n - 500n) - 300n)
  await confirmPayout(stage, order, { payoutId, txHash: 'refund-tx', cost: 0n })
  return order
}

async function fund(): Promise<void> {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
}

const problems = () => toldProblems(stage.db)

test('orders in every state, strays, extras, a failed payout and an orphaned deposit: no problems', async () => {
  await fund()
  await place()
  const pending = await place()
  await mineDeposit(stage, pending, ETHER, 100)
  const expired = await place()
  await received()
  await received(ETHER / 2n)
  const withdraw = await received()
  await sendPayout(stage, withdraw)
  await refunding()
  await refunded()

  const order = await done()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER * 2n, 100))
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1n, 100))
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 4n * ETHER, 100, 'USDC:ERC20'))
  await strayDeposit(stage, {
    asset: 'USDC:ERC20',
    units: 3n,
    address: 'ready',
    purpose: 'deposit',
    height: 99,
  })
  await bookHouseDeposits(stage.world, 'ETH', 200, 0, nobodyElse)

  const failed = await received()
  const { payoutId } = await sendPayout(stage, failed)
  await tell(stage, failed.terms.id, `${payoutId}:failed`, {
    kind: 'PayoutFailed',
    payoutId,
    problem: 'DESTINATION_PROBLEM',
    cost: amountOf('ETH:ETH', 900n),
  })
  await stage.db.query(
    `UPDATE outflows SET state = 'failed', mined_height = 100, mined_hash = 'h', mined_cost = 900 WHERE payout_id = $1`,
    [payoutId],
  )

  const orphaned = await done()
  const key = `ETH:deposit-tx-${orphaned.terms.id}-${ETHER}:0`
  await tell(stage, orphaned.terms.id, `${key}:unmined:blockhash`, { kind: 'DepositUnmined', key })

  stage.advance(900_000)
  await tell(stage, expired.terms.id, 'expired:1', {
    kind: 'OrderExpired',
    atMs: stage.world.clock.nowMs(),
  })

  expect(await problems()).toEqual([])
  const { orderCount, balances } = await auditBooks(stage.db)
  expect(orderCount).toBe(11)
  expect(new Set(balances.map(({ account }) => account)).size, 'every account is in use').toBe(10)
  const statuses = await stage.db.query<{ status: string }>(
    'SELECT DISTINCT status FROM orders ORDER BY status',
  )
  expect(statuses.map(({ status }) => status).join(' ')).toBe(
    'DONE EMERGENCY EXCHANGE EXPIRED NEW PENDING REFUND REFUNDED WITHDRAW',
  )
})

test('a deposit that is gone for good after its payout left is named; one that may come back is not', async () => {
  await fund()
  const paid = await done()
  const sentBack = await refunded()
  const keys = new Map([
    [paid.terms.id, `ETH:deposit-tx-${paid.terms.id}-${ETHER}:0`],
    [sentBack.terms.id, `ETH:deposit-tx-${sentBack.terms.id}-${ETHER / 2n}:0`],
  ])
  for (const [id, key] of keys) await tell(stage, id, `${key}:unmined:b`, { kind: 'DepositUnmined', key })
  expect(await problems(), 'they wait to be mined').toEqual([])
  for (const [id, key] of keys) await tell(stage, id, `${key}:vanished:1`, { kind: 'DepositVanished', key })
  expect(await problems()).toEqual([
    `${paid.terms.id} missing: it is DONE, and of what came for it 1 ETH:ETH has left its chain`,
    `${sentBack.terms.id} missing: it is REFUNDED, and of what came for it 0.5 ETH:ETH has left its chain`,
  ])
})

test('a deposit that comes back with another amount after its payout left is named as missing', async () => {
  await fund()
  const order = await done()
  const { id } = order.terms
  const key = `ETH:deposit-tx-${id}-${ETHER}:0`
  await tell(stage, id, `${key}:unmined:b`, { kind: 'DepositUnmined', key })
  const block = { height: 101, hash: 'c' }
  const amount = amountOf('ETH:ETH', ETHER - 1n)
  const seen = { txHash: 'again', amount, seenAtMs: stage.world.clock.nowMs(), block }
  await tell(stage, id, `${key}:mined:c`, { kind: 'DepositSeen', key, ...seen })
  await tell(stage, id, `${key}:confirmed:c`, { kind: 'DepositConfirmed', key })
  expect(await problems()).toEqual([
    `${id} missing: it is DONE, and of what came for it 1 ETH:ETH has left its chain`,
  ])
})

describe('one thing bent at a time is found and named', () => {
  type Bent = readonly [what: string, sql: string, found: RegExp]
  const kinds: readonly Bent[] = [
    [
      'a posting of one unit too much',
      `INSERT INTO journal VALUES (bucket_of, 'ORDER', 'forged', 1, 'USDT:ERC20', 'exchange_position', 'payouts_owed', 1, 1)`,
      /^ORDER balances: payouts_owed is -0\.000000000000000001 USDT:ERC20, while an order in DONE has 0 USDT:ERC20$/,
    ],
    [
      'a posting that moves a debt to another account',
      `INSERT INTO journal VALUES (bucket_of, 'ORDER', 'forged', 1, 'ETH:ETH', 'customer_deposits', 'unclaimed', 1, 1)`,
      /^ORDER balances: unclaimed is/,
    ],
    [
      'a posting that is gone',
      `DELETE FROM journal WHERE owner = 'ORDER' AND credit = 'fee_income'`,
      /^ORDER balances: fee_income is 0 USDT:ERC20/,
    ],
    [
      'a deposit booked twice',
      `INSERT INTO journal VALUES (bucket_of, 'ORDER', 'KEY:confirmed:otherblock', 1, 'ETH:ETH', 'wallet', 'customer_deposits', 1000000000000000000, 1)`,
      /^ORDER deposits: the confirmed deposit KEY of 1 ETH:ETH is booked with 2 ETH:ETH$/,
    ],
    [
      'a confirmed deposit that is not booked',
      `DELETE FROM journal WHERE entry_key LIKE 'KEY:confirmed:%'`,
      /^ORDER deposits: the confirmed deposit KEY of 1 ETH:ETH is booked with 0 ETH:ETH$/,
    ],
    [
      'a deposit that grew after it was booked',
      `UPDATE deposits SET units = units + 1 WHERE deposit_key = 'KEY'`,
      /^ORDER deposits: .* is booked with 1 ETH:ETH$/,
    ],
    [
      'a booked deposit that is deleted',
      `DELETE FROM deposits WHERE deposit_key = 'KEY'`,
      /^ORDER deposits: the journal books a deposit KEY that is not recorded$/,
    ],
    [
      'a deposit that the house has too',
      `INSERT INTO house_deposits VALUES ('ETH', 'KEY', 'stray', 't', 'a', NULL, 'ETH:ETH', 5, 'mined', 1, 'h', 1)`,
      /^KEY deposits: it is recorded for ORDER and house$/,
    ],
    [
      'an event that is missing in the middle',
      `DELETE FROM events WHERE order_id = 'ORDER' AND sequence = 2`,
      /^ORDER events: its 4 events are numbered 1 to 5$/,
    ],
    [
      'the last event missing',
      `DELETE FROM events WHERE order_id = 'ORDER' AND sequence = 5`,
      /^ORDER events: its last event is 4, the order is at 5$/,
    ],
    ['all events missing', `DELETE FROM events WHERE order_id = 'ORDER'`, /^ORDER events: it has no events$/],
    [
      'an event that does not follow',
      `UPDATE events SET previous_status = 'EXPIRED' WHERE order_id = 'ORDER' AND sequence = 3`,
      /^ORDER events: the events 3 do not follow the one before$/,
    ],
    [
      'a status that no event told',
      `UPDATE orders SET status = 'WITHDRAW', completed_at_ms = NULL WHERE order_id = 'ORDER'`,
      /^ORDER events: its last event says DONE, the order WITHDRAW$/,
    ],
    [
      'a confirmed payout without postings',
      `DELETE FROM journal WHERE entry_key = 'ORDER:1:confirmed'`,
      /^ORDER outflows: the confirmed payout ORDER:1 of 100 USDT:ERC20 is booked with 0 USDT:ERC20$/,
    ],
    [
      'a payout that is booked and not confirmed',
      `UPDATE outflows SET state = 'broadcast' WHERE payout_id = 'ORDER:1'`,
      /^ORDER outflows: the payout ORDER:1 is broadcast and booked as confirmed$/,
    ],
    [
      'a payout of another amount than was owed',
      `UPDATE outflows SET units = units + 1 WHERE payout_id = 'ORDER:1'`,
      /^ORDER outflows: ORDER:1 paid 100\.000000000000000001 USDT:ERC20 and owed 100 USDT:ERC20$/,
    ],
    [
      'a payout under way of an order that is finished',
      `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms)
       VALUES (bucket_of, 'ORDER', 'ORDER:2', 'payout', 'ETH', 'USDT:ERC20', 1, 'a', 'planned', 1, 1)`,
      /^ORDER outflows: the payout ORDER:2 is planned while the order is DONE$/,
    ],
    [
      'a transaction that is none of the payout',
      `UPDATE orders SET payout_tx_hash = 'another' WHERE order_id = 'ORDER'`,
      /^ORDER outflows: the transaction another is none of ORDER:1$/,
    ],
    [
      'entries of an order that does not exist',
      `INSERT INTO journal VALUES (7, 'CB0000000000009907', 'forged', 1, 'ETH:ETH', 'wallet', 'customer_deposits', 1, 1)`,
      /^CB0000000000009907 journal: the journal has entries of it, and there is no such order$/,
    ],
    [
      'a payout of an order that does not exist',
      `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms)
       VALUES (7, 'CB0000000000009907', 'CB0000000000009907:1', 'payout', 'ETH', 'USDT:ERC20', 1, 'a', 'planned', 1, 1)`,
      /^CB0000000000009907 outflows: there is an outflow CB0000000000009907:1, and no such order$/,
    ],
    [
      'a wallet that owes',
      `INSERT INTO journal VALUES (0, 'house', 'forged', 1, 'BNB:BNB', 'capital', 'wallet', 1, 1)`,
      /^BNB:BNB journal: wallet is -0\.000000000000000001 BNB:BNB, on the wrong side$/,
    ],
    [
      "an operator's entry that the audit log knows nothing of, in every sum",
      `WITH summed AS (INSERT INTO wallet_movements VALUES (0, 'ETH:ETH', -1000000000000000000))
       INSERT INTO journal VALUES (0, 'house', 'operator:ETH:ETH:1', 1, 'ETH:ETH', 'capital', 'wallet', 1000000000000000000, 1)`,
      /^ETH:ETH journal: the entry operator:ETH:ETH:1 books -1 ETH:ETH, and no row of the audit log says so$/,
    ],
    [
      'a row of the audit log whose entry is gone',
      `INSERT INTO audit_log VALUES ('house_1', 7, 1, 'difference_booked', 'operator', 'ETH:ETH', NULL,
         '{"amount":"-1","because":"taken out","entry":"operator:ETH:ETH:1"}', '', '')`,
      /^ETH:ETH journal: row 7 of house_1 in the audit log says that operator:ETH:ETH:1 booked -1 ETH:ETH, and the journal has no such entry$/,
    ],
    [
      "a cost that became the operator's money, beside the true one of an outflow",
      `INSERT INTO journal VALUES (0, 'house', 'ORDER:1:confirmed', 1, 'ETH:ETH', 'capital', 'network_costs', 1000, 1)`,
      /^ETH:ETH journal: the entry ORDER:1:confirmed of the house moves 0\.000000000000001 ETH:ETH from network_costs to capital, and nothing here makes such an entry$/,
    ],
    [
      'the loss of a payout that there is not, in every sum',
      `WITH summed AS (INSERT INTO wallet_movements VALUES (0, 'ETH:ETH', 1000))
       INSERT INTO journal VALUES (0, 'house', 'CB0000000000009907:1:block_lost:h@0', 1, 'ETH:ETH', 'wallet', 'orphaned_payouts', 1000, 1)`,
      /^ETH:ETH journal: the entry CB0000000000009907:1:block_lost:h@0 of the house moves .* from orphaned_payouts to wallet, and nothing/,
    ],
    [
      'what is closed of a payout that there is not',
      `INSERT INTO journal VALUES (0, 'house', 'operator:closed_owed:CB0000000000009907:CB0000000000009907:1:1', 1,
         'ETH:ETH', 'orphaned_payouts', 'capital', 1000, 1)`,
      /^ETH:ETH journal: the entry operator:closed_owed:CB0000000000009907:CB0000000000009907:1:1 is none that `ledger book` makes$/,
    ],
    [
      'an entry of the house under a key that nothing makes, in every sum',
      `WITH summed AS (INSERT INTO wallet_movements VALUES (0, 'ETH:ETH', -1000))
       INSERT INTO journal VALUES (0, 'house', 'forged', 1, 'ETH:ETH', 'capital', 'wallet', 1000, 1)`,
      /^ETH:ETH journal: the entry forged of the house moves 0\.000000000000001 ETH:ETH from wallet to capital, and nothing here makes/,
    ],
    [
      'a house deposit booked short by a unit',
      `UPDATE journal SET units = units - 1 WHERE entry_key LIKE 'ETH:house-tx-USDT%'`,
      /^ETH:house-tx-USDT:ERC20-\d+:0 deposits: the confirmed deposit .* is booked with 999\.9{18} USDT:ERC20$/,
    ],
    [
      'a sum of the wallet that the journal does not add up to',
      `INSERT INTO wallet_sums VALUES (42, 'BNB:BNB', 1)`,
      /^BNB:BNB journal: wallet of bucket 42 adds up to 0 BNB:BNB, its sum is 0\.0{17}1 BNB:BNB$/,
    ],
    [
      'a sum of what rests that its parts do not add up to',
      `INSERT INTO resting_balances VALUES ('ETH', 'somewhere', 'ETH:ETH', 1000000000000000000)`,
      /^ETH:ETH chain: what rests adds up to 1 ETH:ETH, its sum is 0 ETH:ETH$/,
    ],
    [
      'a filler that is confirmed and not booked',
      `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms)
       VALUES (0, 'house-ETH-5', 'house-ETH-5:1', 'filler', 'ETH', 'ETH:ETH', 0, 'a', 'confirmed', 1, 1)`,
      /^house-ETH-5:1 outflows: the confirmed filler house-ETH-5:1 has no postings$/,
    ],
    [
      'a cost that no network took, in every sum',
      `WITH summed AS (INSERT INTO wallet_movements VALUES (bucket_of, 'ETH:ETH', -1000))
       INSERT INTO journal VALUES (bucket_of, 'ORDER', 'forged', 1, 'ETH:ETH', 'network_costs', 'wallet', 1000, 1)`,
      /^ORDER journal: it has the entry forged, and no fact that changed the order$/,
    ],
    [
      'a payout that cost a unit more than its network took, in every sum',
      `WITH summed AS (INSERT INTO wallet_movements VALUES (bucket_of, 'ETH:ETH', -1))
       UPDATE journal SET units = units + 1 WHERE entry_key = 'ORDER:1:confirmed' AND debit = 'network_costs'`,
      /^ORDER outflows: the confirmed payout ORDER:1 is booked with a cost of 0\.000000000000021001 ETH:ETH, and that was 0\.000000000000021 ETH:ETH$/,
    ],
    [
      'a payout that is booked as if it had cost nothing, in every sum',
      `WITH summed AS (INSERT INTO wallet_movements VALUES (bucket_of, 'ETH:ETH', 21000))
       DELETE FROM journal WHERE entry_key = 'ORDER:1:confirmed' AND debit = 'network_costs'`,
      /^ORDER outflows: the confirmed payout ORDER:1 is booked with a cost of 0 ETH:ETH, and that was 0\.000000000000021 ETH:ETH$/,
    ],
    [
      'the cost of a sweep that there is not, in every sum',
      `WITH summed AS (INSERT INTO wallet_movements VALUES (0, 'ETH:ETH', -1000))
       INSERT INTO journal VALUES (0, 'house', 'sweep-ETH-9-1:1:confirmed', 1, 'ETH:ETH', 'network_costs', 'wallet', 1000, 1)`,
      /^sweep-ETH-9-1:1 outflows: the journal has a cost of 0\.000000000000001 ETH:ETH of it, and there is no such outflow$/,
    ],
    [
      'a cost of a filler that failed in no block, in every sum',
      `WITH failed AS (
           INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms)
           VALUES (0, 'house-ETH-5', 'house-ETH-5:1', 'filler', 'ETH', 'ETH:ETH', 0, 'a', 'failed', 1, 1)),
         summed AS (INSERT INTO wallet_movements VALUES (0, 'ETH:ETH', -1000))
       INSERT INTO journal VALUES (0, 'house', 'house-ETH-5:1:failed', 1, 'ETH:ETH', 'network_costs', 'wallet', 1000, 1)`,
      /^house-ETH-5:1 outflows: the failed filler house-ETH-5:1 is booked with a cost of 0\.000000000000001 ETH:ETH, and that was 0 ETH:ETH$/,
    ],
    [
      "money of somebody that became the operator's",
      `WITH stray AS (INSERT INTO house_deposits
           VALUES ('ETH', 'ETH:stray:0', 'stray', 'stray', 'a', NULL, 'ETH:ETH', 5000, 'confirmed', 1, 'h', 1)),
         summed AS (INSERT INTO wallet_movements VALUES (0, 'ETH:ETH', 5000))
       INSERT INTO journal VALUES (0, 'house', 'ETH:stray:0:confirmed:h@0', 1, 'ETH:ETH', 'wallet', 'unclaimed', 5000, 1),
         (0, 'house', 'forged', 1, 'ETH:ETH', 'unclaimed', 'capital', 1000, 1)`,
      /^house balances: unclaimed is -0\.000000000000004 ETH:ETH, while its deposits come to -0\.000000000000005 ETH:ETH$/,
    ],
    [
      "money of the operator's that became somebody's",
      `UPDATE journal SET credit = 'unclaimed' WHERE entry_key LIKE 'ETH:house-tx-USDT%'`,
      /^house balances: unclaimed is -1000 USDT:ERC20, while its deposits come to 0 USDT:ERC20$/,
    ],
  ]

  test.each(kinds)('%s', async (_, sql, found) => {
    await fund()
    const innocent = await done()
    const order = await done()
    expect(await problems()).toEqual([])
    const { id } = order.terms
    const fill = (text: string) =>
      text
        .replaceAll('KEY', `ETH:deposit-tx-${id}-${ETHER}:0`)
        .replaceAll('ORDER', id)
        .replaceAll('bucket_of', String(Number.parseInt(id.slice(-2), 10)))
    await stage.corrupt(fill(sql))
    const told = (await problems()).map((line) =>
      line.replaceAll(`ETH:deposit-tx-${id}-${ETHER}:0`, 'KEY').replaceAll(id, 'ORDER'),
    )
    expect(told).toContainEqual(expect.stringMatching(found))
    expect(told.join('\n')).not.toContain(innocent.terms.id)
  })

  test('more back than was ever missing of an order, although as much is missing of another', async () => {
    await fund()
    const missing = await done()
    const key = `ETH:deposit-tx-${missing.terms.id}-${ETHER}:0`
    await tell(stage, missing.terms.id, `${key}:unmined:blockhash`, { kind: 'DepositUnmined', key })
    expect(await problems()).toEqual([])
    const { id } = (await done()).terms
    const bucket = Number.parseInt(id.slice(-2), 10)
    // Recorded and booked as if what the payout was made of had come back, although it never went.
    await stage.corrupt(
      `INSERT INTO deposits SELECT (json_populate_record(d, '{"deposit_key": "again"}')).* FROM deposits d
       WHERE order_id = '${id}'`,
    )
    await stage.corrupt(
      `INSERT INTO journal VALUES (${bucket}, '${id}', 'again:confirmed:blockhash', 1, 'ETH:ETH',
         'wallet', 'orphaned_deposits', ${ETHER}, 1)`,
    )
    await stage.corrupt(
      `INSERT INTO wallet_movements (bucket, asset, units) VALUES (${bucket}, 'ETH:ETH', ${ETHER})`,
    )
    await stage.corrupt(
      `INSERT INTO facts VALUES (${bucket}, '${id}', 'again:confirmed:blockhash', 'DepositConfirmed', 'changed', 1)`,
    )
    const { balances } = await auditBooks(stage.db)
    expect(balances.find(({ account }) => account === 'orphaned_deposits')?.units ?? 0n).toBe(0n)
    expect(await problems()).toEqual([`${id} balances: orphaned_deposits is -1 ETH:ETH, on the wrong side`])
  })

  test('an order that was paid twice', async () => {
    await fund()
    const { id } = (await done()).terms
    await stage.corrupt('DROP INDEX outflows_one_success')
    try {
      await stage.corrupt(
        `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms,
           due_at_ms)
         SELECT bucket, order_id, order_id || ':2', kind, chain, asset, units, address, state, 1, 1 FROM outflows`,
      )
      expect(await problems()).toContain(`${id} outflows: it was paid 2 times: ${id}:1, ${id}:2`)
    } finally {
      await stage.reset()
      await stage.corrupt(
        `CREATE UNIQUE INDEX outflows_one_success ON outflows (bucket, order_id)
         WHERE kind IN ('payout', 'refund') AND state = 'confirmed'`,
      )
    }
  })

  test('an event whose fact is not in the log', async () => {
    const order = await received()
    await stage.corrupt(
      `DELETE FROM facts WHERE order_id = '${order.terms.id}' AND fact_key LIKE '%:confirmed:%'`,
    )
    const { id } = order.terms
    const key = `ETH:deposit-tx-${id}-${ETHER}:0:confirmed:blockhash`
    expect(await problems()).toEqual([
      `${id} events: the events 3 have no fact that changed the order`,
      `${id} journal: it has the entry ${key}, and no fact that changed the order`,
    ])
  })

  test('a payout that should be under way and is not', async () => {
    const order = await received()
    await sendPayout(stage, order)
    await stage.corrupt(`UPDATE outflows SET state = 'failed'`)
    expect(await problems()).toEqual([
      `${order.terms.id} outflows: it is WITHDRAW and its payout ${order.terms.id}:1 is not under way`,
    ])
  })
})

describe('commands', () => {
  type Ran = { readonly printed: string; readonly refused: string | null }

  const run = (...args: string[]) => runWith(stage.chains, ...args)

  async function runWith(chains: BooksStage['chains'], ...args: string[]): Promise<Ran> {
    const lines: string[] = []
    let closed = 0
    const { db, world } = stage
    const open = async () => ({
      db,
      chains,
      clock: world.clock,
      close: async () => {
        closed += 1
      },
    })
    const program = new Command().exitOverride()
    registerLedgerCommands(program.command('ledger'), { open, print: (text) => lines.push(text) })
    registerOrderCommands(program.command('order'), {
      open,
      print: (text) => lines.push(text),
      note: (text) => lines.push(text),
    })
    let refused: string | null = null
    try {
      await program.parseAsync(args, { from: 'user' })
    } catch (error) {
      if (!(error instanceof CommandRefused)) throw error
      refused = error.message
    }
    expect(closed).toBe(1)
    return { printed: lines.join('\n'), refused }
  }

  test('ledger audit prints tables and passes; with a problem it names it and fails', async () => {
    await fund()
    const order = await done()
    const good = await run('ledger', 'audit')
    expect(good.refused).toBeNull()
    expect(good.printed).toContain('No problems: 1 order, 8 chains.')
    expect(good.printed).toMatch(/USDT:ERC20 +wallet +900 USDT:ERC20/)

    stage.chain('ETH').move(100, 'USDT:ERC20', 'reserve-0', -1n)
    await stage.corrupt(`DELETE FROM events WHERE sequence = 5`)
    const bad = await run('ledger', 'audit')
    expect(bad.refused).toBe('The audit found 3 problems.')
    expect(bad.printed).toMatch(new RegExp(`${order.terms.id} +events +its last event is 4`))
    expect(bad.printed).toMatch(/USDT:ERC20 +chain +0\.000000000000000001 USDT:ERC20 is missing on the chain/)
    const json = await run('ledger', 'audit', '--json')
    expect(JSON.parse(json.printed).problems).toHaveLength(3)
    expect((await run('ledger', 'audit', '--no-chains')).refused).toBe('The audit found 2 problems.')
  })

  test('ledger audit refuses a chain that it does not know before it reads a book', async () => {
    using query = vi.spyOn(stage.db, 'query')
    using transaction = vi.spyOn(stage.db, 'transaction')
    const { refused } = await run('ledger', 'audit', '--chain', 'DOGE')
    expect(refused).toBe('DOGE is not one of BTC, ETH, BNB, XRP, XLM, TRX, EOS, SOL')
    for (const asked of [query, transaction]) expect(asked).not.toHaveBeenCalled()
  })

  test('ledger audit does not pass over money on a chain that it has no node of', async () => {
    await fund()
    const others = new Map([...stage.chains].filter(([id]) => id !== 'ETH'))
    const { printed, refused } = await runWith(others, 'ledger', 'audit')
    expect(refused).toBe('The audit found 2 problems.')
    expect(printed).toMatch(/USDT:ERC20 +chain +was not compared: .* \(1000 USDT:ERC20\)/)
    expect((await runWith(others, 'ledger', 'audit', '--chain', 'BTC')).refused).toBeNull()
    expect((await runWith(others, 'ledger', 'audit', '--no-chains')).refused).toBeNull()
  })

  test('order show tells everything, by id or by the last 8 digits', async () => {
    await fund()
    const order = await done()
    const { printed } = await run('order', 'show', order.terms.id)
    for (const text of [
      'DONE, event 5',
      `1 ETH:ETH to ${order.terms.depositAddress}`,
      'WITHDRAW',
      'DepositConfirmed',
      'customer_deposits',
      `${order.terms.id}:1`,
      `payout-tx-${order.terms.id}`,
    ]) {
      expect(printed).toContain(text)
    }
    expect((await run('order', 'show', order.terms.id.slice(-8))).printed).toBe(printed)
    expect(JSON.parse((await run('order', 'show', order.terms.id, '--json')).printed).events).toHaveLength(5)
    expect((await run('order', 'show', 'CB9999999999999999')).refused).toBe(
      'There is no order CB9999999999999999.',
    )
    expect((await run('order', 'show', 'nonsense')).refused).toContain('neither an order id')
  })

  test('order show keeps every word apart from what it is about', async () => {
    const { id } = (await place()).terms
    await stage.corrupt(
      `UPDATE orders SET deposit_tag = '70', destination_tag = '71' WHERE order_id = '${id}'`,
    )
    const { printed } = await run('order', 'show', id)
    expect(printed).toMatch(/^Deposit tag +70$/m)
    expect(printed).toMatch(/^Tag +71$/m)
  })

  test('order list filters by status, and unclaimed shows what no order could use', async () => {
    const order = await received(ETHER / 2n)
    const fresh = await place()
    await strayDeposit(stage, {
      asset: 'ETH:ETH',
      units: 3n,
      address: 'ready',
      purpose: 'deposit',
      height: 99,
    })
    const all = (await run('order', 'list')).printed
    expect(all).toContain(order.terms.id)
    expect(all).toContain(fresh.terms.id)
    const some = (await run('order', 'list', '--status', 'emergency')).printed
    expect(some).toContain('EMERGENCY UNDERPAID')
    expect(some).not.toContain(fresh.terms.id)
    expect((await run('order', 'list', '--status', 'LOST')).refused).toContain('LOST is not a status')
    expect((await run('order', 'list', '--status', 'DONE')).printed).toBe('There are no such orders.')
    expect((await run('order', 'unclaimed')).printed).toContain('stray  0.000000000000000003 ETH:ETH  mined')
    const hash = (await stage.chain('ETH').blockHash(99)) ?? ''
    await stage.db.transaction((tx) => unmineHouseDeposits(tx, 'ETH', hash, 0, 1))
    expect((await run('order', 'unclaimed')).printed, 'its block has left the chain').toBe(
      'There is no unclaimed money.',
    )
  })
})

test('an audit of ten times as many outflows reads some ten times as much, and not a hundred times', async () => {
  const insert = async (kind: 'payout' | 'sweep', count: number) => {
    await stage.corrupt(
      `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms,
         due_at_ms, mined_height, mined_hash, mined_cost)
       SELECT 0, $2 || lpad(n::text, 14, '0') || '00', $2 || lpad(n::text, 14, '0') || '00:1', $1, 'ETH', 'ETH:ETH', 5,
         'somebody', 'confirmed', 1, 1, 1, 'h', 1
       FROM generate_series(1, $3::int) AS n`,
      [kind, kind === 'payout' ? 'CB' : 'SW', count],
    )
    await stage.corrupt(
      `INSERT INTO journal (bucket, owner, entry_key, line, asset, debit, credit, units, at_ms)
       SELECT 0, CASE WHEN kind = 'sweep' THEN 'house' ELSE order_id END, payout_id || ':confirmed', line, asset,
         CASE WHEN line = 1 AND kind = 'payout' THEN 'payouts_owed' ELSE 'network_costs' END, 'wallet', units, 1
       FROM outflows CROSS JOIN generate_series(1, 2) AS line WHERE kind = $1`,
      [kind],
    )
  }
  const touched = async (count: number) => {
    await stage.reset()
    await insert('payout', count)
    await insert('sweep', count)
    await stage.corrupt('VACUUM ANALYZE')
    return {
      ofOrders: await pagesTouched(stage.db, (sql) => readAuditedOrders(sql, 0)),
      ofHouse: await pagesTouched(stage.db, (sql) => readAuditedHouseOutflows(sql, '', count)),
      ofItsEntries: await pagesTouched(stage.db, readHouseEntriesToExplain),
    }
  }
  const few = await touched(200)
  const many = await touched(2_000)
  expect(many.ofOrders).toBeLessThan(20 * few.ofOrders)
  expect(many.ofHouse).toBeLessThan(20 * few.ofHouse)
  expect(many.ofItsEntries).toBeLessThan(20 * few.ofItsEntries)
})
