import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type ClaimedOutflow, claimOutflows } from '../../db/claim_outflows.ts'
import { findOrder } from '../../db/orders.ts'
import { planOutflow } from '../../db/outflows.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Order } from '../../domain/orders/order.ts'
import type { Intent } from '../../domain/payouts/intent.ts'
import { auditBooks } from '../books/audit_books.ts'
import { compareChain } from '../books/compare.ts'
import { endSweep } from '../sweeps/end.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  fundReserve,
  lookAt,
  mineDeposit,
  minePayout,
  openBooksStage,
  placeOrder,
  RESERVE,
  sendPayout,
  writeAttempt,
} from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { endAgain, giveUpOrphan, orphanOutflows } from './orphan.ts'

/**
 * What: a payout that was final and loses its block is owed again and due again, each time and once a time, while its
 * order stays DONE; at every moment books and chain agree, and the audit finds nothing.
 * How: a real PostgreSQL, orders moved by facts, a chain on paper whose blocks become other ones.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('orphan')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n
const PAID = 100n * ETHER
const COST = 21_000n

async function finish(): Promise<Order> {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  const order = await placeOrder(stage, 'ETH:ETH', 'USDT:ERC20', { asks: ETHER, promises: PAID })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 60))
  const { payoutId, txHash } = await sendPayout(stage, order)
  await lookAt(stage, 'ETH', 112)
  minePayout(stage, order, { txHash, height: 100, units: PAID, cost: COST })
  await confirmPayout(stage, order, { payoutId, txHash, cost: COST, height: 100 })
  return order
}

/** What the watcher knows of the block at 100. */
async function standOn(hash: string): Promise<void> {
  await stage.db.query(
    `INSERT INTO chain_blocks (chain, height, hash) VALUES ('ETH', 100, $1)
     ON CONFLICT (chain, height) DO UPDATE SET hash = excluded.hash`,
    [hash],
  )
}

function look(branch: number): Promise<void> {
  return orphanOutflows(stage.world, 'ETH', { kind: 'replaced', aboveHeight: 0 }, branch, nobodyElse)
}

/** The payout gets one attempt more, which is like the first but for its hash. */
async function signAnew(txHash: string): Promise<void> {
  await stage.db.query(
    `INSERT INTO attempts (bucket, payout_id, attempt, intent, tx_hash, bytes, answer, drafted_at_ms, broadcast_at_ms)
     SELECT bucket, payout_id, (SELECT max(attempt) + 1 FROM attempts), intent, $1, bytes, answer, drafted_at_ms, broadcast_at_ms
     FROM attempts WHERE attempt = 1`,
    [txHash],
  )
}

/** The chain takes back what the payout took. */
function takeBack(cost: bigint): void {
  const eth = stage.chain('ETH')
  eth.move(100, 'USDT:ERC20', RESERVE, PAID)
  eth.move(100, 'ETH:ETH', RESERVE, cost)
}

async function expectAgreement(what: string): Promise<void> {
  const compared = await compareChain(stage.db, stage.chain('ETH'), { kind: 'all' })
  if (compared.kind === 'inconclusive') throw new Error(compared.why)
  const differing = compared.comparisons.filter(({ difference }) => difference !== 0n)
  expect(differing, what).toEqual([])
  expect((await auditBooks(stage.db)).problems, what).toEqual([])
}

async function states(): Promise<unknown[]> {
  return stage.db.query('SELECT f.state, o.status FROM outflows f JOIN orders o USING (bucket, order_id)')
}

/** The attempt that is mined this time. */
const again = (txHash: string) => ({ txHash, intent: { family: 'evm' } as Intent })

let claims = 0

async function claimDue(): Promise<ClaimedOutflow | undefined> {
  claims += 1
  const time = { nowMs: stage.world.clock.nowMs(), wallMs: claims, claimMs: 0 }
  return (await claimOutflows(stage.db, 'ETH', 'reserve', time, 5))[0]
}

async function claim(): Promise<ClaimedOutflow> {
  const outflow = await claimDue()
  if (outflow === undefined) throw new Error('nothing is due')
  return outflow
}

test('a block that stands takes nothing back', async () => {
  await finish()
  await standOn((await stage.chain('ETH').blockHash(100)) ?? '')
  await look(1)
  expect(await states()).toEqual([{ state: 'confirmed', status: 'DONE' }])
  await expectAgreement('final')
})

test('a lost block makes the payout due again until it is as deep as before, as often as it happens', async () => {
  const order = await finish()
  let txHash = `payout-tx-${order.terms.id}`
  const before = await findOrder(stage.db, order.terms.id)
  const hash = (await stage.chain('ETH').blockHash(100)) ?? ''
  let cost = COST
  for (const branch of [1, 2]) {
    await standOn('another block')
    takeBack(cost)
    stage.chain('ETH').mined(txHash, 200, 0n)
    await look(branch)
    await look(branch)
    expect(await states()).toEqual([{ state: 'orphaned', status: 'DONE' }])
    await expectAgreement('its money is back')

    const outflow = await claim()
    cost += 500n
    txHash = `0xattempt${branch}`
    await signAnew(txHash)
    minePayout(stage, order, { txHash, height: 100, units: PAID, cost })
    await expectAgreement('mined again, not deep')
    await stage.db.query(`UPDATE chain_heads SET reorganisations = $1 WHERE chain = 'ETH'`, [branch])
    const ended = { succeeded: true, block: { height: 100, hash }, cost: amountOf('ETH:ETH', cost) }
    for (const _ of ['once', 'told twice']) await endAgain(stage.world, outflow, again(txHash), ended)
    expect(await states()).toEqual([{ state: 'confirmed', status: 'DONE' }])
    const told = await findOrder(stage.db, order.terms.id)
    expect(told).toMatchObject({ state: { txHash }, sequence: before?.sequence })
    await expectAgreement('final again')
    expect(await claimDue()).toBeUndefined()
  }
})

test('where two nodes stand on two branches, the same block is lost and found again on one branch, each time once', async () => {
  const order = await finish()
  const txHash = `payout-tx-${order.terms.id}`
  const hash = (await stage.chain('ETH').blockHash(100)) ?? ''
  const ended = { succeeded: true, block: { height: 100, hash }, cost: amountOf('ETH:ETH', COST) }
  await standOn('another block')
  for (const time of ['first', 'second', 'third']) {
    takeBack(COST)
    stage.chain('ETH').mined(txHash, 200, 0n)
    await look(1)
    expect(await states(), time).toEqual([{ state: 'orphaned', status: 'DONE' }])
    await expectAgreement(`its money is back, the ${time} time`)
    const outflow = await claim()
    minePayout(stage, order, { txHash, height: 100, units: PAID, cost: COST })
    await endAgain(stage.world, outflow, again(txHash), ended)
    expect(await states(), time).toEqual([{ state: 'confirmed', status: 'DONE' }])
    await expectAgreement(`final again, the ${time} time`)
  }
})

test('what stood in the way of a payout before it was final does not once it has lost its block', async () => {
  await finish()
  await stage.db.query("UPDATE outflows SET trouble = 'no answer', trouble_since_ms = 1")
  await standOn('another block')
  await look(1)
  expect(await claim()).toMatchObject({ state: 'orphaned', trouble: null, troubleSinceMs: null })
})

/** All that the audit says of it, and no more. */
function stillOwed({ terms: { id } }: Order): string[] {
  return [
    `${id}: the failed payout ${id}:1 is booked as orphaned with 100 USDT:ERC20, and that is 0 USDT:ERC20`,
    `${id}: it is DONE and its outflow ${id}:1 is not confirmed`,
  ]
}

test('one that the chain rejects the second time is named, and its money stays owed', async () => {
  const order = await finish()
  await standOn('another block')
  takeBack(COST)
  await look(1)
  const outflow = await claim()
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, -COST)
  const ended = { succeeded: false, block: { height: 100, hash: 'h' }, cost: amountOf('ETH:ETH', COST) }
  await endAgain(stage.world, outflow, again('0xrejected'), ended)
  expect(await findOrder(stage.db, order.terms.id)).toMatchObject({
    state: { txHash: `payout-tx-${order.terms.id}` },
  })
  const { problems, balances } = await auditBooks(stage.db)
  expect(problems.map(({ subject, message }) => `${subject}: ${message}`)).toEqual(stillOwed(order))
  expect(balances.find(({ account }) => account === 'orphaned_payouts')?.units).toBe(-PAID)
  expect(stage.logged.at(-1)).toMatchObject({ level: 'error' })
})

test('one whose nonce was filled meanwhile can never be mined again: it is named, and its money stays owed', async () => {
  const order = await finish()
  await standOn('another block')
  takeBack(COST)
  await look(1)
  const outflow = await claim()
  await giveUpOrphan(stage.world, outflow, nobodyElse)
  await giveUpOrphan(stage.world, outflow, nobodyElse)
  const { problems, balances } = await auditBooks(stage.db)
  expect(problems.map(({ subject, message }) => `${subject}: ${message}`)).toEqual(stillOwed(order))
  expect(balances.find(({ account }) => account === 'orphaned_payouts')?.units).toBe(-PAID)
  expect(stage.logged.filter(({ level }) => level === 'error')).toHaveLength(1)
})

test.each([
  ['can never be mined again', (sweep: ClaimedOutflow) => giveUpOrphan(stage.world, sweep, nobodyElse)],
  [
    'fails the second time',
    async (sweep: ClaimedOutflow) => {
      stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, -COST)
      const ended = { succeeded: false, block: { height: 100, hash: 'h' }, cost: amountOf('ETH:ETH', COST) }
      await endAgain(stage.world, sweep, again('sweep-tx'), ended)
    },
  ],
])('gas that was brought, and then %s, is owed to nobody', async (_, end) => {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  const payoutId = 'sweep-ETH-1-1:1'
  const sweep = {
    payoutId,
    kind: 'sweep',
    asset: 'ETH:ETH',
    units: 900n,
    address: RESERVE,
    tag: null,
  } as const
  await planOutflow(stage.db, sweep, 1)
  await writeAttempt(stage, payoutId, 1, 'sweep-tx')
  await lookAt(stage, 'ETH', 112)
  const block = { height: 100, hash: 'final' }
  await endSweep(stage.world, await claim(), { succeeded: true, block, cost: amountOf('ETH:ETH', COST) })
  await standOn('another block')
  await look(1)
  await expectAgreement('it costs nothing for now')
  await end(await claim())
  expect(await stage.db.query('SELECT state FROM outflows')).toEqual([{ state: 'failed' }])
  await expectAgreement('it has ended')
})

test('money that was given back to the wallet and not booked as such is named', async () => {
  const { terms } = await finish()
  await standOn('another block')
  takeBack(COST)
  await look(1)
  await stage.corrupt(
    `UPDATE journal SET units = units + 1 WHERE entry_key LIKE '%:block_lost:%' AND credit = 'orphaned_payouts'`,
  )
  const { problems } = await auditBooks(stage.db)
  expect(problems.map(({ subject, message }) => `${subject}: ${message}`)).toContain(
    `${terms.id}: the orphaned payout ${terms.id}:1 is booked as orphaned with 100.000000000000000001 USDT:ERC20, and that is 100 USDT:ERC20`,
  )
})
