import { hostname, userInfo } from 'node:os'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { verifyAudit } from '../../accounts/verify_audit.ts'
import { houseChain, readAuditBackwards } from '../../db/audit_log.ts'
import { readBalances } from '../../db/books.ts'
import type { Database } from '../../db/database.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Order } from '../../domain/orders/order.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  fundReserve,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
  strayDeposit,
  tell,
} from '../testing/books_stage.ts'
import { failingDatabase } from '../testing/failing_database.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { tellAuditCommand, tellOrderCommand } from '../testing/stage_commands.ts'
import { toldProblems } from '../testing/told_problems.ts'
import { bookHouseDeposits, noteHouseDeposit, unmineHouseDeposits } from './house.ts'

/**
 * What: unclaimed money that was given back is closed once, by a word that the books and the audit log have; nothing else can be, and
 * what a reorganisation takes of it afterwards is named.
 * How: a real PostgreSQL, orders that facts brought where they are, and the commands as they are typed.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('close-unclaimed')
})

beforeEach(async () => {
  await stage.reset()
  await stage.empty('audit_log', 'audit_heads')
})

afterAll(() => stage?.stop())

/** What `cambist order …` prints, or the sentence with which it refuses. */
async function run(...words: string[]): Promise<string> {
  return runWith(stage.db, ...words)
}

function runWith(db: Database, ...words: string[]): Promise<string> {
  return tellOrderCommand(stage, words, db)
}

const close = (key: string, because = 'given back, tx 0x4f') =>
  run('close-unclaimed', key, '--because', because)
const closeEvenSo = (key: string, because: string) =>
  run('close-unclaimed', key, '--even-so', '--because', because)
const takeBack = (key: string) => run('close-unclaimed', key, '--gone', '--because', 'it never came')

const note = (about: string) => tellAuditCommand(stage, 'note', about, '--because', 'by 0x8b')

const problems = () => toldProblems(stage.db)

async function balance(asset: string, account: string): Promise<bigint> {
  const balances = await readBalances(stage.db)
  return balances.find((one) => one.asset === asset && one.account === account)?.units ?? 0n
}

const NONE = 'There is no unclaimed money.'

async function underWay(): Promise<{ order: Order; end: () => Promise<void> }> {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 90))
  const payout = await sendPayout(stage, order)
  return { order, end: () => confirmPayout(stage, order, { ...payout, cost: 1n }) }
}

/** Paid once more after it was paid out; answers the key of that. */
async function paidTwice(): Promise<{ order: Order; key: string }> {
  await fundReserve(stage, 'ETH:ETH', 5n * 10n ** 18n)
  const { order, end } = await underWay()
  await end()
  const key = await mineDeposit(stage, order, 500_000n, 91)
  await confirmDeposit(stage, order, key)
  return { order, key }
}

/** Of nobody, and confirmed. */
async function stray(): Promise<string> {
  await strayDeposit(stage, {
    asset: 'BTC:BTC',
    units: 7_000n,
    address: 'late',
    purpose: 'deposit',
    height: 90,
  })
  await bookHouseDeposits(stage.world, 'BTC', 100, 0, nobodyElse)
  return 'BTC:house-tx-BTC:BTC-7000:0'
}

test('what an order could not use is closed once: it is capital, leaves the list, and every list tells of it', async () => {
  const { order, key } = await paidTwice()
  const { id } = order.terms
  expect(await run('unclaimed')).toMatch(/ yes$/)
  expect(await close(key)).toBe(
    `${key} is closed. 0.005 BTC:BTC are capital, as operator:closed_unclaimed:${id}:${key}:1.\n` +
      `It is in the audit log: cambist audit show ${houseChain('BTC:BTC')}\n` +
      `Before you send it: \`cambist audit note ${key} --because …\``,
  )
  expect(await run('unclaimed')).toBe(NONE)
  expect(await balance('BTC:BTC', 'unclaimed')).toBe(0n)
  expect(await balance('BTC:BTC', 'capital')).toBe(-500_000n)
  expect(await problems()).toEqual([])
  const at = '2027-01-15 08:00:00Z'
  const line = `^${key} +0\\.005 BTC:BTC +${at} +given back, tx 0x4f`
  expect(await run('unclaimed', '--closed')).toMatch(new RegExp(`${line} +-$`, 'm'))
  await note(key)
  expect(await run('unclaimed', '--closed')).toMatch(new RegExp(`${line} +${at} by 0x8b$`, 'm'))
  expect(await run('show', id)).toMatch(new RegExp(`${line}$`, 'm'))
  expect(await run('find', `deposit-tx-${id}-500000`)).toMatch(
    new RegExp(`^deposit, closed +${id} +${key}$`, 'm'),
  )
  const by = `${userInfo().username}@${hostname()}`
  const where = `see cambist audit show ${houseChain('BTC:BTC')}`
  for (const because of ['given back once more', 'given back, tx 0x4f'])
    expect(await close(key, because)).toBe(
      `${key} was closed by ${by} on ${at}: given back, tx 0x4f; ${where}`,
    )
  expect(await balance('BTC:BTC', 'capital')).toBe(-500_000n)
  const rows = await readAuditBackwards(stage.db, houseChain('BTC:BTC'), 9, 9)
  const [row, ...others] = rows.filter(({ act }) => act !== 'noted')
  expect(others).toEqual([])
  expect(row).toMatchObject({ act: 'unclaimed_closed', actor: 'operator', subject: key })
  expect(JSON.parse(row?.detail ?? '')).toMatchObject({
    asset: 'BTC:BTC',
    amount: '0.005',
    because: 'given back, tx 0x4f',
    entry: `operator:closed_unclaimed:${id}:${key}:1`,
    os_host: hostname(),
  })
  expect((await verifyAudit(stage.db, [])).problems).toEqual([])
})

test('a note has the whole name of what was closed, or is refused: without one it was not sent', async () => {
  const { order, key } = await paidTwice()
  const txHash = `deposit-tx-${order.terms.id}-500000`
  await close(key)
  const isNoted = async () => (await run('unclaimed', '--closed')).includes('by 0x8b')
  for (const mistyped of [`BTC:${txHash}`, `${key}:0`, key.toLowerCase(), `${txHash}:0`, txHash])
    expect(await note(mistyped)).toContain(
      `No deposit, payout or refund has the name ${mistyped}, to the last letter. Is it ${key}? `,
    )
  for (const unknown of ['BTC:none', 'CB0000000000000099:1', 'CB1:1', 'BTC:', ':'])
    expect(await note(unknown)).toMatch(/to the last letter\. `cambist order unclaimed` and /)
  expect(await stage.db.query(`SELECT 1 FROM audit_log WHERE act = 'noted'`)).toEqual([])
  expect(await note(` ${key} `)).toContain('It is in the audit log')
  expect(await isNoted()).toBe(true)
})

test('whatever has a name is noted by it, and what has none by a word', async () => {
  const { order, key } = await paidTwice()
  const { id } = order.terms
  const names = [key, `BTC:deposit-tx-${id}-1000000:0`, `${id}:1`, id]
  for (const about of [...names, await stray(), 'restore', 'signer.signed_transactions', 'ETH'])
    expect(await note(about)).toContain('It is in the audit log')
  const shown = await run('show', id)
  for (const name of names) expect(shown).toMatch(new RegExp(`^${name} +2027-.* by 0x8b$`, 'm'))
})

test('money of nobody is closed as well, and of a token that is not listed only the word is kept', async () => {
  const key = await stray()
  expect(await close(key)).toContain('0.00007 BTC:BTC are capital')
  stage.advance(1)
  const own = {
    address: 'late',
    key: { purpose: 'deposit', index: 7 },
    orderId: null,
    chain: 'ETH',
  } as const
  const transfer = { id: '7', txHash: 'tx-7', to: 'late', asset: { unlisted: '0xtoken' }, units: 9n } as const
  await noteHouseDeposit(stage.world, 'ETH', transfer, own, { height: 80, hash: 'block' })
  await bookHouseDeposits(stage.world, 'ETH', 100, 0, nobodyElse)
  expect(await close('ETH:7', 'worthless')).toContain('9 units of 0xtoken, which the books do not have.')
  expect(await run('unclaimed')).toBe(NONE)
  expect(await run('find', 'tx-7')).toMatch(/^unlisted, closed /m)
  expect(JSON.parse(await run('unclaimed', '--closed', '--json'))).toMatchObject([
    { about: 'ETH:7', owner: 'house', units: '9', because: 'worthless' },
    { about: key, owner: 'house', units: '7000' },
  ])
  expect(await run('unclaimed', '--closed', '--limit', '1')).toContain('There are more than these 1')
  expect(await balance('BTC:BTC', 'capital')).toBe(-7_000n)
  expect(await problems()).toEqual([])
})

test('nothing is closed that may not be given back, is no unclaimed money, or of which nobody says why', async () => {
  const { order, end } = await underWay()
  const { id } = order.terms
  const extra = await mineDeposit(stage, order, 500_000n, 101)
  await strayDeposit(stage, {
    asset: 'BTC:BTC',
    units: 8_000n,
    address: 'lost',
    purpose: 'deposit',
    height: 99,
  })
  const hash = (await stage.chain('BTC').blockHash(99)) ?? ''
  await stage.db.transaction((tx) => unmineHouseDeposits(tx, 'BTC', hash, 0, 1))
  await fundReserve(stage, 'BTC:BTC', 9_000n)
  expect(await close(extra)).toBe(`${extra}: not yet: it is not final, and the order is WITHDRAW.`)
  await end()
  await confirmDeposit(stage, order, extra)
  expect(await close(extra)).toBe(`${extra}: not yet: it is not final.`)
  const counted = `BTC:deposit-tx-${id}-1000000:0`
  for (const [key, told] of [
    [counted, `${counted} counts for its order ${id}.`],
    ['BTC:house-tx-BTC:BTC-8000:0', 'has lost its block, and is in no books'],
    ['BTC:house-tx-BTC:BTC-9000:0', 'came to a reserve, and is your capital already'],
    ['BTC:none', 'There is no deposit BTC:none: '],
    ['nonsense', 'There is no deposit nonsense: '],
  ] as const)
    expect(await close(key)).toContain(told)
  await lookAt(stage, 'BTC', 120)
  expect(await close(extra, ' ')).toContain('--because says why')
  expect(await close(extra, 'x'.repeat(1_001))).toContain('--because says why')
  expect(await run('unclaimed', '--closed', '--reserve')).toBe('Either --closed or --reserve.')
  expect(await run('unclaimed', '--closed')).toBe('Nothing was closed.')
  expect(await close(extra)).toContain('is closed')
})

test('what may replace the lost deposit of its order is not closed', async () => {
  const { order, key } = await paidTwice()
  const lost = `BTC:deposit-tx-${order.terms.id}-1000000:0`
  await tell(stage, order.terms.id, `${lost}:unmined`, { kind: 'DepositUnmined', key: lost })
  expect(await close(key)).toBe(`${key}: not yet: what the order was paid for is gone.`)
})

test('of two who close the same at once one does', async () => {
  for (const key of [await stray(), (await paidTwice()).key]) {
    const told = await Promise.all([close(key, 'one'), close(key, 'two'), close(key, 'three')])
    expect(told.filter((text) => text.includes(' is closed. '))).toHaveLength(1)
    expect(told.filter((text) => text.includes(' was closed by '))).toHaveLength(2)
  }
  expect(await balance('BTC:BTC', 'capital')).toBe(-507_000n)
  expect(await problems()).toEqual([])
})

test('wherever it ends before its end, nothing of a word is kept', async () => {
  const key = await stray()
  const kept = () =>
    stage.db.query(
      `SELECT (SELECT count(*) FROM operator_words) + (SELECT count(*) FROM audit_log) + (SELECT count(*) FROM audit_heads)
         + (SELECT count(*) FROM journal WHERE starts_with(entry_key, 'operator:')) AS count`,
    )
  let ends = 0
  for (let told = ''; told === ''; ends += 1) {
    let left = ends
    const ending = failingDatabase(stage.db, (text) => {
      if (!/INSERT|UPDATE/.test(text.replace('FOR UPDATE', ''))) return
      left -= 1
      if (left < 0) throw new Error('the end')
    })
    told = await runWith(ending, 'close-unclaimed', key, '--because', 'given back').catch((error) => {
      expect(error).toMatchObject({ message: 'the end' })
      return ''
    })
    if (told === '') expect(await kept()).toEqual([{ count: 0 }])
    else expect(told).toContain('is closed')
  }
  expect(ends, 'its row, its entry, and the log').toBeGreaterThan(3)
  expect(await problems()).toEqual([])
})

test('an extra that is closed and loses its block is named until it is back, and never counts; gone for good, the word is turned round', async () => {
  const { order, key } = await paidTwice()
  const { id } = order.terms
  await close(key)
  const unmine = (times: number) =>
    tell(stage, id, `${key}:unmined:b@${times}`, { kind: 'DepositUnmined', key })
  const mine = async (times: number) => {
    const block = { height: 92, hash: `again-${times}` }
    const [amount, seenAtMs] = [amountOf('BTC:BTC', 500_000n), stage.world.clock.nowMs()]
    await tell(stage, id, `${key}:mined:again-${times}`, {
      kind: 'DepositSeen',
      key,
      txHash: 'again',
      amount,
      seenAtMs,
      block,
    })
    await tell(stage, id, `${key}:confirmed:again-${times}@0`, { kind: 'DepositConfirmed', key })
  }
  const lost = `${key} missing: it was closed with 0.005 BTC:BTC, which is not confirmed on its chain any more`
  const wrongSide = 'BTC:BTC journal: unclaimed is 0.005 BTC:BTC, on the wrong side'
  await unmine(1)
  expect((await problems()).toSorted()).toEqual([wrongSide, lost].toSorted())
  expect(await close(key)).toMatch(
    /has lost its block and may come back; 0\.005 BTC:BTC of it was closed by /,
  )
  expect(await run('unclaimed')).toBe(NONE)
  await mine(1)
  expect(await problems(), 'it is back').toEqual([])
  expect(await run('unclaimed')).toBe(NONE)
  expect(await stage.db.query('SELECT role FROM deposits WHERE deposit_key = $1', [key])).toEqual([
    { role: 'extra' },
  ])

  await unmine(2)
  await tell(stage, id, `${key}:vanished`, { kind: 'DepositVanished', key })
  expect(await problems()).toContain(lost)
  expect(await close(key)).toMatch(
    /0\.005 BTC:BTC is closed, is gone .* --gone .* It was closed by .*: given back, tx 0x4f;/,
  )
  expect(await takeBack(key)).toBe(
    `${key} is no longer closed: it is gone. 0.005 BTC:BTC are taken off capital again, as operator:closed_unclaimed:${id}:${key}:2.\n` +
      `It is in the audit log: cambist audit show ${houseChain('BTC:BTC')}`,
  )
  expect(await problems()).toEqual([])
  expect(await balance('BTC:BTC', 'capital')).toBe(0n)
  expect(await takeBack(key)).toBe(`${key} is not closed.`)
  expect(await close(key)).toContain('has left its chain, and is in no books')

  await mine(2)
  expect(await problems()).toEqual([])
  expect(await run('unclaimed')).toMatch(/ no: it was closed before, and is back; see --closed$/)
  expect(await close(key, 'given back')).toContain(
    `${key}: no: it was closed before, and is back; see --closed.`,
  )
  expect(await run('unclaimed'), 'nothing was said').toContain(key)
  expect(await closeEvenSo(key, 'ours now')).toMatch(/^no: it was closed before, .*\n.*:3\.$/m)
  expect(await run('unclaimed')).toBe(NONE)
  expect(
    JSON.parse(await run('show', id, '--json')).words.map(({ units }: { units: string }) => units),
  ).toEqual(['500000', '-500000', '500000'])
  expect(await problems()).toEqual([])
})

test('money of nobody that is closed and loses its block is named, and its word turned round; so is what comes back with another amount', async () => {
  const key = await stray()
  await close(key)
  const hash = (await stage.chain('BTC').blockHash(90)) ?? ''
  const unmine = (block: string) => stage.db.transaction((tx) => unmineHouseDeposits(tx, 'BTC', block, 0, 1))
  await unmine(hash)
  const lost = `${key} missing: it was closed with 0.00007 BTC:BTC, which is not confirmed on its chain any more`
  expect(await problems()).toContain(lost)
  const own = {
    address: 'late',
    key: { purpose: 'deposit', index: 1_000_090 },
    orderId: null,
    chain: null,
  } as const
  const transfer = { id: key.slice(4), txHash: 'again', to: 'late', asset: 'BTC:BTC', units: 6_000n } as const
  await noteHouseDeposit(stage.world, 'BTC', transfer, own, { height: 91, hash: 'other' })
  expect(await close(key)).toContain('may come back')
  expect(await takeBack(key)).toContain('may come back')
  await bookHouseDeposits(stage.world, 'BTC', 100, 1, nobodyElse)
  expect(await problems()).toContain(lost)
  expect(await close(key), 'the same words never mean two things').toContain(
    '0.00007 BTC:BTC is closed, is gone',
  )
  expect(await takeBack(key)).toContain('0.00007 BTC:BTC are taken off capital again')
  expect(await takeBack(key)).toBe(`${key} is not closed.`)
  expect(await problems()).toEqual([])
  expect(await run('close-unclaimed', key, '--gone', '--even-so', '--because', 'both')).toBe(
    'Either --gone or --even-so.',
  )
  expect(await closeEvenSo(key, 'less of it')).toContain('0.00006 BTC:BTC are capital')
  expect(await takeBack(key)).toContain('was closed by')
  await unmine('other')
  expect(await takeBack(key)).toContain('0.00006 BTC:BTC are taken off capital again')
  expect(await balance('BTC:BTC', 'capital')).toBe(0n)
  expect(await problems()).toEqual([])
})

test.each([
  ['another amount', `UPDATE audit_log SET detail = replace(detail, '0.00007', '0.00006')`],
  ['no row', 'DELETE FROM audit_log'],
  ['no JSON', `UPDATE audit_log SET detail = 'gone'`],
])('a word that the audit log does not have is named: %s', async (_, sql) => {
  const key = await stray()
  await close(key)
  await stage.corrupt(sql)
  const entry = `operator:closed_unclaimed:house:${key}:1`
  expect(await problems()).toContain(
    `${key} journal: the audit log does not have, once, that an operator has said ${entry}`,
  )
})

test('a row of the audit log without its word is named', async () => {
  const key = await stray()
  await close(key)
  await stage.corrupt('DELETE FROM operator_words')
  expect(await problems()).toContain(
    `operator:closed_unclaimed:house:${key}:1 journal: the audit log has that an operator has said it, and there is no such word`,
  )
})

test('a word without its entry is named, and an entry without its word, and one of another amount', async () => {
  const key = await stray()
  await close(key)
  const entry = `operator:closed_unclaimed:house:${key}:1`
  await stage.corrupt('UPDATE journal SET units = 6999 WHERE entry_key = $1', [entry])
  expect(await problems()).toContain(
    `${entry} journal: an operator has said unclaimed capital 7000 BTC:BTC, and booked is unclaimed capital 6999 BTC:BTC`,
  )
  await stage.corrupt('DELETE FROM journal WHERE entry_key = $1', [entry])
  expect((await problems()).toSorted()).toEqual([
    expect.stringMatching(/^house balances: unclaimed is -0\.00007 BTC:BTC, while its deposits come to 0 /),
    `${entry} journal: an operator has said unclaimed capital 7000 BTC:BTC, and booked is nothing`,
  ])
  await stage.corrupt(
    `INSERT INTO journal VALUES (0, 'house', 'operator:closed_unclaimed:house:BTC:x:1', 1, 'BTC:BTC', 'unclaimed', 'capital', 7000, 1)`,
  )
  expect(await problems()).toContain(
    'operator:closed_unclaimed:house:BTC:x:1 journal: an operator has said nothing, and booked is unclaimed capital 7000 BTC:BTC',
  )
})
