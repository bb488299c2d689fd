import { hostname, userInfo } from 'node:os'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { verifyAudit } from '../../accounts/verify_audit.ts'
import { houseChain, readAuditBackwards } from '../../db/audit_log.ts'
import { readBalances } from '../../db/books.ts'
import { type ClaimedOutflow, claimOutflows } from '../../db/claim_outflows.ts'
import { readOrphanedPayouts } from '../../db/figures.ts'
import { assert } from '../../domain/assert.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Intent } from '../../domain/payouts/intent.ts'
import { endAgain, giveUpOrphan, orphanOutflows } from '../payouts/orphan.ts'
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
  tell,
} from '../testing/books_stage.ts'
import { failingDatabase } from '../testing/failing_database.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { tellOrderCommand } from '../testing/stage_commands.ts'
import { toldProblems } from '../testing/told_problems.ts'
import { compareChain } from './compare.ts'

/**
 * What: what is owed of a payout that was final and can never be mined again is closed once, all of it, by a word that the books and the
 * audit log have; its order stays as it is. That it is turned round when the payout is mined after all: filled_gap.test.ts.
 * How: a real PostgreSQL, an order whose payout loses its block and is given up, a chain on paper, and the commands as they are typed.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('close-owed')
})

beforeEach(async () => {
  await beginAnew()
  await stage.empty('audit_log', 'audit_heads')
})

afterAll(() => stage?.stop())

async function beginAnew(): Promise<void> {
  await stage.reset()
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
}

const ETHER = 10n ** 18n
const PAID = 100n * ETHER
const COST = 21_000n
const BECAUSE = 'to be paid by hand to 0x4f'

const run = (...words: string[]) => tellOrderCommand(stage, words)
const close = (payoutId: string, because = BECAUSE) => run('close-owed', payoutId, '--because', because)

const problems = () => toldProblems(stage.db)

/** Above what was put in. */
async function gained(): Promise<bigint> {
  const balances = await readBalances(stage.db)
  const is = ({ asset, account }: (typeof balances)[number]) =>
    asset === 'USDT:ERC20' && account === 'capital'
  return -(balances.find(is)?.units ?? 0n) - 1_000n * ETHER
}

async function owed(): Promise<number> {
  const [figure] = await readOrphanedPayouts(stage.db)
  return figure?.amount ?? 0
}

type Paid = { readonly id: string; readonly deposit: string; readonly payoutId: string }

/** An order that is DONE and whose payout is final. */
async function paid(): Promise<Paid> {
  const order = await placeOrder(stage, 'ETH:ETH', 'USDT:ERC20', { asks: ETHER, promises: PAID })
  const deposit = await mineDeposit(stage, order, ETHER, 60)
  await confirmDeposit(stage, order, deposit)
  const { payoutId, txHash } = await sendPayout(stage, order)
  await lookAt(stage, 'ETH', 112)
  minePayout(stage, order, { txHash, height: 100, units: PAID, cost: COST })
  await confirmPayout(stage, order, { payoutId, txHash, cost: COST, height: 100 })
  return { id: order.terms.id, deposit, payoutId }
}

/** Its block is another one by now. Answers it as an engine has it. */
async function orphan(): Promise<ClaimedOutflow> {
  await stage.db.query("UPDATE chain_blocks SET hash = 'another' WHERE chain = 'ETH' AND height = 100")
  stage.chain('ETH').move(100, 'USDT:ERC20', RESERVE, PAID)
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, COST)
  await orphanOutflows(stage.world, 'ETH', { kind: 'replaced', aboveHeight: 0 }, 1, nobodyElse)
  const time = { nowMs: stage.world.clock.nowMs(), wallMs: stage.world.clock.wallMs(), claimMs: 0 }
  const [outflow] = await claimOutflows(stage.db, 'ETH', 'reserve', time, 5)
  assert(outflow !== undefined, 'it is due')
  return outflow
}

async function givenUp(): Promise<Paid> {
  const one = await paid()
  await giveUpOrphan(stage.world, await orphan(), nobodyElse)
  return one
}

/** Its deposit has lost its block as well; `vanished`: for good. */
async function loseDeposit({ id, deposit: key }: Paid, becomes: 'mined anew' | 'vanished'): Promise<void> {
  await tell(stage, id, `${key}:unmined:b@1`, { kind: 'DepositUnmined', key })
  if (becomes === 'vanished') await tell(stage, id, `${key}:vanished:b@1`, { kind: 'DepositVanished', key })
}

test('what is owed for good is closed once: it is capital, the figure and the audit name it no more, and its order stays', async () => {
  const { id, payoutId } = await givenUp()
  expect(await problems()).toHaveLength(2)
  expect(await owed()).toBe(100)
  const entry = `operator:closed_owed:${id}:${payoutId}:1`
  const chain = houseChain('USDT:ERC20')
  expect(await close(payoutId)).toBe(
    `What was owed of ${payoutId} is closed: 100 USDT:ERC20 are capital, as ${entry}.\n` +
      'Pay it by hand, once.\nWhat leaves our own addresses for that is booked with `cambist ledger book`.\n' +
      `It is in the audit log: cambist audit show ${chain}\n` +
      `Before you send it: \`cambist audit note ${payoutId} --because …\``,
  )
  expect(await problems()).toEqual([])
  expect(await owed()).toBe(0)
  expect(await gained()).toBe(PAID)
  const compared = await compareChain(stage.db, stage.chain('ETH'), { kind: 'all' })
  assert(compared.kind !== 'inconclusive', 'the chain answers')
  expect(compared.comparisons.filter(({ difference }) => difference !== 0n)).toEqual([])
  const by = `${userInfo().username}@${hostname()}`
  expect(await close(payoutId, 'again')).toBe(
    `${payoutId} was closed by ${by} on 2027-01-15 08:00:00Z: ${BECAUSE}; see cambist audit show ${chain}`,
  )
  expect(await gained()).toBe(PAID)
  const shown = await run('show', id)
  expect(shown).toMatch(new RegExp(`^${payoutId} +100 USDT:ERC20 +2027-.* +${BECAUSE}$`, 'm'))
  expect(shown).toMatch(/^Status +DONE,/m)
  const [row] = await readAuditBackwards(stage.db, chain, 9, 9)
  expect(row).toMatchObject({ act: 'owed_closed', actor: 'operator', subject: payoutId })
  expect(JSON.parse(row?.detail ?? '')).toMatchObject({ amount: '100', because: BECAUSE, entry })
  expect((await verifyAudit(stage.db, [])).problems).toEqual([])
})

test('one that was mined again and failed is closed as well', async () => {
  const { payoutId } = await paid()
  const outflow = await orphan()
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, -COST)
  const ended = { succeeded: false, block: { height: 100, hash: 'h' }, cost: amountOf('ETH:ETH', COST) }
  await endAgain(stage.world, outflow, { txHash: '0xrejected', intent: { family: 'evm' } as Intent }, ended)
  expect(await close(payoutId)).toMatch(
    /100 USDT:ERC20 are capital.*\nIt is in block 100, and may have moved a part: .* pay by hand what is missing, once\.\n/,
  )
  expect(await problems()).toEqual([])
})

test('who closes what is owed of an order whose own deposit is gone too is told to pay nothing', async () => {
  const gone = 'Its own deposit is gone: 1 ETH:ETH is missing. Pay nothing unless that is back.'
  for (const becomes of ['vanished', 'mined anew'] as const) {
    const one = await givenUp()
    await loseDeposit(one, becomes)
    const told = await close(one.payoutId)
    expect(told, 'the books need the word').toContain('is closed: 100 USDT:ERC20 are capital')
    expect(told.split('\n')[1]).toBe(gone)
    expect(told).not.toMatch(/by hand|ledger book|Before you send/)
    await beginAnew()
  }
})

test('a deposit that is gone and written off is told as that, and one that is back is no reason not to pay', async () => {
  const writtenOff = await givenUp()
  await loseDeposit(writtenOff, 'vanished')
  await run('write-off', writtenOff.id, '--because', 'spent again by its sender')
  expect(await close(writtenOff.payoutId)).toMatch(
    /^Its own deposit is gone: 1 ETH:ETH of it was written off\. Pay nothing unless other money /m,
  )
  expect(await problems()).toEqual([])
  await beginAnew()
  const back = await givenUp()
  await loseDeposit(back, 'mined anew')
  const { deposit: key } = back
  const block = { height: 61, hash: 'again' }
  const seen = { txHash: 'again', amount: amountOf('ETH:ETH', ETHER), seenAtMs: 1, block }
  await tell(stage, back.id, `${key}:mined:again`, { kind: 'DepositSeen', key, ...seen })
  await tell(stage, back.id, `${key}:confirmed:again`, { kind: 'DepositConfirmed', key })
  expect(JSON.parse(await run('close-owed', back.payoutId, '--because', BECAUSE, '--json'))).toMatchObject({
    minedHeight: null,
    loss: { missing: { asset: 'ETH:ETH', units: '0' }, writtenOff: { units: '0' } },
  })
})

test('nothing is closed that is paid, may be mined, was never told as paid, or pays nobody', async () => {
  const { id, payoutId } = await paid()
  const nothing = `Nothing is owed of ${payoutId} that was final and lost its block: it is `
  expect(await close(payoutId)).toBe(`${nothing}confirmed.`)
  await orphan()
  expect(await close(payoutId)).toBe(`${payoutId} has lost its block and is sent again: it may be mined yet.`)
  expect(await close(payoutId, '')).toContain('--because says why')
  const open = await placeOrder(stage, 'ETH:ETH', 'USDT:ERC20', { asks: ETHER, promises: PAID })
  await confirmDeposit(stage, open, await mineDeposit(stage, open, ETHER, 60))
  const failing = (await sendPayout(stage, open)).payoutId
  expect(await close(failing)).toMatch(/it is (signed|broadcast)\.$/)
  await stage.db.query(`UPDATE outflows SET state = 'failed' WHERE payout_id = $1`, [failing])
  expect(await close(failing), 'its order was not told that it is paid').toMatch(/it is failed\.$/)
  for (const name of [id, `${id}:9`, 'house-ETH-0:1', 'CB1:1'])
    expect(await close(name)).toContain(`There is no payout or refund ${name}: `)
  expect(await stage.db.query('SELECT 1 FROM operator_words')).toEqual([])
})

test('of several who close the same at once one does', async () => {
  const { payoutId } = await givenUp()
  const told = await Promise.all(['one', 'two', 'three'].map((because) => close(payoutId, because)))
  expect(told.filter((text) => text.includes('is closed: 100'))).toHaveLength(1)
  expect(told.filter((text) => text.includes('was closed by'))).toHaveLength(2)
  expect(await gained()).toBe(PAID)
  expect(await problems()).toEqual([])
})

test('where the audit log cannot be written, nothing is closed', async () => {
  const { payoutId } = await givenUp()
  const failing = failingDatabase(stage.db, (text) => {
    if (text.includes('INSERT INTO audit_log')) throw new Error('the end')
  })
  const words = ['close-owed', payoutId, '--because', BECAUSE]
  await expect(tellOrderCommand(stage, words, failing)).rejects.toThrow('the end')
  expect(await stage.db.query('SELECT 1 FROM operator_words')).toEqual([])
  expect(await owed()).toBe(100)
  expect(await close(payoutId)).toContain('is closed')
})

test('a word whose row in the audit log or whose entry is not that is named', async () => {
  const { id, payoutId } = await givenUp()
  await close(payoutId)
  const entry = `operator:closed_owed:${id}:${payoutId}:1`
  await stage.corrupt(`DELETE FROM audit_log WHERE act = 'owed_closed'`)
  expect(await problems()).toEqual([
    `${payoutId} journal: the audit log does not have, once, that an operator has said ${entry}`,
  ])
  await stage.corrupt(`UPDATE journal SET units = units - 1 WHERE entry_key = '${entry}'`)
  expect(await problems()).toContain(
    `${entry} journal: an operator has said orphaned_payouts capital ${PAID} USDT:ERC20, and booked is orphaned_payouts capital ${PAID - 1n} USDT:ERC20`,
  )
})

test('what is closed of a payout that is there is named', async () => {
  const { id, payoutId } = await givenUp()
  await close(payoutId)
  await stage.corrupt(`UPDATE outflows SET state = 'confirmed' WHERE payout_id = '${payoutId}'`)
  await stage.corrupt(
    `INSERT INTO journal VALUES (0, 'house', '${payoutId}:block_found:h@1', 1, 'USDT:ERC20', 'orphaned_payouts', 'wallet', ${PAID}, 1)`,
  )
  expect(await problems()).toContain(
    `${id} outflows: the confirmed payout ${payoutId} is booked as orphaned with -100 USDT:ERC20, and that is 0 USDT:ERC20`,
  )
})
