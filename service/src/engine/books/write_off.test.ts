import { hostname, userInfo } from 'node:os'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { verifyAudit } from '../../accounts/verify_audit.ts'
import { houseChain, readAuditBackwards } from '../../db/audit_log.ts'
import { readBalances } from '../../db/books.ts'
import type { Database } from '../../db/database.ts'
import { readOrphanedDeposits } from '../../db/figures.ts'
import { takeLease } from '../../db/leases.ts'
import { assert } from '../../domain/assert.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Order } from '../../domain/orders/order.ts'
import { HOUR_MS } from '../../domain/time.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  fundReserve,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
  tell,
} from '../testing/books_stage.ts'
import { failingDatabase } from '../testing/failing_database.ts'
import { tellOrderCommand } from '../testing/stage_commands.ts'
import { toldProblems } from '../testing/told_problems.ts'
import { confirmDeposits } from '../watching/deep_deposits.ts'
import type { Look } from '../watching/look.ts'

/**
 * What: what is missing of an order for good is written off once, all of it, by a word that the books and the audit log have; should it
 * come back, that is turned round by itself.
 * How: a real PostgreSQL, an order whose deposit leaves the chain after it was paid, and the commands as they are typed.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('write-off')
})

beforeEach(async () => {
  await stage.reset()
  await stage.empty('audit_log', 'audit_heads')
  await fundReserve(stage, 'ETH:ETH', 5n * 10n ** 18n)
})

afterAll(() => stage?.stop())

const UNITS = 1_000_000n
const BECAUSE = 'spent again by its sender'

async function run(...words: string[]): Promise<string> {
  return runWith(stage.db, ...words)
}

/** What `cambist order …` prints, or the sentence with which it refuses. */
function runWith(db: Database, ...words: string[]): Promise<string> {
  return tellOrderCommand(stage, words, db)
}

const writeOff = (id: string, because = BECAUSE) => run('write-off', id, '--because', because)

const problems = () => toldProblems(stage.db)

async function capital(): Promise<bigint> {
  const balances = await readBalances(stage.db)
  return balances.find(({ asset, account }) => asset === 'BTC:BTC' && account === 'capital')?.units ?? 0n
}

async function missing(): Promise<number> {
  const [figure] = await readOrphanedDeposits(stage.db)
  return figure?.amount ?? 0
}

type Paid = { readonly order: Order; readonly id: string; readonly key: string }

async function paid(): Promise<Paid> {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: UNITS, promises: 10n ** 18n })
  const key = await mineDeposit(stage, order, UNITS, 90)
  await confirmDeposit(stage, order, key)
  const payout = await sendPayout(stage, order)
  await confirmPayout(stage, order, { ...payout, cost: 1n })
  return { order, id: order.terms.id, key }
}

const unmine = ({ id, key }: Paid, branch = 0) =>
  tell(stage, id, `${key}:unmined:b@${branch}`, { kind: 'DepositUnmined', key })

const vanish = ({ id, key }: Paid, branch = 0) =>
  tell(stage, id, `${key}:vanished:b@${branch}`, { kind: 'DepositVanished', key })

async function lost(): Promise<Paid> {
  const one = await paid()
  await unmine(one)
  await vanish(one)
  return one
}

async function mineAgain({ id, key }: Paid, units = UNITS, hash = 'again'): Promise<void> {
  const [amount, seenAtMs] = [amountOf('BTC:BTC', units), stage.world.clock.nowMs()]
  const block = { height: 95, hash }
  await tell(stage, id, `${key}:mined:${hash}`, {
    kind: 'DepositSeen',
    key,
    txHash: 'again',
    amount,
    seenAtMs,
    block,
  })
}

/** As the watcher does, whose block is deep. */
async function confirmAgain(branch = 0): Promise<void> {
  const lease = await takeLease(stage.db, 'watch:BTC', 'me', stage.world.clock.wallMs(), HOUR_MS)
  assert(lease !== null, 'nobody else looks')
  const chain = stage.chain('BTC')
  const look: Pick<Look, 'world' | 'chain' | 'lease' | 'branch' | 'hold'> = {
    ...{ world: stage.world, chain, lease, branch, hold: async () => lease },
  }
  await confirmDeposits(look as Look, 100)
}

test('what is missing for good is written off once: capital bears it, the figure and the audit name it no more', async () => {
  const { id } = await lost()
  expect(await problems()).toHaveLength(1)
  expect(await missing()).toBe(0.01)
  expect(await writeOff(id.slice(-8))).toBe(
    `Wrote off 0.01 BTC:BTC of ${id} against capital, as operator:written_off:${id}:${id}:1.\n` +
      `It is in the audit log: cambist audit show ${houseChain('BTC:BTC')}`,
  )
  expect(await problems()).toEqual([])
  expect(await missing()).toBe(0)
  expect(await capital()).toBe(UNITS)
  const by = `${userInfo().username}@${hostname()}`
  expect(await writeOff(id)).toBe(
    `${id} was written off by ${by} on 2027-01-15 08:00:00Z: ${BECAUSE}; see cambist audit show ${houseChain('BTC:BTC')}`,
  )
  expect(await capital()).toBe(UNITS)
  expect(await run('show', id)).toMatch(new RegExp(`^${id} +0\\.01 BTC:BTC +2027-.* +${BECAUSE}$`, 'm'))
  const [row] = await readAuditBackwards(stage.db, houseChain('BTC:BTC'), 9, 9)
  expect(row).toMatchObject({ act: 'deposit_written_off', actor: 'operator', subject: id })
  expect(JSON.parse(row?.detail ?? '')).toMatchObject({ amount: '0.01', because: BECAUSE })
  expect((await verifyAudit(stage.db, [])).problems).toEqual([])
})

test('nothing is written off that is there, that may come back by itself, or of an order under way', async () => {
  const one = await paid()
  const { id, key } = one
  expect(await writeOff(id)).toBe(`Nothing is missing of what ${id} was paid for.`)
  await unmine(one)
  expect(await writeOff(id)).toBe(
    `${key} is seen and may come back by itself: wait for it, or until it is vanished.`,
  )
  await mineAgain(one)
  expect(await writeOff(id)).toContain(`${key} is mined and may come back by itself`)
  const open = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: UNITS, promises: 1n })
  expect(await writeOff(open.terms.id)).toBe(`${open.terms.id} is NEW, and neither DONE nor REFUNDED.`)
  const paying = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: UNITS, promises: 10n ** 18n })
  const deposit = await mineDeposit(stage, paying, UNITS, 90)
  await confirmDeposit(stage, paying, deposit)
  await sendPayout(stage, paying)
  await tell(stage, paying.terms.id, 'u', { kind: 'DepositUnmined', key: deposit })
  await tell(stage, paying.terms.id, 'v', { kind: 'DepositVanished', key: deposit })
  expect(await writeOff(paying.terms.id)).toContain('is WITHDRAW, and neither')
  expect(await writeOff('CB9999999999999999')).toBe('There is no order CB9999999999999999.')
  expect(await writeOff(id, '')).toContain('--because says why')
  expect(await capital()).toBe(0n)
})

test('of two who write off the same at once one does', async () => {
  const { id } = await lost()
  const told = await Promise.all([writeOff(id, 'one'), writeOff(id, 'two'), writeOff(id, 'three')])
  expect(told.filter((text) => text.startsWith('Wrote off'))).toHaveLength(1)
  expect(told.filter((text) => text.includes('was written off by'))).toHaveLength(2)
  expect(await capital()).toBe(UNITS)
  expect(await problems()).toEqual([])
})

test('where the audit log cannot be written, nothing is written off', async () => {
  const { id } = await lost()
  const failing = failingDatabase(stage.db, (text) => {
    if (text.includes('INSERT INTO audit_log')) throw new Error('the end')
  })
  await expect(runWith(failing, 'write-off', id, '--because', BECAUSE)).rejects.toThrow('the end')
  expect(await stage.db.query('SELECT 1 FROM operator_words')).toEqual([])
  expect(await capital()).toBe(0n)
  expect(await writeOff(id)).toContain('Wrote off')
})

test('a deposit that comes back after all turns its word round when it is confirmed, and lost again it is missing again', async () => {
  const one = await lost()
  const { id } = one
  await writeOff(id)
  await mineAgain(one)
  expect(await problems(), 'it is not deep yet').toEqual([])
  await confirmAgain()
  expect(await problems()).toEqual([])
  expect(await capital()).toBe(0n)
  expect(await missing()).toBe(0)
  await confirmAgain()
  expect(await capital(), 'told once more').toBe(0n)
  expect(await run('show', id)).toMatch(/-0\.01 BTC:BTC +2027-.* +what was written off is there again$/m)
  await unmine(one, 1)
  await vanish(one, 1)
  expect(await missing()).toBe(0.01)
  expect(await problems()).toEqual([
    `${id} missing: it is DONE, and of what came for it 0.01 BTC:BTC has left its chain`,
  ])
  expect(await writeOff(id)).toContain(`operator:written_off:${id}:${id}:3`)
  expect(await problems()).toEqual([])
  expect(await capital()).toBe(UNITS)
})

test('what is written off of a deposit that is there is named', async () => {
  const one = await lost()
  await writeOff(one.id)
  await mineAgain(one)
  await tell(stage, one.id, `${one.key}:confirmed:again`, { kind: 'DepositConfirmed', key: one.key })
  expect(await problems()).toContain(
    `${one.id} missing: it is DONE, and 0.01 BTC:BTC of it is written off, while 0 BTC:BTC is missing`,
  )
})

test('what replaced the lost deposit is closed as ours once the loss is written off', async () => {
  const { order, id } = await lost()
  const extra = await mineDeposit(stage, order, 999_000n, 92)
  await confirmDeposit(stage, order, extra)
  const closeIt = (...even: string[]) =>
    run('close-unclaimed', extra, '--because', `ours: replaces the deposit of ${id}`, ...even)
  expect(await closeIt('--even-so')).toContain('not yet: what the order was paid for is gone')
  await writeOff(id)
  expect(await run('unclaimed')).toMatch(/ no: it may be what was written off of its order; see order show$/)
  const doubt = 'no: it may be what was written off of its order; see order show. '
  expect(await closeIt()).toBe(
    `${extra}: ${doubt}It may have been paid already. Where it is ours, or you know that nobody was paid for it, --even-so closes it.`,
  )
  expect(await closeIt('--even-so')).toMatch(
    new RegExp(`^${doubt}Send nothing that may have been paid already\\.\n${extra} is closed\\. `),
  )
  expect(await capital()).toBe(UNITS - 999_000n)
  expect(await problems()).toEqual([])
})

test('a deposit that comes back with another amount is no longer waited for: the loss is written off, and it is closed', async () => {
  const one = await lost()
  await mineAgain(one, UNITS - 1n)
  await confirmAgain()
  expect(await writeOff(one.id)).toContain('Wrote off 0.01 BTC:BTC')
  expect(await run('close-unclaimed', one.key, '--even-so', '--because', 'ours')).toContain('is closed')
  expect(await capital()).toBe(1n)
  expect(await problems()).toEqual([])
})
