import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { verifyAudit } from '../../accounts/verify_audit.ts'
import { insertAddresses } from '../../db/addresses.ts'
import { type By, readAuditRows } from '../../db/audit_log.ts'
import type { Database } from '../../db/database.ts'
import { findOrder } from '../../db/orders.ts'
import { assert } from '../../domain/assert.ts'
import { type Asset, assetOf } from '../../domain/catalog/assets.ts'
import { type Amount, amountOf } from '../../domain/money/amount.ts'
import { sealedTermsOf, sealText } from '../../domain/orders/seal.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { emergencyOffers } from '../emergency_offers.ts'
import { type MarketBoard, marketBoard } from '../market.ts'
import {
  type BooksStage,
  confirmDeposit,
  mineDeposit,
  openBooksStage,
  placeOrder,
  tell,
} from '../testing/books_stage.ts'
import { databaseTelling } from '../testing/told_tables.ts'
import type { ActionView, DeskOutcome, EmergencyAction } from './desk.ts'
import { emergencyDesk } from './emergency_desk.ts'

/**
 * What: a choice that is sent again under its key is told what the first one was told, wherever the first one is by then.
 * How: the real desk on a real PostgreSQL; the test stands between the two, and lets the same request be answered whole
 * before each of the statements of another one.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('emergency-desk')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

/** What is chosen, what the market knows then, and whose key is used: the owner's, if it is nobody else's. */
type Moment = {
  readonly action: EmergencyAction
  readonly market: Partial<MarketBoard>
  readonly asker: string
}

/** An order that received half of what it asks, and the request for a refund of that. */
async function stuckOrder() {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 10_000_000n, promises: 10n ** 18n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 5_000_000n, 101))
  const { id, accountId } = order.terms
  await stage.corrupt('UPDATE orders SET seal = $2 WHERE order_id = $1', [id, sealText(sealedTermsOf(order))])
  const choose = (db: Database, key = 'again', address: string | null = 'back', on: Partial<Moment> = {}) => {
    const { world } = stage
    const { action = 'refund', market, asker = accountId } = on
    const chains = new Map([...world.chains].map(([of, chain]) => [of, { ...chain, parseAddress: accept }]))
    const desk = emergencyDesk({
      ...world,
      db,
      market: { ...world.market, payoutCost: ({ id: asset }) => amountOf(asset, 1_000n), ...market },
      chains,
      seal: sealText,
      tokenOf: (orderId) => orderId,
      randomDigits: (count) => '0'.repeat(count),
      randomId: () => 'an id',
    })
    return desk.chooseAction({ accountId: asker, by: BY }, id, action, address, {
      slot: `key:${id}:${key}`,
      bodyHash: address ?? '',
    })
  }
  return { id, choose, outflows: () => stage.db.query('SELECT kind FROM outflows WHERE order_id = $1', [id]) }
}

const BY: By = { actor: 'key', address: '203.0.113.7', sessionId: null, keyId: 'ck_theirs' }

/** What the account's log says of the order, without when. */
async function notedOf({ id }: { readonly id: string }) {
  const rows = await readAuditRows(stage.db, 'acc_stage', 0, 1_000)
  return rows
    .filter(({ subject }) => subject === id)
    .map(({ act, actor, address, detail }) => ({ act, actor, address, detail: JSON.parse(detail) }))
}

/** `meanwhile` happens before the statement of this number, counted from 0; a transaction is one. */
function before(at: number, meanwhile: () => Promise<unknown>): { readonly db: Database; asked(): number } {
  let asked = 0
  const turn = async () => {
    asked += 1
    if (asked === at + 1) await meanwhile()
  }
  const db: Database = {
    ...stage.db,
    query: async (text, values) => {
      await turn()
      return stage.db.query(text, values)
    },
    transaction: async (work) => {
      await turn()
      return stage.db.transaction(work)
    },
  }
  return { db, asked: () => asked }
}

function toldBy(outcome: DeskOutcome<ActionView>): string {
  if (!outcome.ok) return outcome.rejection.code
  const { isReplay, order_id, status, message, updated_at } = outcome.value
  return `${isReplay ? 'again: ' : ''}${order_id} is ${status} since ${updated_at}: ${message}`
}

const STATEMENTS_MAX = 10

test('the same request at every moment of another one: both are told the same, and one refund is planned', async () => {
  let reached = 0
  for (let at = 0; at < STATEMENTS_MAX; at += 1) {
    const { choose, outflows } = await stuckOrder()
    let first = ''
    const line = before(at, async () => {
      first = toldBy(await choose(stage.db))
    })
    const told = toldBy(await choose(line.db))
    if (line.asked() <= at) break
    reached += 1
    expect(first, `before statement ${at}`).toContain('is REFUND')
    expect(told, `before statement ${at}`).toBe(`again: ${first}`)
    expect(await outflows()).toEqual([{ kind: 'refund' }])
  }
  expect(reached).toBeGreaterThan(1)
})

test('an action that was taken is written down once, with the key, where it came from and where a refund goes', async () => {
  await stage.empty('audit_log', 'audit_heads')
  const noted = { act: 'action_chosen', actor: 'key', address: '203.0.113.7' }
  const returned = await stuckOrder()
  await returned.choose(stage.db)
  await returned.choose(stage.db)
  await returned.choose(stage.db, 'other')
  await returned.choose(stage.db, 'again', 'elsewhere')
  const refund = { action: 'refund', refund_address: 'back', key: 'ck_theirs' }
  expect(await notedOf(returned)).toEqual([{ ...noted, detail: refund }])
  const exchanged = await stuckOrder()
  await exchanged.choose(stage.db, 'stranger', 'to me', { asker: 'acc_stranger' })
  const low = { reserve: ({ id: asset }: Asset) => amountOf(asset, 1n) }
  await exchanged.choose(stage.db, 'too low', null, { action: 'continue', market: low })
  expect(await notedOf(exchanged)).toEqual([])
  await exchanged.choose(stage.db, 'go', 'checked only', { action: 'continue' })
  expect(await notedOf(exchanged)).toEqual([{ ...noted, detail: { action: 'continue', key: 'ck_theirs' } }])
  expect((await verifyAudit(stage.db, [])).problems).toEqual([])
})

test('another request finds no emergency any more, under its own key and under the same', async () => {
  const { choose, outflows } = await stuckOrder()
  expect(toldBy(await choose(stage.db))).toContain('is REFUND')
  expect(toldBy(await choose(stage.db, 'other'))).toBe('NOT_EMERGENCY')
  expect(toldBy(await choose(stage.db, 'again', 'elsewhere'))).toBe('IDEMPOTENCY_CONFLICT')
  expect(await outflows()).toEqual([{ kind: 'refund' }])
})

test('an order of another account is none, also under a key that its owner has used', async () => {
  const { choose, outflows } = await stuckOrder()
  const stranger = { asker: 'acc_stranger' }
  expect(toldBy(await choose(stage.db, 'theirs', 'to me', stranger))).toBe('ORDER_NOT_FOUND')
  expect(await outflows()).toEqual([])
  expect(toldBy(await choose(stage.db))).toContain('is REFUND')
  expect(toldBy(await choose(stage.db, 'again', 'back', stranger))).toBe('ORDER_NOT_FOUND')
})

test('a refund to an address where we keep our own money is refused, and the next request is taken', async () => {
  const { choose, outflows } = await stuckOrder()
  await insertAddresses(stage.db, 'bitcoin', 'change', 7, ['change 7'])
  const refused = await choose(stage.db, 'own', 'change 7')
  expect(refused).toMatchObject({
    rejection: { code: 'INVALID_ADDRESS', details: [{ field: 'refund_address' }] },
  })
  expect(await outflows()).toEqual([])
  expect(toldBy(await choose(stage.db, 'theirs', 'back'))).toContain('is REFUND')
})

test('a refund to the deposit address of the order is refused, and the next request is taken', async () => {
  const { id, choose, outflows } = await stuckOrder()
  const order = await findOrder(stage.db, id)
  expect(await choose(stage.db, 'own', order?.terms.depositAddress ?? '')).toMatchObject({
    ok: false,
    rejection: {
      code: 'INVALID_ADDRESS',
      message: 'refund_address cannot be the deposit address of the order',
    },
  })
  expect(await outflows()).toEqual([])
  expect(await choose(stage.db, 'next')).toMatchObject({ ok: true })
  expect(await outflows()).toEqual([{ kind: 'refund' }])
})

test('what a refund took of the network that was executed and failed is taken off the next one', async () => {
  const { choose, id } = await stuckOrder()
  const market = { costOf: ({ id: asset }: Asset, told: Amount) => amountOf(asset, told.units) }
  await choose(stage.db, 'first', 'back', { market })
  const payoutId = `${id}:1`
  const cost = amountOf('BTC:BTC', 700n)
  const fact = { kind: 'PayoutFailed', payoutId, problem: 'DESTINATION_PROBLEM', cost } as const
  await tell(stage, id, `${payoutId}:failed`, fact)
  await stage.db.query(`UPDATE outflows SET state = 'failed'`)
  await choose(stage.db, 'second', 'back', { market })
  const refunds = await stage.db.query('SELECT units FROM outflows ORDER BY payout_id')
  expect(refunds).toEqual([{ units: 4_999_000n }, { units: 4_998_300n }])
})

test.each(['continue', 'refund'] as const)(
  '%s is on what is true then, wherever it is when another choice has come to nothing meanwhile',
  async (action) => {
    const market = { costOf: ({ id: asset }: Asset, told: Amount) => amountOf(asset, told.units) }
    for (let at = 0; at < STATEMENTS_MAX; at += 1) {
      const { choose, id } = await stuckOrder()
      const line = before(at, async () => {
        await choose(stage.db, 'first', 'elsewhere', { market })
        const payoutId = `${id}:1`
        const cost = amountOf('BTC:BTC', 700n)
        await tell(stage, id, 'fails', {
          kind: 'PayoutFailed',
          payoutId,
          problem: 'DESTINATION_PROBLEM',
          cost,
        })
        await stage.db.query(`UPDATE outflows SET state = 'failed' WHERE order_id = $1`, [id])
      })
      await choose(line.db, 'second', action === 'refund' ? 'back' : null, { action, market })
      if (line.asked() <= at) break
      const [second] = await stage.db.query('SELECT address, units FROM outflows WHERE payout_id = $1', [
        `${id}:2`,
      ])
      const expected =
        action === 'refund'
          ? { address: 'back', units: 4_998_300n }
          : { address: expect.stringMatching(/^outside/), units: 499_999_990_000_000_000n }
      expect(second, `before statement ${at}`).toEqual(expected)
    }
  },
)

test('a refund for which too little had come when it was looked at is one of what has come since', async () => {
  const { id, choose } = await stuckOrder()
  const order = await findOrder(stage.db, id)
  assert(order !== null, 'there is such an order')
  const market = { payoutCost: ({ id: asset }: Asset) => amountOf(asset, 6_000_000n) }
  expect(toldBy(await choose(stage.db, 'before', 'back', { market }))).toBe('INVALID_ACTION')
  // The order is looked at by the first statement, and the choice is written by the second.
  const line = before(1, async () => {
    await confirmDeposit(stage, order, await mineDeposit(stage, order, 4_000_000n, 101))
  })
  expect(toldBy(await choose(line.db, 'meanwhile', 'back', { market }))).toContain('is REFUND')
  expect(await stage.db.query('SELECT units FROM outflows')).toEqual([{ units: 3_000_000n }])
})

test('what has no price now is put off, and not told to be too little', async () => {
  const { choose, outflows } = await stuckOrder()
  const noPrice = { code: 'RATE_UNAVAILABLE', message: 'there is no reliable price at the moment' } as const
  const market = { read: () => refuse(noPrice), payoutCost: () => null }
  expect(toldBy(await choose(stage.db, 'new rate', 'back', { action: 'recalculate', market }))).toBe(
    noPrice.code,
  )
  expect(toldBy(await choose(stage.db, 'refund', 'back', { market }))).toBe(noPrice.code)
  const closed = { code: 'MAINTENANCE', message: 'BTC on BTC is not available at the moment' } as const
  const silent = { ...market, read: () => refuse(closed) }
  expect(toldBy(await choose(stage.db, 'new rate', 'back', { action: 'recalculate', market: silent }))).toBe(
    closed.code,
  )
  expect(await outflows()).toEqual([])
  expect(toldBy(await choose(stage.db, 'refund'))).toContain('is REFUND')
})

test('what the reserve does not cover is put off, and settled once it does', async () => {
  const { choose, outflows } = await stuckOrder()
  const go = (key: string, units: bigint) => {
    const market = { reserve: ({ id: asset }: Asset) => amountOf(asset, units) }
    return choose(stage.db, key, null, { action: 'continue', market })
  }
  // Half of what was asked, at the lock.
  expect(toldBy(await go('too low', 5n * 10n ** 17n - 1n))).toBe('MAINTENANCE')
  expect(await outflows()).toEqual([])
  expect(toldBy(await go('high enough', 5n * 10n ** 17n))).toContain('is EXCHANGE')
  expect(await outflows()).toEqual([{ kind: 'payout' }])
})

test('of two choices at once that the reserve covers one by one and not together, one is settled', async () => {
  const market = await boardOfReserve(7n * 10n ** 17n)
  // Each is half an ether.
  const orders = [await stuckOrder(), await stuckOrder()]
  const go = orders.map(({ choose }) => choose(stage.db, 'go', null, { action: 'continue', market }))
  const told = (await Promise.all(go)).map((outcome) => (outcome.ok ? 'settled' : outcome.rejection.code))
  expect(told.sort()).toEqual(['MAINTENANCE', 'settled'])
})

test('choices that come to nothing keep none of the reserve, however often they are made', async () => {
  const { id, choose, outflows } = await stuckOrder()
  const { clock, prices, policy } = stage.world
  const held = { asset: 'ETH:ETH', spendable: 7n * 10n ** 18n, payout_cost: 1n, at_ms: 0, figure: 1 }
  const answering = (text: string) =>
    text.includes('FROM reserve_figures') ? [{ figure: 1 }] : text.includes('FROM reserves') ? [held] : []
  const db = { query: async (text: string) => answering(text) } as unknown as typeof stage.db
  const market = marketBoard({ db, clock, prices, policy, assets: new Set() })
  await market.refresh()
  // A key that its account has used for something else.
  await stage.db.query(
    `INSERT INTO retry_slots (account_id, slot, body_hash, order_id, answer, at_ms)
     SELECT account_id, $2, 'another body', order_id, NULL, 1 FROM orders WHERE order_id = $1`,
    [id, `key:${id}:used`],
  )
  const before = market.reserve(assetOf('ETH:ETH'), 'another order')
  for (let tries = 0; tries < 20; tries += 1) {
    const told = await choose(stage.db, 'used', null, { action: 'continue', market })
    expect(told.ok).toBe(false)
  }
  expect(market.reserve(assetOf('ETH:ETH'), 'another order')).toEqual(before)
  expect(await outflows()).toEqual([])
})

/** Of seven ether that can be paid from, or another amount. */
async function boardOfReserve(spendable = 7n * 10n ** 18n) {
  const { clock, prices, policy } = stage.world
  const figure = { asset: 'ETH:ETH', spendable, payout_cost: 1n, at_ms: 0, figure: 1 }
  const db = databaseTelling({ reserves: [figure] })
  const board = marketBoard({ db, clock, prices, policy, assets: new Set() })
  await board.refresh()
  return board
}

test('nor does one that comes too late, because another was taken at the last moment', async () => {
  const { choose, outflows } = await stuckOrder()
  const market = await boardOfReserve()
  const held = market.reserve(assetOf('ETH:ETH'), 'another order')
  // The order is looked at by the first statement, and the choice is written by the second.
  const line = before(1, () => choose(stage.db, 'first'))
  const told = await choose(line.db, 'late', null, { action: 'continue', market })
  expect(toldBy(told)).toBe('NOT_EMERGENCY')
  expect(market.reserve(assetOf('ETH:ETH'), 'another order')).toEqual(held)
  expect(await outflows()).toEqual([{ kind: 'refund' }])
})

test('one that is made anew, because the emergency is another one by then, keeps what it pays and no more', async () => {
  const { id, choose } = await stuckOrder()
  const board = await boardOfReserve()
  const market = { ...board, costOf: ({ id: asset }: Asset, told: Amount) => amountOf(asset, told.units) }
  const held = board.reserve(assetOf('ETH:ETH'), 'another order').units
  const cost = amountOf('BTC:BTC', 700n)
  const line = before(1, async () => {
    await choose(stage.db, 'first')
    const failed = {
      kind: 'PayoutFailed',
      payoutId: `${id}:1`,
      problem: 'DESTINATION_PROBLEM',
      cost,
    } as const
    await tell(stage, id, 'fails', failed)
    await stage.db.query("UPDATE outflows SET state = 'failed'")
  })
  expect(toldBy(await choose(line.db, 'second', null, { action: 'continue', market }))).toContain(
    'is EXCHANGE',
  )
  const [paid] = await stage.db.query<{ units: bigint }>("SELECT units FROM outflows WHERE kind = 'payout'")
  expect(held - board.reserve(assetOf('ETH:ETH'), 'another order').units).toBe(paid?.units)
})

test('one of which nobody knows what became of it is not held against the same choice sent again, and against others it is', async () => {
  const market = await boardOfReserve(7n * 10n ** 17n)
  const [stuck, other] = [await stuckOrder(), await stuckOrder()]
  const go = (order: typeof stuck, db: Database) =>
    order.choose(db, 'go', null, { action: 'continue', market })
  const lost: Database = {
    ...stage.db,
    transaction: async () => {
      throw new Error('the connection was lost')
    },
  }
  await expect(go(stuck, lost)).rejects.toThrow('the connection was lost')
  const found = await findOrder(stage.db, stuck.id)
  assert(found !== null, 'there is such an order')
  expect(emergencyOffers(found, market).continue?.to, 'what it shows meanwhile').toEqual(
    amountOf('ETH:ETH', 5n * 10n ** 17n),
  )
  expect(toldBy(await go(other, stage.db))).toBe('MAINTENANCE')
  expect(toldBy(await go(stuck, stage.db))).toContain('is EXCHANGE')
  expect(market.reserve(assetOf('ETH:ETH'), 'another order').units, 'it holds its amount once').toBe(
    2n * 10n ** 17n,
  )
})

test('nor is an exchange of it that failed before its customer was asked, and both are held once', async () => {
  const market = await boardOfReserve(7n * 10n ** 17n)
  const { id, choose } = await stuckOrder()
  const half = amountOf('ETH:ETH', 5n * 10n ** 17n)
  const failed = market.setAside(id, half, () => Promise.reject(new Error('maybe settled')))
  await expect(failed).rejects.toThrow('maybe settled')
  expect(toldBy(await choose(stage.db, 'go', null, { action: 'continue', market }))).toContain('is EXCHANGE')
  expect(market.reserve(assetOf('ETH:ETH'), 'another order').units).toBe(2n * 10n ** 17n)
})

test('what is to leave is what was offered, and not what was promised or received', async () => {
  const unitsOf = async (id: string) => {
    const rows = await stage.db.query<{ units: bigint }>('SELECT units FROM outflows WHERE order_id = $1', [
      id,
    ])
    return rows.map(({ units }) => units)
  }
  const [exchanged, returned] = [await stuckOrder(), await stuckOrder()]
  const market = { reserve: ({ id: asset }: Asset) => amountOf(asset, 10n ** 18n) }
  await exchanged.choose(stage.db, 'go', null, { action: 'continue', market })
  expect(await unitsOf(exchanged.id), 'half of one ether').toEqual([5n * 10n ** 17n])
  await returned.choose(stage.db)
  expect(await unitsOf(returned.id), 'less the network’s cost').toEqual([4_999_000n])
})

test.each([
  ['a refund address', 'refund_address', null],
  ['a destination', 'destination', 'back'],
])(
  '%s that was written into the row by somebody is not sealed, and nothing is refunded',
  async (_, column, given) => {
    const { id, choose, outflows } = await stuckOrder()
    await stage.corrupt(`UPDATE orders SET ${column} = 'thief' WHERE order_id = $1`, [id])
    await expect(choose(stage.db, 'again', given)).rejects.toThrow('are the ones that were sealed')
    expect(await outflows()).toEqual([])
  },
)
