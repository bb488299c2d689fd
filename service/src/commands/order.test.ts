import { Command } from 'commander'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { AssetId } from '../domain/catalog/assets.ts'
import {
  type BooksStage,
  confirmDeposit,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
  strayDeposit,
} from '../engine/testing/books_stage.ts'
import { registerOrderCommands } from './order.ts'

/**
 * What: whatever a customer can name of his order leads to it, and the order is shown with whatever became of it.
 * How: a real PostgreSQL, and the commands as they are typed.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('order_commands')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

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

async function found(...words: string[]): Promise<{ what: string; order_id: string | null; name: string }[]> {
  return JSON.parse(await run('find', ...words, '--json'))
}

const place = (from: AssetId, address: string | null = null) =>
  placeOrder(stage, from, 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n }, address)

test('a deposit address leads to its order, also as wallets and explorers spell it', async () => {
  const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
  const order = await place('USDT:ERC20', address)
  const told = [{ what: 'deposit address', order_id: order.terms.id, name: address }]
  for (const spelling of [address, address.toLowerCase(), ` ${address}`])
    expect(await found(spelling)).toEqual(told)
  const bech32 = 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq'
  const { id } = (await place('BTC:BTC', bech32)).terms
  expect(await found(bech32.toUpperCase())).toMatchObject([{ order_id: id }])
  expect(await run('find', bech32)).toMatch(new RegExp(`^deposit address +${id} +${bech32}$`, 'm'))
})

test('an account that many share leads to an order with its tag, and says so without', async () => {
  const account = 'rAccount'
  await place('BTC:BTC')
  const order = await place('XRP:XRP', 'XaddressWithTag')
  await stage.db.query(
    `INSERT INTO addresses (family, address, purpose, key_index) VALUES ('xrp', $1, 'reserve', 1)`,
    [account],
  )
  const [{ tag } = { tag: '' }] = await stage.db.query<{ tag: string }>(
    `SELECT key_index::text AS tag FROM addresses WHERE order_id = $1`,
    [order.terms.id],
  )
  expect(await found(account, tag)).toMatchObject([{ order_id: order.terms.id }])
  expect(await run('find', account)).toContain('give the tag or memo behind it')
  await expect(run('find', account, '999')).rejects.toThrow('no order has the tag or memo 999 at rAccount')
  await expect(run('find', 'rSomebody', tag)).rejects.toThrow('There is nothing of that name')
  await expect(run('find', account, 'a word')).rejects.toThrow('There is nothing of that name')
  const eos = await place('EOS:EOS', 'ouraccount/12')
  expect(await found('ouraccount/12')).toMatchObject([{ order_id: eos.terms.id }])
})

test('the transaction of a deposit, of a payout and of unclaimed money leads to its order, or to the money', async () => {
  const order = await place('BTC:BTC')
  const { id } = order.terms
  const key = await mineDeposit(stage, order, 1_000_000n, 100)
  const hash = 'ab12'.repeat(16)
  const told = [{ what: 'deposit', order_id: id, name: key }]
  for (const stored of [hash, hash.toUpperCase(), `0x${hash}`]) {
    await stage.corrupt('UPDATE deposits SET tx_hash = $1', [stored])
    for (const spelling of [hash, hash.toUpperCase(), `0x${hash}`])
      expect(await found(spelling)).toEqual(told)
  }
  await confirmDeposit(stage, order, key)
  const { payoutId, txHash } = await sendPayout(stage, order)
  expect(await found(txHash)).toEqual([{ what: 'payout', order_id: id, name: payoutId }])
  await strayDeposit(stage, { asset: 'ETH:ETH', units: 5n, address: 'late', purpose: 'deposit', height: 100 })
  expect(await found('house-tx-ETH:ETH-5')).toEqual([
    { what: 'stray', order_id: null, name: 'ETH:house-tx-ETH:ETH-5:0' },
  ])
})

test('orders of one account are listed, of any state or some', async () => {
  const [mine, others] = [await place('BTC:BTC'), await place('BTC:BTC')]
  await stage.corrupt(`UPDATE orders SET account_id = 'acc_other' WHERE order_id = $1`, [others.terms.id])
  const idsOf = (text: string) => text.match(/^CB\d{16}/gm)
  expect(idsOf(await run('list', '--account', 'acc_other'))).toEqual([others.terms.id])
  expect(idsOf(await run('list', '--account', 'acc_stage', '--status', 'NEW'))).toEqual([mine.terms.id])
  expect(await run('list', '--account', 'acc_other', '--status', 'DONE')).toBe('There are no such orders.')
  await expect(run('list', '--trouble', '--account', 'acc_other')).rejects.toThrow('leave out --status and')
})
