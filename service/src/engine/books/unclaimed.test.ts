import { Command } from 'commander'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { registerOrderCommands } from '../../commands/order.ts'
import { listUnclaimed } from '../../db/house_deposits.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
} from '../testing/books_stage.ts'

/**
 * What: of what no order could use, an operator is told what may still count: given back by hand, it would be paid twice.
 * How: a real PostgreSQL, and an order that is paid once more while its payout is under way.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('unclaimed')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

async function told() {
  const rows = await listUnclaimed(stage.db)
  return rows.map(({ kind, units, status, may_count }) => ({ kind, units, status, may_count }))
}

/** What `cambist order …` prints. */
async function run(...words: string[]): Promise<string> {
  const printed: string[] = []
  const order = new Command('order').exitOverride()
  registerOrderCommands(order, {
    open: async () => ({ db: stage.db, close: async () => {} }),
    print: (text) => void printed.push(text),
  })
  await order.parseAsync(words, { from: 'user' })
  return printed.join('\n')
}

test('the command says of what may still count that it may not be given back yet', async () => {
  expect(await run('unclaimed')).toBe('There is no unclaimed money.')
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
  const payout = await sendPayout(stage, order)
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 500_000n, 101))
  expect(await run('unclaimed')).toMatch(
    new RegExp(` extra +0\\.005 BTC:BTC +\\w+ +${order.terms.id} +not yet: the order is WITHDRAW$`),
  )
  await confirmPayout(stage, order, { ...payout, cost: 1n })
  expect(await run('unclaimed')).toMatch(new RegExp(` ${order.terms.id} +yes$`))
})

test('the commands find an order by its last digits, and list those of a status', async () => {
  const place = () => placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  const [paid, waits] = [await place(), await place()]
  await confirmDeposit(stage, paid, await mineDeposit(stage, paid, 1_000_000n, 100))
  const shown = await run('show', paid.terms.id.slice(-8))
  expect(shown).toMatch(new RegExp(`^Order +${paid.terms.id}\\n`))
  expect(await run('show', paid.terms.id)).toBe(shown)
  const idsOf = (text: string) => text.match(/^CB\d{16}/gm)
  expect(idsOf(await run('list', '--status', 'new'))).toEqual([waits.terms.id])
  expect(idsOf(await run('list'))).toHaveLength(2)
  expect(idsOf(await run('list', '--limit', '1'))).toHaveLength(1)
  for (const [words, told] of [
    [['show', '99999999'], 'There is no order that ends with'],
    [['show', '9999999'], 'neither an order id nor its last 8 digits'],
    [['show', `CB${'9'.repeat(16)}`], 'There is no order'],
    [['list', '--status', 'paid'], 'is not a status'],
    [['list', '--limit', '0'], 'is not a count'],
  ] as const)
    await expect(run(...words)).rejects.toThrow(told)
})

test('what came to an order under way may count until that one is done; dust may not', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
  const payout = await sendPayout(stage, order)
  for (const units of [500_000n, 3n])
    await confirmDeposit(stage, order, await mineDeposit(stage, order, units, 101))
  const dust = { kind: 'dust', units: 3n, may_count: false }
  expect(await told()).toEqual([
    { ...dust, status: 'WITHDRAW' },
    { kind: 'extra', units: 500_000n, status: 'WITHDRAW', may_count: true },
  ])
  await confirmPayout(stage, order, { ...payout, cost: 1n })
  expect(await told()).toEqual([
    { ...dust, status: 'DONE' },
    { kind: 'extra', units: 500_000n, status: 'DONE', may_count: false },
  ])
})
