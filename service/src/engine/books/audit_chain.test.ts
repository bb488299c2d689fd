import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Chain, NodeBusy } from '../../chains/chain.ts'
import { type BooksStage, fundReserve, openBooksStage } from '../testing/books_stage.ts'
import { auditChain } from './audit_chain.ts'

/**
 * What: the audit of a chain names what the chain has and the books do not, or the other way round, and what keeps it from looking.
 * How: a real PostgreSQL, and chains in memory that hold more than is booked, are busy, or change while they are asked.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('audit-chain')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n

test('the audit of a chain asks every address and names the asset and the unit', async () => {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  const eth = stage.chain('ETH')
  expect((await auditChain(stage.db, eth, stage.world.clock)).problems).toEqual([])
  await stage.db.query(
    `INSERT INTO addresses (family, address, purpose, key_index) VALUES ('evm', 'never-given', 'deposit', 99)`,
  )
  eth.move(100, 'ETH:ETH', 'never-given', 1n)
  expect((await auditChain(stage.db, eth, stage.world.clock)).problems).toEqual([
    {
      subject: 'ETH:ETH',
      check: 'chain',
      message:
        '0.000000000000000001 ETH:ETH is more than booked on the chain at block 100: books 5 ETH:ETH, chain 5.000000000000000001 ETH:ETH',
    },
  ])
})

test('coins of ours that the chain does not have are named', async () => {
  await stage.db.query(
    `INSERT INTO coins VALUES ('BTC', 'tx', 0, 600, 'reserve-0', 'reserve', 0, 50, 'h', NULL)`,
  )
  const { problems: found } = await auditChain(stage.db, stage.chain('BTC'), stage.world.clock)
  expect(found).toMatchObject([
    { message: 'our list of coins adds up to 0.000006 BTC:BTC, the chain has 0 BTC:BTC' },
  ])
})

test('a chain that cannot be compared is a problem, not a pass', async () => {
  stage.chain('ETH').setHead(500)
  const { problems: found } = await auditChain(stage.db, stage.chain('ETH'), stage.world.clock)
  expect(found).toMatchObject([{ message: 'could not be compared: the books are 400 blocks behind ETH' }])
})

test.each([
  ['a moment', 2, []],
  ['longer', 3, ['could not be compared: Error: block 100 changed: ask again']],
])('a node that cannot tell for %s is asked again before that is a problem', async (_, times, found) => {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  let failures = 0
  const eth: Chain = {
    ...stage.chain('ETH'),
    balance: (...asked) => {
      failures += 1
      if (failures <= times) return Promise.reject(new Error('block 100 changed: ask again'))
      return stage.chain('ETH').balance(...asked)
    },
  }
  const { problems: told } = await auditChain(stage.db, eth, stage.world.clock)
  expect(told.map(({ message }) => message)).toEqual(found)
})

test('a node that scans its coins for somebody else is waited for, and not for ever', async () => {
  const btc = stage.chain('BTC')
  const slept: number[] = []
  const clock = { ...stage.world.clock, sleep: async (ms: number) => void slept.push(ms) }
  const audit = async (isBusy: (asked: number) => boolean, isRestless = false) => {
    slept.splice(0)
    let asked = 0
    let hasMoved = false
    const busy: Chain = {
      ...btc,
      head: async () => {
        const head = await btc.head()
        if (!hasMoved) return head
        hasMoved = false
        return { ...head, hash: 'a block that came meanwhile' }
      },
      balance: async (...one) => {
        asked += 1
        if (isBusy(asked)) throw new NodeBusy('a scan is under way')
        hasMoved = isRestless
        return btc.balance(...one)
      },
    }
    return (await auditChain(stage.db, busy, clock)).problems.map(({ message }) => message)
  }
  const total = () => slept.reduce((sum, ms) => sum + ms, 0)
  expect(await audit((asked) => asked <= 20)).toEqual([])
  expect(slept).toEqual(Array.from({ length: 20 }, () => 15_000))
  expect(await audit(() => true)).toEqual(['could not be compared: NodeBusy: a scan is under way'])
  expect(total()).toBe(15 * 60_000)
  expect(await audit((asked) => asked % 20 !== 0, true), 'free now and then, and a block came').toHaveLength(
    1,
  )
  expect(total()).toBeGreaterThan(15 * 60_000)
  expect(total()).toBeLessThan(16 * 60_000)
})
