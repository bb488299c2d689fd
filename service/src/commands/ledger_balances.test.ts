import { Command } from 'commander'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { CommandRefused } from '../command_refused.ts'
import { tellJournalLines } from '../db/journal_lines.ts'
import type { AssetId } from '../domain/catalog/assets.ts'
import { assetOf } from '../domain/catalog/assets.ts'
import { parseDecimal } from '../domain/money/decimal.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  fundReserve,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
} from '../engine/testing/books_stage.ts'
import { registerLedgerBalances } from './ledger_balances.ts'
import { registerLedgerEntries } from './ledger_entries.ts'

/**
 * What: balances are those of now or of a time past, entries are what was booked between two times, and the ones are the sums of the
 * others, to the unit.
 * How: a real PostgreSQL with an order that is paid, and the commands as they are typed.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('ledger_balances')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

/** What it put out, or the sentence with which it refused. */
async function run(...words: string[]): Promise<string> {
  const told: string[] = []
  const world = {
    open: async () => ({ db: stage.db, clock: stage.world.clock, close: async () => {} }),
    print: (text: string) => void told.push(`${text}\n`),
    write: async (text: string) => told.push(text) > 0,
  }
  const ledger = new Command('ledger').exitOverride()
  registerLedgerBalances(ledger, world)
  registerLedgerEntries(ledger, world)
  try {
    await ledger.parseAsync(words, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommandRefused)) throw error
    return error.message
  }
  return told.join('')
}

type Told = { asset: AssetId; account: string; units: string; amount: string }

async function balances(...words: string[]): Promise<readonly Told[]> {
  return JSON.parse(await run('balances', ...words, '--json')).balances
}

const ETHER = 10n ** 18n

/** A minute passes before each step, so that there is a time between any two; answers the one now. */
function later(): string {
  stage.advance(60_000)
  return new Date(stage.world.clock.nowMs()).toISOString()
}

/** An exchange of a whole ether; answers the time before it was priced. */
async function exchange(): Promise<string> {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  const order = await placeOrder(stage, 'ETH:ETH', 'USDT:ERC20', { asks: ETHER, promises: 100n * ETHER + 1n })
  later()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const before = later()
  const paid = await sendPayout(stage, order)
  later()
  await confirmPayout(stage, order, { ...paid, cost: 21_000n })
  later()
  return before
}

test('what accounts came to before an exchange is told after it', async () => {
  const before = await exchange()
  const then = await run('balances', '--at', before)
  expect(then).toMatch(/^ETH:ETH +customer_deposits +1 ETH:ETH$/m)
  expect(then).toMatch(/^USDT:ERC20 +wallet +1000 USDT:ERC20$/m)
  expect(then).not.toContain('exchange_position')
  expect(then).toContain(`before ${before}, by the clocks of the machines that wrote the entries.`)
  const now = await run('balances')
  expect(now, 'an account that comes to nothing has been used').toMatch(
    /^ETH:ETH +customer_deposits +0 ETH:ETH$/m,
  )
  expect(now).toMatch(/^USDT:ERC20 +wallet +899\.9{18} USDT:ERC20$/m)
  expect(now).toMatch(/^ETH:ETH +exchange_position +1 ETH:ETH$/m)
  expect(await balances('--at', '2000-01-01')).toEqual([])
})

/** Debits less credits in ledger units, from the lines of a CSV whose cells have no comma. */
function sumsOf(csv: string): readonly Omit<Told, 'amount'>[] {
  const sums = new Map<string, bigint>()
  const book = (name: string, units: bigint) => sums.set(name, (sums.get(name) ?? 0n) + units)
  for (const line of csv.split('\r\n').slice(1, -1)) {
    const [, , , , asset = '', debit = '', credit = '', amount = ''] = line.split(',')
    const parsed = parseDecimal(amount, assetOf(asset as AssetId).decimals)
    const units = parsed.ok ? parsed.value : expect.unreachable(line)
    book(`${asset} ${debit}`, units)
    book(`${asset} ${credit}`, -units)
  }
  return [...sums.keys()].toSorted().map((name) => {
    const [asset = '', account = ''] = name.split(' ')
    return { asset: asset as AssetId, account, units: String(sums.get(name)) }
  })
}

const withoutAmounts = (told: readonly Told[]) => told.map(({ amount: _, ...rest }) => rest)

test('entries add up to the balances, all of them and those before a time', async () => {
  const before = await exchange()
  expect(sumsOf(await run('entries', '--csv'))).toEqual(withoutAmounts(await balances()))
  const earlier = await run('entries', '--to', before, '--csv')
  expect(sumsOf(earlier)).toEqual(withoutAmounts(await balances('--at', before)))
  const since = await run('entries', '--from', before, '--csv')
  const both = earlier + since.slice(since.indexOf('\n') + 1)
  expect(sumsOf(both)).toEqual(withoutAmounts(await balances()))
})

test('a line of the CSV has every digit, and its time to the millisecond', async () => {
  const before = await exchange()
  const [head, first] = (await run('entries', '--from', before, '--csv')).split('\r\n')
  expect(head).toBe('time,owner,entry,line,asset,debit,credit,amount')
  expect(first).toMatch(
    /^2027-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z,CB\d{16},priced:1,1,ETH:ETH,customer_deposits,exchange_position,1$/,
  )
  const [balance] = (await balances()).filter(
    ({ asset, account }) => asset === 'USDT:ERC20' && account === 'wallet',
  )
  expect(balance).toMatchObject({ units: '899999999999999999999', amount: '899.999999999999999999' })
})

test('more lines than are read at once come each once, in the order of their times', async () => {
  await stage.corrupt(
    `INSERT INTO journal SELECT 0, 'house', '=entry ' || n, 1, 'ETH:ETH', 'wallet', 'capital', n, 10000000 - n
     FROM generate_series(1, 2500) AS n`,
  )
  const lines = (await run('entries', '--csv')).split('\r\n').slice(1, -1)
  expect(lines).toHaveLength(2_500)
  expect(lines.at(0)).toContain(",'=entry 2500,")
  expect(new Set(lines).size).toBe(2_500)
  expect(lines.map((line) => line.split(',')[0])).toEqual(lines.map((line) => line.split(',')[0]).toSorted())
  expect(await run('entries')).toContain('2500 lines, in UTC, by the clocks of the machines that wrote them.')
})

test('a page is read when the one before was taken, and none for who takes no more', async () => {
  await stage.corrupt(
    `INSERT INTO journal SELECT 0, 'house', 'entry ' || n, 1, 'ETH:ETH', 'wallet', 'capital', n, n
     FROM generate_series(1, 2500) AS n`,
  )
  const always = { fromMs: 0, beforeMs: 3_000 }
  let underWay = 0
  const told: number[] = []
  const count = await tellJournalLines(stage.db, always, async () => {
    underWay += 1
    told.push(underWay)
    await stage.db.query('SELECT pg_sleep(0.01)')
    underWay -= 1
    return true
  })
  expect([count, told]).toEqual([2_500, [1, 1, 1]])
  expect(await tellJournalLines(stage.db, always, async () => false)).toBe(1_000)
})

test.each(['yesterday', '2026-02-30', '2026-01-31T12:00:00', '2026-01-31T25:00:00Z', ''])(
  '%s is no time',
  async (text) => {
    expect(await run('balances', '--at', text)).toContain('is not a time such as')
    expect(await run('entries', '--from', text)).toContain('is not a time such as')
  },
)

test('a time may have an offset, as in requests', async () => {
  const at = (text: string) => run('balances', '--at', text)
  expect(await at('2030-01-31T13:30:00+01:30')).toBe(await at('2030-01-31T12:00:00Z'))
})
