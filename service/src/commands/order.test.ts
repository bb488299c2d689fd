import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { postForHouse } from '../db/books.ts'
import { readOrderFile } from '../db/order_file.ts'
import type { AssetId } from '../domain/catalog/assets.ts'
import { amountOf } from '../domain/money/amount.ts'
import type { Order } from '../domain/orders/order.ts'
import { mailRelay } from '../engine/notify/mail_relay.ts'
import { relayEvents } from '../engine/notify/relay.ts'
import { relayToWebhooks } from '../engine/notify/relay_webhooks.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
  strayDeposit,
  writeAttempt,
} from '../engine/testing/books_stage.ts'
import { pagesTouched } from '../engine/testing/pages_touched.ts'
import { runOrderCommand } from '../engine/testing/stage_commands.ts'
import { ACCOUNT } from '../engine/testing/webhook_stage.ts'

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
function run(...words: string[]): Promise<string> {
  return runOrderCommand(stage, words)
}

async function found(...words: string[]): Promise<{ what: string; order_id: string | null; name: string }[]> {
  return JSON.parse(await run('find', ...words, '--json'))
}

const place = (from: AssetId, address: string | null = null) =>
  placeOrder(stage, from, 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n }, address)

/** Of an account that has neither e-mail address nor endpoints. */
async function placeOf(account: string): Promise<Order> {
  await stage.corrupt(
    `INSERT INTO accounts (account_id, name, created_at_ms) VALUES ($1, 'Stage', 1)
     ON CONFLICT (account_id) DO UPDATE SET email = NULL`,
    [account],
  )
  const order = await place('BTC:BTC')
  await stage.corrupt('UPDATE orders SET account_id = $2 WHERE order_id = $1', [order.terms.id, account])
  return order
}

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
  const [mine, others] = [await place('BTC:BTC'), await placeOf(ACCOUNT)]
  const idsOf = (text: string) => text.match(/^CB\d{16}/gm)
  expect(idsOf(await run('list', '--account', ACCOUNT))).toEqual([others.terms.id])
  expect(idsOf(await run('list', '--account', 'acc_stage', '--status', 'NEW'))).toEqual([mine.terms.id])
  expect(await run('list', '--account', ACCOUNT, '--status', 'DONE')).toBe('There are no such orders.')
  await expect(run('list', '--account', 'acc_othr0000')).rejects.toThrow('There is no account acc_othr0000: ')
  await expect(run('list', '--trouble', '--account', ACCOUNT)).rejects.toThrow('leave out --status and')
})

test('an order is shown with its webhooks and mails, and with none of what is secret in them', async () => {
  await stage.empty('mails', 'notification_settings', 'webhook_endpoints')
  const order = await placeOf(ACCOUNT)
  const { id } = order.terms
  const bare = await run('show', id)
  expect(bare).toContain(
    '\n\nWebhooks: none wanted: the order has no callback_url, and its account no endpoint\n',
  )
  expect(bare).toContain('\n\nMails: none wanted: the account has no e-mail address\n')
  expect(bare).toContain('The last event was not handed on to webhooks and mails yet.')

  const callback = 'https://hooks.example.org:8443/in?key=whole-secret'
  await stage.corrupt('UPDATE orders SET callback_url = $1', [callback])
  await stage.corrupt(`UPDATE accounts SET email = 'reads@example.org'`)
  await mineDeposit(stage, order, 1_000_000n, 100)
  const { world } = stage
  while (await relayEvents(world, [relayToWebhooks(world.clock), mailRelay(world)]));
  await stage.corrupt(
    `INSERT INTO webhook_attempts VALUES (right($1, 2)::int, $1, 'callback', 1, 7, 1000, 2000, 'answered', 503, 'said-in-body')`,
    [id],
  )
  await stage.corrupt(
    `UPDATE mails SET state = 'sent', over_at_ms = 1, last_answer = '250 taken' WHERE kind = 'order_created'`,
  )
  const shown = await run('show', id)
  const day = '2027-01-15 08:00:00Z'
  expect(shown).toMatch(
    new RegExp(
      `^#1 +callback +hooks.example.org:8443 +waiting +1 +1970-01-01 00:00:01Z +HTTP 503 +${day}$`,
      'm',
    ),
  )
  expect(shown).toMatch(/^#2 +callback +hooks.example.org:8443 +waiting +0 +- +- +after #1$/m)
  const mail = (number: number, kind: string) => `^#${number} +${kind} +reads@example.org`
  const message = '[A-Za-z0-9_-]{32}'
  expect(shown).toMatch(
    new RegExp(`${mail(1, 'order_created')} +sent +0 +${day} +- +${message} +250 taken$`, 'm'),
  )
  expect(shown).toMatch(
    new RegExp(`${mail(2, 'payment_received')} +waiting +0 +${day} +${day} +${message} +-$`, 'm'),
  )
  expect(shown).not.toContain('not handed on')
  const json = await run('show', id, '--json')
  expect(JSON.parse(json)).toMatchObject({
    order: { terms: { callbackHost: 'hooks.example.org:8443' } },
    told: { webhooks: [{ last_answer: 'HTTP 503' }, { state: 'waiting' }], mails: [{}, {}] },
  })
  for (const text of [shown, json]) expect(text).not.toMatch(/whole-secret|said-in-body|\/in/)
})

test('an order without mails says which its account does not want', async () => {
  await stage.empty('mails', 'notification_settings')
  const { id } = (await placeOf(ACCOUNT)).terms
  await stage.corrupt(`UPDATE accounts SET email = 'reads@example.org'`)
  const told = async (emails: string, muted: readonly string[] = []) => {
    await stage.empty('notification_settings')
    await stage.corrupt(`INSERT INTO notification_settings VALUES ($3, $1, $2)`, [emails, muted, ACCOUNT])
    return /^Mails: (.*)$/m.exec(await run('show', id))?.[1]
  }
  expect(await told('off')).toBe('none wanted: the account has switched mails off')
  expect(await told('with_callback')).toBe(
    'none wanted: the account has mails of orders with a callback_url only',
  )
  expect(await told('all', ['order_expired'])).toMatch(/^none .*; not wanted: order_expired$/)
})

test('all outflows that have not ended are listed, the oldest first, also those that nothing is in the way of', async () => {
  expect(await run('list', '--outflows')).toBe('No outflow is under way.')
  const order = await place('BTC:BTC')
  const { id } = order.terms
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
  const { payoutId } = await sendPayout(stage, order)
  await writeAttempt(stage, payoutId, 2, 'raised')
  await stage.db.query(
    `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms)
     VALUES (0, 'sweep', 'sweep:1', 'sweep', 'ETH', 'ETH:ETH', 5, 'a', 'planned', 1000, 1),
       (0, 'sweep', 'sweep:0', 'sweep', 'ETH', 'ETH:ETH', 5, 'b', 'failed', 1000, 1)`,
  )
  await writeAttempt(stage, 'sweep:1', 1, 'swept')
  const lines = (await run('list', '--outflows')).split('\n').map((line) => line.split(/ {2,}/))
  const [sweep, payout] = ['0.000000000000000005 ETH:ETH', '1 ETH:ETH']
  expect(lines).toEqual([
    ['ORDER', 'OUTFLOW', 'CHAIN', 'KIND', 'STATE', 'AMOUNT', 'PLANNED', 'TRANSACTION', 'TROUBLE'],
    ['-', 'sweep:1', 'ETH', 'sweep', 'broadcast', sweep, '1970-01-01 00:00:01Z', 'swept', '-'],
    [id, payoutId, 'ETH', 'payout', 'broadcast', payout, '2027-01-15 08:00:00Z', 'raised', '-'],
  ])
  const notes: string[] = []
  const first = await runOrderCommand(
    stage,
    ['list', '--outflows', '--limit', '1', '--json'],
    stage.db,
    notes,
  )
  expect(JSON.parse(first)).toMatchObject([{ tx_hash: 'swept' }])
  expect(notes, 'what reads it sees rows only').toEqual(['There are more than these 1: --limit shows them.'])
  for (const other of [['--trouble'], ['--status', 'NEW'], ['--account', 'acc_stage']])
    await expect(run('list', '--outflows', ...other)).rejects.toThrow(
      '--outflows lists all outflows and no orders',
    )
})

test('an order is shown with what was booked when its payout lost its block and got another, and with nothing of others', async () => {
  const { id } = (await place('BTC:BTC')).terms
  const posting = { debit: 'wallet', credit: 'orphaned_payouts', amount: amountOf('ETH:ETH', 7n) } as const
  const entries = [`${id}:1:block_lost:b@1`, `${id}:1:block_lost:c@2`, `${id}:10:block_found:d@2`]
  const others = [`${(await place('BTC:BTC')).terms.id}:1:block_lost:b@1`, `${id}0:1:block_lost:b@1`]
  for (const [at, key] of [...entries, ...others].entries()) await postForHouse(stage.db, key, [posting], at)
  const { postings } = JSON.parse(await run('show', id, '--json'))
  expect(postings.map(({ entry_key }: { entry_key: string }) => entry_key)).toEqual(entries)
  expect(await run('show', id)).toMatch(
    new RegExp(`orphaned_payouts +0.000000000000000007 ETH:ETH +${id}:1:block_lost:b@1$`, 'm'),
  )
})

test('an order is shown with the transaction that paid it, and an outflow with its tag', async () => {
  const order = await place('BTC:BTC')
  const { id } = order.terms
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
  expect(await run('show', id)).not.toMatch(/^Paid by/m)
  const payout = await sendPayout(stage, order)
  await stage.corrupt(`UPDATE outflows SET tag = 'a memo'`)
  expect(await run('show', id)).toMatch(
    new RegExp(`^${payout.payoutId} +payout .* outside-\\d+ +a memo +2027-01-15 `, 'm'),
  )
  await confirmPayout(stage, order, { ...payout, cost: 1n })
  expect(await run('show', id)).toMatch(new RegExp(`^Paid by +${payout.txHash}$`, 'm'))
})

test('what the house has booked is not read through for it', async () => {
  const { id } = (await place('BTC:BTC')).terms
  const pages = () => pagesTouched(stage.db, (sql) => readOrderFile(sql, id))
  const few = await pages()
  await stage.corrupt(
    `INSERT INTO journal (bucket, owner, entry_key, line, asset, debit, credit, units, at_ms)
     SELECT 0, 'house', 'CB' || lpad(n::text, 16, '0') || ':1:block_lost:b@1', 1, 'ETH:ETH', 'wallet', 'orphaned_payouts', 7, 1
     FROM generate_series(1000, 21000) AS n`,
  )
  await stage.corrupt('ANALYZE journal')
  expect(await pages()).toBeLessThan(few + 10)
})
