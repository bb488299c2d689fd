import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { planOutflow } from '../../db/outflows.ts'
import { assetOf } from '../../domain/catalog/assets.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { auditBooks } from '../books/audit_books.ts'
import { reconcileChain } from '../books/reconcile.ts'
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
  writeAttempt,
} from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { worldSigningNothing } from '../testing/willing_signer.ts'
import { workPayouts } from './work.ts'

/**
 * What: a difference between ledger and chain stops what has not left, and nothing else.
 * How: a real PostgreSQL, orders moved by facts, a chain on paper that can be looked at and not be paid on.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('work')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n

function place() {
  return placeOrder(stage, 'ETH:ETH', 'USDT:ERC20', { asks: ETHER, promises: 100n * ETHER })
}

test('while outflows are stopped nothing is drafted, and what is on its way is followed to its end', async () => {
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  const [planned, sent] = [await place(), await place()]
  for (const order of [planned, sent]) {
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  }
  await tell(stage, planned.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  const { txHash } = await sendPayout(stage, sent)
  const eth = stage.chain('ETH')
  const states = async () => {
    const rows = await stage.db.query<{ order_id: string; state: string; trouble: string | null }>(
      'SELECT order_id, state, trouble FROM outflows',
    )
    return new Map(rows.map(({ order_id, ...rest }) => [order_id, rest]))
  }

  eth.move(100, 'USDT:ERC20', RESERVE, -1n)
  for (let look = 0; look < 3; look += 1) await reconcileChain(stage.world, eth, { guard: nobodyElse })
  eth.mined(txHash, 100, 0n)
  await lookAt(stage, 'ETH', 112)
  const world = worldSigningNothing(stage)
  await workPayouts(world, eth)
  expect((await states()).get(sent.terms.id)).toMatchObject({ state: 'confirmed' })
  expect((await states()).get(planned.terms.id)).toEqual({
    state: 'planned',
    trouble: 'outflows of ETH are stopped: ledger and chain differ',
  })

  eth.move(100, 'USDT:ERC20', RESERVE, 1n)
  eth.move(100, 'USDT:ERC20', RESERVE, -100n * ETHER)
  await lookAt(stage, 'ETH', 112)
  expect(await reconcileChain(stage.world, eth, { guard: nobodyElse })).toMatchObject({ kind: 'compared' })
  stage.advance(2_000)
  await workPayouts(world, eth)
  expect((await states()).get(planned.terms.id)?.trouble, 'it is drafted again').not.toContain('stopped')
})

test.each([
  ['paid', true, 'confirmed'],
  ['failed', false, 'failed'],
] as const)('a payout that %s in a block that the chain has left is not over', async (_, succeeded, end) => {
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { txHash } = await sendPayout(stage, order)
  const eth = stage.chain('ETH')
  eth.mined(txHash, 100, 0n, succeeded)
  await lookAt(stage, 'ETH', 112)
  // The node that is asked for the payout is on another branch than the one that is asked for the block.
  const state = async (chain: Chain) => {
    stage.advance(60_000)
    await workPayouts(worldSigningNothing(stage), chain)
    return (await stage.db.query('SELECT state, trouble FROM outflows'))[0]
  }
  expect(await state({ ...eth, blockHash: async () => 'another' })).toEqual({
    state: 'broadcast',
    trouble: 'block 100 is another one at present',
  })
  expect(await state(eth)).toMatchObject({ state: end })
})

test.each([
  ['paid', true],
  ['failed', false],
] as const)('a payout that %s on a branch which only some nodes are on is not over', async (_, succeeded) => {
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { txHash } = await sendPayout(stage, order)
  await lookAt(stage, 'ETH', 112)
  const eth = stage.chain('ETH')
  // The watcher's node tells how high the chain is, and another one, which has just two blocks on its branch, all the rest.
  const block = { height: 100, hash: 'lost' }
  const cost = amountOf('ETH:ETH', 0n)
  const split: Chain = {
    ...eth,
    lookup: async (hash) =>
      hash === txHash ? { where: 'block', block, succeeded, cost } : { where: 'absent' },
    blockHash: async (height) => (height === 100 ? 'lost' : eth.blockHash(height)),
  }
  await workPayouts(worldSigningNothing(stage), split)
  expect((await stage.db.query('SELECT state, trouble FROM outflows'))[0]).toEqual({
    state: 'broadcast',
    trouble: 'block 100 is another one at present',
  })
})

test('a payout waits until the watcher has come as far, says so when that has stopped, and ends in what it has forgotten', async () => {
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { txHash } = await sendPayout(stage, order)
  const eth = stage.chain('ETH')
  eth.mined(txHash, 100, 0n)
  await lookAt(stage, 'ETH', 110)
  eth.setHead(3_000)
  const look = async () => {
    stage.advance(30_000)
    await workPayouts(worldSigningNothing(stage), eth)
    return (await stage.db.query('SELECT state, trouble, due_height FROM outflows'))[0]
  }
  expect(await look()).toEqual({ state: 'broadcast', trouble: null, due_height: 111 })
  const trouble = 'it is in block 100, and ETH was not looked at whole for long'
  expect(await look()).toEqual({ state: 'broadcast', trouble, due_height: null })
  await lookAt(stage, 'ETH', 3_000)
  await stage.db.query("DELETE FROM chain_blocks WHERE chain = 'ETH' AND height <= 1000")
  await stage.db.query("UPDATE chain_heads SET leaving_above_height = 105 WHERE chain = 'ETH'")
  expect(await look(), 'its branch is being left').toMatchObject({ state: 'broadcast', trouble: null })
  await stage.db.query("UPDATE chain_heads SET leaving_above_height = NULL WHERE chain = 'ETH'")
  expect(await look()).toMatchObject({ state: 'confirmed' })
})

test('a payout is over when its network says that its block is final, and not before', async () => {
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { txHash } = await sendPayout(stage, order)
  const eth = stage.chain('ETH')
  eth.mined(txHash, 100, 0n)
  await lookAt(stage, 'ETH', 125)
  const stateWith = async (height: number) => {
    stage.advance(60_000)
    await lookAt(stage, 'ETH', 25 + height, height)
    const finalBlock = async () => ({ height, hash: (await eth.blockHash(height)) ?? '' })
    await workPayouts(worldSigningNothing(stage), { ...eth, finalBlock })
    return (await stage.db.query('SELECT state FROM outflows'))[0]
  }
  expect(await stateWith(99)).toEqual({ state: 'broadcast' })
  expect(await stateWith(100)).toEqual({ state: 'confirmed' })
})

test('a payout whose token moved in another way than it was to waits for a person, however long', async () => {
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { txHash } = await sendPayout(stage, order)
  const eth = stage.chain('ETH')
  eth.mined(txHash, 100, 0n)
  await lookAt(stage, 'ETH', 112)
  const movedOtherwise = 'it was to move 100 units and moved 99'
  const chain: Chain = {
    ...eth,
    lookup: async (hash) => {
      const status = await eth.lookup(hash)
      return status.where === 'block' ? { ...status, movedOtherwise } : status
    },
  }
  for (let hours = 0; hours < 3; hours += 1) {
    await workPayouts(worldSigningNothing(stage), chain)
    expect(await stage.db.query('SELECT state, trouble FROM outflows')).toEqual([
      { state: 'broadcast', trouble: `${txHash} succeeded, but ${movedOtherwise}` },
    ])
    stage.advance(3_600_000)
  }
  expect(await stage.db.query('SELECT status FROM orders')).toEqual([{ status: 'WITHDRAW' }])
})

test.each([
  ['anybody', undefined, 'DESTINATION_PROBLEM', 21_000n],
  ['us', 'ours', 'NETWORK_PROBLEM', 0n],
] as const)(
  'a payout that failed because of %s is charged to whoever let it',
  async (_, fault, reason, charged) => {
    await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
    const order = await place()
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    const { txHash } = await sendPayout(stage, order)
    const eth = stage.chain('ETH')
    eth.mined(txHash, 100, 21_000n, false, fault)
    await lookAt(stage, 'ETH', 112)
    await workPayouts(worldSigningNothing(stage), eth)
    const [row] = await stage.db.query(
      `SELECT emergency_reasons AS reasons, failed_payouts_cost, (
       SELECT sum(units) FROM journal WHERE owner = $1 AND debit = 'network_costs' AND asset = 'ETH:ETH') AS booked
     FROM orders WHERE order_id = $1`,
      [order.terms.id],
    )
    expect(row).toEqual({ reasons: [reason], failed_payouts_cost: charged, booked: 21_000n })
  },
)

test('a payout that failed by what happened meanwhile is made anew, and pays', async () => {
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { txHash } = await sendPayout(stage, order)
  const eth = stage.chain('ETH')
  eth.mined(txHash, 100, 21_000n, false, 'nobodys')
  await lookAt(stage, 'ETH', 112)
  await workPayouts(worldSigningNothing(stage), eth)
  const outflows = await stage.db.query(
    'SELECT payout_id, state, units, mined_cost FROM outflows ORDER BY payout_id',
  )
  const [failed, anew] = outflows
  expect(outflows).toHaveLength(2)
  expect(failed).toMatchObject({ payout_id: `${order.terms.id}:1`, state: 'failed', mined_cost: 21_000n })
  expect(anew).toEqual({ ...failed, payout_id: `${order.terms.id}:2`, state: 'planned', mined_cost: null })
  expect((await auditBooks(stage.db)).problems).toEqual([])
})

test('payouts whose deposits are on a chain that does not answer hold up no others', async () => {
  await fundReserve(stage, 'USDT:ERC20', 10_000n * ETHER)
  const [btc, eth] = [stage.chain('BTC'), stage.chain('ETH')]
  for (const from of [...Array.from({ length: 6 }, () => 'BTC:BTC' as const), 'ETH:ETH' as const]) {
    const order = await placeOrder(stage, from, 'USDT:ERC20', { asks: ETHER, promises: 100n * ETHER })
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  }
  Object.assign(btc, { blockHash: () => new Promise(() => {}) })
  stage.advance(6_000)
  await lookAt(stage, 'ETH', 100)

  await workPayouts(worldSigningNothing(stage), eth)
  const troubles = await stage.db.query<{ from_asset: string; trouble: string }>(
    'SELECT from_asset, trouble FROM outflows JOIN orders USING (bucket, order_id)',
  )
  for (const { from_asset, trouble } of troubles) {
    const isSilent = from_asset === 'BTC:BTC'
    expect(trouble).toContain(isSilent ? 'BTC, where the deposit is, does not answer' : 'only looked at')
  }
  expect(troubles).toHaveLength(7)
})

test.each([
  ['BTC:BTC', 200, 'waits'],
  ['BTC:BTC', 201, 'goes on'],
  ['XRP:XRP', 0, 'goes on'],
] as const)(
  'of a deposit of %s, %i blocks deep, in a block that its node has forgotten, the payout %s',
  async (from, deep, then) => {
    await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
    const order = await placeOrder(stage, from, 'USDT:ERC20', { asks: ETHER, promises: 100n * ETHER })
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
    const { chain: source } = assetOf(from)
    await lookAt(stage, source, 100 + deep)
    Object.assign(stage.chain(source), { blockHash: async () => null })

    await workPayouts(worldSigningNothing(stage), stage.chain('ETH'))
    const [outflow] = await stage.db.query<{ trouble: string }>('SELECT trouble FROM outflows')
    expect(outflow?.trouble).toContain(then === 'waits' ? 'is not in the chain' : 'only looked at')
  },
)

test('nothing leaves for a deposit of a chain that was reorganised deeply until that has grown', async () => {
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  await stage.db.query("UPDATE chain_heads SET cautious_until_height = 112 WHERE chain = 'ETH'")
  const troubleAt = async (height: number) => {
    stage.advance(10_000)
    await lookAt(stage, 'ETH', height)
    await workPayouts(worldSigningNothing(stage), stage.chain('ETH'))
    return (await stage.db.query('SELECT trouble FROM outflows'))[0]?.trouble
  }
  expect(await troubleAt(111)).toContain('ETH was reorganised deeply')
  expect(await troubleAt(112)).toContain('only looked at')
})

test('a block is asked for once before a payout leaves, however many deposits it brought', async () => {
  const [count, units] = [40, 100_000n]
  const terms = { asks: BigInt(count) * units, promises: 100n * ETHER }
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  const order = await placeOrder(stage, 'BTC:BTC', 'USDT:ERC20', terms)
  const btc = stage.chain('BTC')
  const block = { height: 100, hash: (await btc.blockHash(100)) ?? '' }
  const keys = Array.from({ length: count }, (_, index) => `BTC:many:${index}`)
  const amount = amountOf('BTC:BTC', units)
  const seenAtMs = stage.world.clock.nowMs()
  for (const key of keys) {
    const seen = { kind: 'DepositSeen', key, txHash: key, amount, seenAtMs, block } as const
    await tell(stage, order.terms.id, `${key}:mined`, seen)
  }
  for (const key of keys) await confirmDeposit(stage, order, key)
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  const asked: number[] = []
  const { blockHash } = btc
  const counting: Chain['blockHash'] = (height) => {
    asked.push(height)
    return blockHash(height)
  }
  Object.assign(btc, { blockHash: counting })

  await workPayouts(worldSigningNothing(stage), stage.chain('ETH'))
  const [outflow] = await stage.db.query<{ trouble: string }>('SELECT trouble FROM outflows')
  expect(outflow?.trouble).toContain('only looked at')
  expect(asked).toEqual([100])
})

test('what is given back of a deposit that is larger than was asked waits until it is as deep as that', async () => {
  const [asks, pays] = [1_000_000n, 200_000_000n]
  const order = await placeOrder(stage, 'BTC:BTC', 'USDT:ERC20', { asks, promises: 100n * ETHER })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, pays, 100))
  const [amount, networkFee] = [amountOf('BTC:BTC', pays - 1_000n), amountOf('BTC:BTC', 1_000n)]
  const refund = { amount, networkFee, address: 'back' }
  await tell(stage, order.terms.id, 'action:1', { kind: 'ActionChosen', action: 'refund', refund })
  const btc = stage.chain('BTC')
  const readTrouble = async () => (await stage.db.query('SELECT kind, state, trouble FROM outflows'))[0]
  for (const height of [102, 104]) {
    await lookAt(stage, 'BTC', height)
    await workPayouts(worldSigningNothing(stage), btc)
    expect(await readTrouble()).toEqual({ kind: 'refund', state: 'planned', trouble: null })
    stage.advance(10_000)
  }
  await lookAt(stage, 'BTC', 105)
  await workPayouts(worldSigningNothing(stage), btc)
  expect(await readTrouble()).toMatchObject({ trouble: expect.stringContaining('only looked at') })
})

test('of more outflows than one step takes, each has its turn, whatever becomes of those before it', async () => {
  await fundReserve(stage, 'USDT:ERC20', 10_000n * ETHER)
  for (let made = 0; made < 25; made += 1) {
    const order = await place()
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    const { payoutId } = await sendPayout(stage, order)
    await stage.db.query('UPDATE outflows SET nonce = $2 WHERE payout_id = $1', [payoutId, made])
  }
  const world = worldSigningNothing(stage)
  for (let step = 0; step < 4; step += 1) {
    // Longer than any outflow rests: those that were looked at are due again.
    stage.advance(60_000)
    await workPayouts(world, stage.chain('ETH'))
  }
  const neglected = await stage.db.query('SELECT nonce FROM outflows WHERE claim_fence = 0')
  expect(neglected).toEqual([])
})

test('an outflow of which the node cannot say whether it is over holds up nobody', async () => {
  await fundReserve(stage, 'USDT:ERC20', 10_000n * ETHER)
  for (let made = 0; made < 6; made += 1) {
    const order = await place()
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    await sendPayout(stage, order)
  }
  await stage.db.query("UPDATE attempts SET answer = 'refused'")
  const timed: Chain = {
    ...stage.chain('ETH'),
    broadcast: async () => 'refused',
    isOver: () => Promise.reject(new Error('it has forgotten')),
  }
  for (const passed of [0, 31 * 60_000, 60_000]) {
    stage.advance(passed)
    await workPayouts(worldSigningNothing(stage), timed)
    const held = await stage.db.query('SELECT payout_id FROM outflows WHERE claimed_until_wall_ms > 0')
    expect(held, 'each is let go').toEqual([])
  }
  const troubles = await stage.db.query('SELECT DISTINCT claim_fence, trouble FROM outflows')
  expect(troubles).toEqual([{ claim_fence: 3, trouble: 'Error: it has forgotten' }])
})

test('what a node answers holds up nobody, also where PostgreSQL keeps no such text', async () => {
  await fundReserve(stage, 'USDT:ERC20', 10_000n * ETHER)
  for (let made = 0; made < 6; made += 1) {
    const order = await place()
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    await sendPayout(stage, order)
  }
  // A page that whoever stands before the node has compressed, and does not say so.
  const garbled: Chain = {
    ...stage.chain('ETH'),
    lookup: () => Promise.reject(new Error('HTTP 502 \u001f\ufffd\b\0\0')),
  }
  await workPayouts(worldSigningNothing(stage), garbled)
  const kept = await stage.db.query('SELECT DISTINCT claimed_until_wall_ms, trouble FROM outflows')
  expect(kept).toEqual([{ claimed_until_wall_ms: 0, trouble: 'Error: HTTP 502 \u001f\ufffd\b' }])
})

test('a filler that ended because its payout was final is sent again when that has lost its block and is refused for good', async () => {
  await fundReserve(stage, 'USDT:ERC20', 10_000n * ETHER)
  const eth: Chain = { ...stage.chain('ETH'), minedNonce: async () => 0 }
  for (let nonce = 0; nonce < 2; nonce += 1) {
    const order = await place()
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    const { payoutId } = await sendPayout(stage, order)
    await stage.db.query('UPDATE outflows SET nonce = $2 WHERE payout_id = $1', [payoutId, nonce])
  }
  await stage.db.query("UPDATE attempts SET answer = 'refused'")
  const filler = {
    payoutId: 'house-ETH-0:1',
    kind: 'filler',
    asset: 'ETH:ETH',
    units: 0n,
    address: RESERVE,
  } as const
  await planOutflow(stage.db, { ...filler, tag: null, nonce: 0 }, stage.world.clock.nowMs())
  await writeAttempt(stage, filler.payoutId, 1, 'filler-tx')
  await stage.db.query("UPDATE outflows SET state = 'failed' WHERE kind = 'filler'")
  await stage.db.query(
    `UPDATE outflows SET state = 'orphaned', mined_height = 100, mined_hash = 'h', mined_cost = 0
     WHERE kind = 'payout' AND nonce = 0`,
  )
  for (let step = 0; step < 2; step += 1) {
    await workPayouts(worldSigningNothing(stage), eth)
    stage.advance(31 * 60_000)
  }
  await workPayouts(worldSigningNothing(stage), eth)
  const fences = await stage.db.query(
    'SELECT kind, nonce, claim_fence::int AS claims, state FROM outflows ORDER BY nonce, kind',
  )
  expect(fences, 'the nonce after it is not next').toEqual([
    { kind: 'filler', nonce: 0, claims: 1, state: 'signed' },
    { kind: 'payout', nonce: 0, claims: 3, state: 'orphaned' },
    { kind: 'payout', nonce: 1, claims: 3, state: 'broadcast' },
  ])
})

test.each(['signed', 'broadcast'])(
  'a filler that is %s is over once what seemed stuck is final by its nonce, and not before',
  async (state) => {
    await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
    const order = await place()
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    const { payoutId, txHash } = await sendPayout(stage, order)
    await stage.db.query('UPDATE outflows SET nonce = 7 WHERE payout_id = $1', [payoutId])
    const filler = {
      kind: 'filler',
      asset: 'ETH:ETH',
      units: 0n,
      address: RESERVE,
      tag: null,
      nonce: 7,
    } as const
    await planOutflow(stage.db, { payoutId: 'house-ETH-7:1', ...filler }, stage.world.clock.nowMs())
    await writeAttempt(stage, 'house-ETH-7:1', 1, 'filler-tx')
    await stage.db.query("UPDATE outflows SET state = $1 WHERE kind = 'filler'", [state])
    const stateOfFiller = async () => {
      const [row] = await stage.db.query<{ state: string }>(
        "SELECT state FROM outflows WHERE kind = 'filler'",
      )
      return row?.state
    }
    // The nonce is used by the payout, so that a node takes nothing else under it.
    const eth: Chain = { ...stage.chain('ETH'), broadcast: async () => 'refused', minedNonce: async () => 8 }

    stage.advance(60_000)
    await workPayouts(worldSigningNothing(stage), eth)
    expect(await stateOfFiller(), 'the block may yet be lost, and the filler mined').toBe(state)

    minePayout(stage, order, { txHash, height: 100, units: 100n * ETHER, cost: 21_000n })
    await lookAt(stage, 'ETH', 112)
    await confirmPayout(stage, order, { payoutId, txHash, cost: 21_000n, height: 100 })
    stage.advance(60_000)
    await workPayouts(worldSigningNothing(stage), eth)
    expect(await stateOfFiller()).toBe('failed')
  },
)
