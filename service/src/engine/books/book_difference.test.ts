import { hostname, userInfo } from 'node:os'
import { Command } from 'commander'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { verifyAudit } from '../../accounts/verify_audit.ts'
import type { Chain } from '../../chains/chain.ts'
import { CommandRefused } from '../../command_refused.ts'
import { registerLedgerCommands } from '../../commands/ledger.ts'
import { readAuditBackwards } from '../../db/audit_log.ts'
import { lockSpendableCoins, takeSpent, upsertCoin } from '../../db/coins.ts'
import type { ChainId } from '../../domain/catalog/networks.ts'
import { type BooksStage, fundReserve, lookAt, openBooksStage, RESERVE } from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { auditBooks } from './audit_books.ts'
import { auditChain } from './audit_chain.ts'
import { reconcileChain } from './reconcile.ts'
import { isOutflowStopped } from './stopped_outflows.ts'

/**
 * What: an operator's word moves the books onto the chain by exactly the difference that is there, once, and outflows go on; any
 * other word changes nothing.
 * How: a real PostgreSQL, chains on paper whose balances the test decides, and the command as it is given.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('book-difference')
})

beforeEach(async () => {
  await stage.reset()
  await stage.empty('audit_log', 'audit_heads')
})

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n

async function run(...args: string[]): Promise<string> {
  return runWith(stage.chains, ...args)
}

/** What it printed, or the sentence with which it refused. */
async function runWith(chains: ReadonlyMap<ChainId, Chain>, ...args: string[]): Promise<string> {
  const lines: string[] = []
  const { db, world } = stage
  const open = async () => ({ db, chains, clock: world.clock, close: async () => {} })
  const program = new Command().exitOverride()
  registerLedgerCommands(program.command('ledger'), { open, print: (text) => lines.push(text) })
  try {
    await program.parseAsync(['ledger', 'book', ...args], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommandRefused)) throw error
    return error.message
  }
  return lines.join('\n')
}

const BECAUSE = ['--because', 'taken out to the cold wallet']

function entries() {
  return stage.db.query(
    `SELECT entry_key, asset, debit, credit, units FROM journal WHERE starts_with(entry_key, 'operator:') ORDER BY entry_key`,
  )
}

/** So often that whatever differs stops the outflows of the chain. */
async function compareOften(id: ChainId): Promise<boolean> {
  for (let times = 0; times < 3; times += 1) {
    await reconcileChain(stage.world, stage.chain(id), { guard: nobodyElse })
  }
  return isOutflowStopped(stage.db, id)
}

async function auditProblems(chain: Chain) {
  const books = await auditBooks(stage.db)
  const compared = await auditChain(stage.db, chain, stage.world.clock)
  return [...books.problems, ...compared.problems]
}

test('what was taken out stops the chain; booked once, it goes on, and the audit finds nothing', async () => {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, -(3n * ETHER) / 2n)
  expect(await compareOften('ETH')).toBe(true)

  const printed = await run('ETH', '-1.5', ...BECAUSE)
  expect(printed).toContain('Booked -1.5 ETH:ETH against capital, as operator:ETH:ETH:1')
  expect(await entries()).toEqual([
    {
      entry_key: 'operator:ETH:ETH:1',
      asset: 'ETH:ETH',
      debit: 'capital',
      credit: 'wallet',
      units: (3n * ETHER) / 2n,
    },
  ])
  expect(await auditProblems(stage.chain('ETH'))).toEqual([])
  expect(await compareOften('ETH')).toBe(false)
  expect(stage.logged.map(({ message }) => message)).toContain('ledger and chain agree: outflows go on')

  const chain = /cambist audit show (house_.)/.exec(printed)?.[1] ?? ''
  const [row] = await readAuditBackwards(stage.db, chain, 1_000, 10)
  expect(row).toMatchObject({ act: 'difference_booked', actor: 'operator', subject: 'ETH:ETH' })
  expect(JSON.parse(row?.detail ?? '')).toEqual({
    amount: '-1.5',
    because: 'taken out to the cold wallet',
    entry: 'operator:ETH:ETH:1',
    ...{ os_user: userInfo().username, os_host: hostname() },
  })
  expect((await verifyAudit(stage.db, [])).problems).toEqual([])

  expect(await run('ETH', '-1.5', ...BECAUSE)).toBe(
    'Books and chain agree about ETH:ETH at block 100: there is nothing to book.',
  )
  expect(await entries()).toHaveLength(1)
})

test.each([
  [
    'another amount in its row',
    `UPDATE audit_log SET detail = replace(detail, '-1.5', '-1.4')`,
    'the entry operator:ETH:ETH:1 books -1.5 ETH:ETH, and row 1 of CHAIN in the audit log says -1.4 ETH:ETH',
  ],
  [
    'a row that says nothing any more',
    `UPDATE audit_log SET detail = 'gone'`,
    'the entry operator:ETH:ETH:1 books -1.5 ETH:ETH, and no row of the audit log says so',
  ],
  [
    'a row that says it twice',
    `INSERT INTO audit_log SELECT chain, 2, at_ms, act, actor, subject, address, detail, hash, hash FROM audit_log`,
    'the entry operator:ETH:ETH:1 books -1.5 ETH:ETH, and row 1 of CHAIN in the audit log says -1.5 ETH:ETH, and row 2 of CHAIN in the audit log says -1.5 ETH:ETH',
  ],
  [
    'a row in a chain of another asset',
    `UPDATE audit_log SET chain = 'acc_somebody'`,
    'the entry operator:ETH:ETH:1 books -1.5 ETH:ETH, and row 1 of acc_somebody in the audit log says -1.5 ETH:ETH',
  ],
  [
    'a second line of the entry',
    `INSERT INTO journal SELECT bucket, owner, entry_key, 2, asset, credit, debit, units, at_ms FROM journal
     WHERE starts_with(entry_key, 'operator:')`,
    'the entry operator:ETH:ETH:1 is none that `ledger book` makes',
  ],
])('what was booked is not what the audit log says: %s', async (_, sql, found) => {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, -(3n * ETHER) / 2n)
  const printed = await run('ETH', '-1.5', ...BECAUSE)
  expect((await auditBooks(stage.db)).problems).toEqual([])
  await stage.corrupt(sql)
  const { problems } = await auditBooks(stage.db)
  const chain = /cambist audit show (house_.)/.exec(printed)?.[1] ?? ''
  expect(problems.map(({ message }) => message.replaceAll(chain, 'CHAIN'))).toContain(found)
})

test('whoever reconciles compares at once, however long the comparison before took', async () => {
  await fundReserve(stage, 'ETH:ETH', ETHER)
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, -1n)
  await compareOften('ETH')
  await stage.db.query('UPDATE reconciliations SET due_wall_ms = $1', [
    stage.world.clock.wallMs() + 3_600_000,
  ])
  const compare = () => reconcileChain(stage.world, stage.chain('ETH'), { guard: nobodyElse })
  expect(await compare()).toBeNull()
  await run('ETH', '-0.000000000000000001', ...BECAUSE)
  expect(await compare()).toMatchObject({ kind: 'compared' })
})

test('what came and was never booked is booked the other way, and what came back as well', async () => {
  await fundReserve(stage, 'USDT:ERC20', 5n * ETHER)
  const eth = stage.chain('ETH')
  eth.move(100, 'USDT:ERC20', RESERVE, -ETHER)
  await run('USDT:ERC20', '-1', ...BECAUSE)
  eth.move(100, 'USDT:ERC20', RESERVE, ETHER)
  expect(await run('USDT:ERC20', '+1', ...BECAUSE)).toContain('as operator:USDT:ERC20:2')
  expect(await entries()).toMatchObject([
    { debit: 'capital', credit: 'wallet', units: ETHER },
    { debit: 'wallet', credit: 'capital', units: ETHER },
  ])
  expect(await auditProblems(eth)).toEqual([])
})

test.each([
  ['-1.4', 'At block 100 the chain less the books is -1.5 ETH:ETH, and nothing else can be booked.'],
  ['1.5', 'At block 100 the chain less the books is -1.5 ETH:ETH, and nothing else can be booked.'],
  ['-1.500000000000000001', 'At block 100 the chain less the books is -1.5 ETH:ETH'],
  ['0', '0 changes nothing.'],
  ['-1.5000000000000000000', '-1.5000000000000000000: an amount must have at most 18 decimals'],
  ['-1e3', '-1e3: an amount must be a plain decimal number'],
  ['--1.5', 'an amount must be a plain decimal number'],
])('the amount %s is refused while the difference is another', async (amount, told) => {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, -(3n * ETHER) / 2n)
  expect(await run(...BECAUSE, '--', 'ETH', amount)).toContain(told)
  expect(await entries()).toEqual([])
})

test('where books and chain agree nothing is booked', async () => {
  await fundReserve(stage, 'ETH:ETH', ETHER)
  expect(await run('ETH', '-1', ...BECAUSE)).toContain('there is nothing to book')
  expect(await entries()).toEqual([])
})

test('an asset that is none, or has several networks, or no node here, or was not opened, is refused by name', async () => {
  expect(await run('DOGE', '-1', ...BECAUSE)).toMatch(/^DOGE is not one of BTC:BTC, /)
  expect(await run('USDC', '-1', ...BECAUSE)).toMatch(/^USDC is not one of USDC:ERC20, /)
  const others = new Map([...stage.chains].filter(([id]) => id !== 'ETH'))
  expect(await runWith(others, 'ETH', '-1', ...BECAUSE)).toBe(
    'No node that tells of ETH:ETH is configured here.',
  )
  await stage.db.query("DELETE FROM opened_assets WHERE asset = 'ETH:ETH'")
  expect(await run('ETH', '-1', ...BECAUSE)).toContain(
    'ETH could not be compared with the books: ETH:ETH was not opened yet. Nothing was booked',
  )
})

test('what a token holds whose sum a reorganisation took is booked when it is opened by hand', async () => {
  await fundReserve(stage, 'USDT:ERC20', 5n * ETHER)
  await stage.db.query("UPDATE opened_assets SET height = 90, is_read = false WHERE asset = 'USDT:ERC20'")
  stage.chain('ETH').move(100, 'USDT:ERC20', RESERVE, ETHER)
  expect(await run('USDT:ERC20', '1', ...BECAUSE)).toContain('USDT:ERC20 was not opened yet')
  await stage.db.query("UPDATE opened_assets SET is_read = true WHERE asset = 'USDT:ERC20'")
  expect(await run('USDT:ERC20', '1', ...BECAUSE)).toContain('Booked 1 USDT:ERC20')
  expect(await auditProblems(stage.chain('ETH'))).toEqual([])
})

test('without a reason nothing is booked', async () => {
  await fundReserve(stage, 'ETH:ETH', ETHER)
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, -1n)
  const [amount, told] = ['-0.000000000000000001', '--because says why']
  expect(await run('ETH', amount, '--because', ' ')).toContain(told)
  expect(await run('ETH', amount, '--because', 'x'.repeat(1_001))).toContain(told)
  expect(await entries()).toEqual([])
})

test('a comparison that comes to nothing, or not three times to the same, books nothing', async () => {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  const eth = stage.chain('ETH')
  eth.move(100, 'ETH:ETH', RESERVE, -ETHER)
  eth.setHead(500)
  expect(await run('ETH', '-1', ...BECAUSE)).toContain(
    'ETH could not be compared with the books: the books are 400 blocks behind ETH. Nothing was booked',
  )
  eth.setHead(100)
  let asked = 0
  const lying: Chain = {
    ...eth,
    balance: async (asset, ...rest) => {
      if (asset === 'ETH:ETH') asked += 1
      return (await eth.balance(asset, ...rest)) + (asset === 'ETH:ETH' && asked === 3 ? ETHER : 0n)
    },
  }
  expect(await runWith(new Map([['ETH', lying]]), 'ETH', '-1', ...BECAUSE)).toContain(
    'there is nothing to book',
  )
  expect(await entries()).toEqual([])
})

test('of two who give the same word while neither has booked it one books it', async () => {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  const eth = stage.chain('ETH')
  eth.move(100, 'ETH:ETH', RESERVE, -ETHER)
  let asked = 0
  let other = ''
  const overtaken: Chain = {
    ...eth,
    balance: async (asset, ...rest) => {
      // The books were read for the last time: nothing but their own transaction tells of what is booked now.
      if (asset === 'ETH:ETH' && ++asked === 3) other = await run('ETH', '-1', ...BECAUSE)
      return eth.balance(asset, ...rest)
    },
  }
  expect(await runWith(new Map([['ETH', overtaken]]), 'ETH', '-1', ...BECAUSE)).toContain(
    'Somebody else changed the books of it meanwhile. Nothing was booked',
  )
  expect(other).toContain('Booked -1 ETH:ETH')
  expect(await entries()).toHaveLength(1)
})

/** Coins of the reserve, in the books and on the chain; `spent` are those that the chain has no more. */
async function coinsOf(satoshi: Readonly<Record<string, bigint>>) {
  for (const [txHash, units] of Object.entries(satoshi)) {
    const coin = {
      txHash,
      index: 0,
      satoshi: units,
      address: RESERVE,
      key: { purpose: 'reserve', index: 0 },
    } as const
    await upsertCoin(stage.db, 'BTC', coin, { height: 50, hash: 'h' })
  }
  await fundReserve(
    stage,
    'BTC:BTC',
    Object.values(satoshi).reduce((sum, units) => sum + units, 0n),
  )
  const spent = new Set<string>()
  const chain: Chain = { ...stage.chain('BTC'), isUnspent: async ({ txHash }) => !spent.has(txHash) }
  return { spent, chain, chains: new Map([['BTC' as const, chain]]) }
}

/** The answer that names both causes, and what ends either. */
function missingInList(amount: string): string {
  return (
    `BTC has ${amount} BTC:BTC more than our list of coins without those that its node calls gone. Nothing was booked. Either the node, or ` +
    'one of several behind its address, calls coins gone that are there: try again. Or, if that stays, so much lies in coins at addresses ' +
    "of ours that nobody told the service of, and no payout would spend them: send them to the reserve's address with the words. Then they " +
    'are booked by themselves, and `cambist ledger audit` names what still differs.'
  )
}

async function spendable() {
  const coins = await stage.db.transaction((tx) => lockSpendableCoins(tx, 'BTC', 100, 3))
  return coins.map(({ txHash }) => txHash)
}

test('coins that were spent with another program are spent here too, but for those that an outflow of ours has', async () => {
  const { spent, chains } = await coinsOf({ a: 900n, b: 700n, c: 500n, d: 300n })
  const key = { purpose: 'reserve', index: 0 } as const
  await takeSpent(stage.db, 'BTC', [{ txHash: 'd', index: 0, satoshi: 300n, address: RESERVE, key }], 'CB1:1')
  for (const txHash of ['a', 'b', 'd']) spent.add(txHash)
  stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, -1_900n)
  const printed = await runWith(chains, 'BTC', '-0.000019', ...BECAUSE)
  expect(printed).toContain('Coins that are spent and that no outflow of ours spent: 2')
  expect(await spendable()).toEqual(['c'])
  expect(await stage.db.query('SELECT tx_hash, spent_by FROM coins ORDER BY tx_hash')).toEqual([
    { tx_hash: 'a', spent_by: 'operator:BTC:BTC:1' },
    { tx_hash: 'b', spent_by: 'operator:BTC:BTC:1' },
    { tx_hash: 'c', spent_by: null },
    { tx_hash: 'd', spent_by: 'CB1:1' },
  ])

  spent.delete('b')
  stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, 700n)
  expect(await runWith(chains, 'BTC', '0.000007', ...BECAUSE)).toContain('are unspent again: 1')
  expect(await spendable()).toEqual(['b', 'c'])
  expect((await auditBooks(stage.db)).problems).toEqual([])
})

test('coins are looked at only where the amount is right, and only at the block of the comparison', async () => {
  const { spent, chain, chains } = await coinsOf({ a: 900n, b: 700n })
  spent.add('a')
  stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, -900n)
  expect(await runWith(chains, 'BTC', '-0.000008', ...BECAUSE)).toContain('nothing else can be booked')
  expect(await spendable()).toEqual(['a', 'b'])
  const restless: Chain = {
    ...chain,
    isUnspent: async (coin) => {
      stage.chain('BTC').setHead(101)
      return chain.isUnspent?.(coin) ?? true
    },
  }
  expect(await runWith(new Map([['BTC', restless]]), 'BTC', '-0.000009', ...BECAUSE)).toContain(
    'could not be compared',
  )
  expect(await spendable()).toEqual(['a', 'b'])
  await lookAt(stage, 'BTC', 101)
  expect(await runWith(chains, 'BTC', '-0.000009', ...BECAUSE)).toContain('Booked')
})

test.each([
  ['gone', 1],
  ['gone', 3],
  ['back', 1],
  ['back', 3],
] as const)(
  'a coin that one of several nodes takes for %s, in look %i alone, stays what it was',
  async (told, look) => {
    const { spent, chain, chains } = await coinsOf({ a: 900n, b: 700n })
    spent.add('a')
    stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, -900n)
    if (told === 'back') {
      expect(await runWith(chains, 'BTC', '-0.000009', ...BECAUSE)).toContain('Booked')
      stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, -100n)
    }
    const before = await stage.db.query('SELECT tx_hash, spent_by FROM coins ORDER BY tx_hash')
    const odd = told === 'gone' ? 'b' : 'a'
    let looks = 0
    const several: Chain = {
      ...chain,
      isUnspent: async (coin) => {
        const isThere = (await chain.isUnspent?.(coin)) ?? true
        if (coin.txHash !== odd) return isThere
        looks += 1
        return looks === look ? !isThere : isThere
      },
    }
    const amount = told === 'gone' ? '-0.000009' : '-0.000001'
    const booked = (await entries()).length
    const why = {
      gone: missingInList('0.000007'),
      back: 'BTC could not be compared with the books: its node told of other coins from one look to the next. Nothing was booked; try again.',
    }[told]
    expect(await runWith(new Map([['BTC', several]]), 'BTC', amount, ...BECAUSE)).toBe(why)
    expect(await stage.db.query('SELECT tx_hash, spent_by FROM coins ORDER BY tx_hash')).toEqual(before)
    expect(await entries()).toHaveLength(booked)
    expect(await runWith(chains, 'BTC', amount, ...BECAUSE)).toContain('Booked')
  },
)

test('a coin that the chain has, and a node takes for gone in every look, stays what it was', async () => {
  const { spent, chains } = await coinsOf({ a: 900n, b: 700n })
  spent.add('a').add('b')
  stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, -900n)
  expect(await runWith(chains, 'BTC', '-0.000009', ...BECAUSE)).toBe(missingInList('0.000007'))
  expect(await spendable()).toEqual(['a', 'b'])
  expect(await entries()).toEqual([])
})

test('nor does it become another where the chain has more than the books say', async () => {
  const { spent, chains } = await coinsOf({ a: 900n, b: 700n })
  const coin = { txHash: 'c', index: 0, satoshi: 300n, address: RESERVE }
  const key = { purpose: 'reserve', index: 0 } as const
  await upsertCoin(stage.db, 'BTC', { ...coin, key }, { height: 60, hash: 'h' })
  stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, 300n)
  spent.add('b')
  expect(await runWith(chains, 'BTC', '0.000003', ...BECAUSE)).toBe(missingInList('0.000007'))
  expect(await spendable()).toEqual(['a', 'b', 'c'])
  spent.delete('b')
  expect(await runWith(chains, 'BTC', '0.000003', ...BECAUSE)).toContain('Booked 0.000003 BTC:BTC')
})

test('what is missing beside coins that no list has is booked once those were sent to the reserve', async () => {
  const { spent, chains } = await coinsOf({ a: 900n })
  spent.add('a')
  stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, -900n + 100n)
  expect(await runWith(chains, 'BTC', '-0.000008', ...BECAUSE)).toBe(missingInList('0.000001'))
  expect(await entries()).toEqual([])
  // Ten satoshi are the fee; what arrives is booked as any other money at the reserve's address.
  stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, -100n)
  const coin = { txHash: 'b', index: 0, satoshi: 90n, address: RESERVE }
  const key = { purpose: 'reserve', index: 0 } as const
  await upsertCoin(stage.db, 'BTC', { ...coin, key }, { height: 60, hash: 'h' })
  await fundReserve(stage, 'BTC:BTC', 90n)
  expect(await runWith(chains, 'BTC', '-0.000009', ...BECAUSE)).toContain('Booked -0.000009 BTC:BTC')
  expect(await spendable()).toEqual(['b'])
  expect(await auditProblems(stage.chain('BTC'))).toEqual([])
})

test('coins that no list of ours has are not booked, as nobody would spend them', async () => {
  const { chains } = await coinsOf({ a: 900n })
  stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, 700n)
  expect(await runWith(chains, 'BTC', '0.000007', ...BECAUSE)).toBe(missingInList('0.000007'))
  expect(await entries()).toEqual([])
})

test('what is more than the books say is booked where the list of coins has it', async () => {
  const { chains } = await coinsOf({ a: 900n })
  stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, 700n)
  const coin = { txHash: 'b', index: 0, satoshi: 700n, address: RESERVE }
  await upsertCoin(
    stage.db,
    'BTC',
    { ...coin, key: { purpose: 'reserve', index: 0 } },
    { height: 60, hash: 'h' },
  )
  expect(await runWith(chains, 'BTC', '0.000007', ...BECAUSE)).toContain('Booked 0.000007 BTC:BTC')
})

test('a coin that an outflow takes while it is asked about takes the whole word back', async () => {
  const { spent, chain } = await coinsOf({ a: 900n })
  spent.add('a')
  stage.chain('BTC').move(100, 'BTC:BTC', RESERVE, -900n)
  let looks = 0
  const taking: Chain = {
    ...chain,
    isUnspent: async (coin) => {
      looks += 1
      if (looks === 3) await stage.db.query("UPDATE coins SET spent_by = 'CB1:1'")
      return chain.isUnspent?.(coin) ?? true
    },
  }
  const told = await runWith(new Map([['BTC', taking]]), 'BTC', '-0.000009', ...BECAUSE)
  expect(told).toContain('Somebody else changed the books of it meanwhile')
  expect(await entries()).toEqual([])
})
