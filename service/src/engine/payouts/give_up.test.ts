import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, DraftRejection } from '../../chains/chain.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { payoutIdOf } from '../../domain/orders/identifiers.ts'
import type { Order } from '../../domain/orders/order.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import type { Signer } from '../../signer/signer.ts'
import { PROTOCOL } from '../../signer/socket/protocol.ts'
import { socketSigner } from '../../signer/socket/socket_client.ts'
import { decodeMessage, encodeMessage, readLines } from '../../signer/socket/socket_lines.ts'
import { type BooksStage, lookAt, openBooksStage, tell } from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { paidOrder, pricedOrder } from '../testing/priced_order.ts'
import { openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { workPayouts } from './work.ts'

/**
 * What: what the signer has signed is never given up because this database does not know it, as one that was restored from a
 * backup does not: its customer was paid, and would be offered a refund. Nor is it while the signer does not say.
 * How: a real PostgreSQL, orders moved by facts, a chain on paper that cannot be paid on, and a signer that says what it knows.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('give_up')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const MINUTE_MS = 60_000

type LastSigned = Signer['lastSigned']

/** What it says it has signed, at most of the first outflow of each order. It signs nothing. */
function signingWorld(lastSigned: LastSigned): { world: SigningWorld; asked: string[] } {
  const asked: string[] = []
  const world = worldWithSigner(stage, {
    lastSigned: async (payoutId) => {
      asked.push(payoutId)
      return lastSigned(payoutId)
    },
    lastOutflow: async (orderId) => {
      asked.push(orderId)
      return (await lastSigned(payoutIdOf(orderId, 1))) > 0 ? 1 : 0
    },
    sign: () => Promise.reject(new Error('nobody answers')),
  })
  return { world, asked }
}

const knows =
  (attempt: number): LastSigned =>
  async () =>
    attempt
const silent: LastSigned = () => Promise.reject(new Error('no answer within 30000 ms'))
const earlier: LastSigned = () => Promise.reject(new Error('a method is addresses, room or sign'))

/** Its payout is planned. */
async function coveredOrder(): Promise<Order> {
  await openReserve(stage)
  return (await pricedOrder(stage)).order
}

/** The deposit's block left the chain and is there again: what had been planned was cancelled, and another payout is planned. */
async function pricedAgain(): Promise<Order> {
  const order = await coveredOrder()
  await priceAgain(order)
  return order
}

async function priceAgain({ terms: { id } }: Order): Promise<void> {
  const txHash = `deposit-tx-${id}-1000000`
  const key = `BTC:${txHash}:0`
  const block = { height: 100, hash: (await stage.chain('BTC').blockHash(100)) ?? '' }
  const seen = { txHash, amount: amountOf('BTC:BTC', 1_000_000n), seenAtMs: stage.world.clock.nowMs(), block }
  await tell(stage, id, `${key}:unmined:blockhash`, { kind: 'DepositUnmined', key })
  await tell(stage, id, `${key}:mined:again`, { kind: 'DepositSeen', key, ...seen })
  await tell(stage, id, `${key}:confirmed:again`, { kind: 'DepositConfirmed', key })
  await tell(stage, id, 'priced:2', { kind: 'ExchangePriced', quote: null })
}

function refusing(code: DraftRejection['code']): Chain {
  return payingChain(stage, { bid: async () => refuse({ code, message: 'not now' }) })
}

async function workFor(world: SigningWorld, chain: Chain, minutes: number) {
  for (let minute = 0; minute <= minutes; minute += 1) {
    await lookAt(stage, 'BTC', 100)
    await workPayouts(world, chain)
    stage.advance(MINUTE_MS)
  }
}

function stalledFor(world: SigningWorld, chain: Chain = refusing('network')) {
  return workFor(world, chain, stage.world.policy.stallMs / MINUTE_MS + 2)
}

async function outflows() {
  return stage.db.query<{ kind: string; state: string; status: string; trouble: string | null }>(
    `SELECT o.kind, o.state, orders.status, o.trouble FROM outflows o JOIN orders USING (bucket, order_id)
     ORDER BY o.payout_id`,
  )
}

async function stateOf({ terms }: Order) {
  const sql = 'SELECT state, trouble FROM outflows WHERE order_id = $1'
  return (await stage.db.query(sql, [terms.id]))[0]
}

test('what was never written down is given up when the signer has signed nothing of it', async () => {
  const order = await coveredOrder()
  const { world, asked } = signingWorld(knows(0))
  await stalledFor(world)
  expect(await outflows()).toMatchObject([{ state: 'cancelled', status: 'EMERGENCY' }])
  expect(new Set(asked), 'of nothing else').toEqual(new Set([order.terms.id]))
})

test('what the signer has signed and nobody has written down here takes no nonce and is not given up', async () => {
  const { terms } = await coveredOrder()
  const { world } = signingWorld(knows(2))
  await stalledFor(world, payingChain(stage))
  const why = `the signer has signed attempt 2 of ${terms.id}:1, which was never drafted here: nothing is paid`
  expect(await outflows()).toEqual([{ kind: 'payout', state: 'planned', status: 'EXCHANGE', trouble: why }])
  expect(await stage.db.query('SELECT 1 FROM attempts')).toEqual([])
  const told = stage.logged.filter(({ message }) => message === 'an outflow waits for an operator')
  expect(told, 'once, and not at every step').toMatchObject([{ level: 'error', facts: { trouble: why } }])
})

test.each([
  ['gives no answer', silent, 'no answer within 30000 ms'],
  ['does not know the question', earlier, 'a method is addresses, room or sign'],
])('while the signer %s nothing is given up, and later it is', async (_, lastSigned, why) => {
  await coveredOrder()
  await stalledFor(signingWorld(lastSigned).world)
  expect(await outflows()).toMatchObject([
    { state: 'planned', status: 'EXCHANGE', trouble: expect.stringContaining(why) },
  ])
  const told = stage.logged.filter(({ message }) => message === 'an outflow waits for an operator')
  expect(told, 'when it should have been given up').toHaveLength(1)
  await workFor(signingWorld(knows(0)).world, refusing('network'), 1)
  expect(await outflows()).toMatchObject([{ state: 'cancelled', status: 'EMERGENCY' }])
})

/** One on a socket that has signed nothing, and takes requests of this release for malformed: it answers in `protocol`. */
async function openOtherSigner(protocol: number | undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'cambist-other-signer-'))
  const path = join(folder, 'signer.sock')
  const refused = { ok: false, rejection: { code: 'malformed', message: 'a field that is not known' } }
  const server = createServer(async (socket) => {
    socket.on('error', () => {})
    for await (const line of readLines(socket)) {
      const { id, method } = decodeMessage(line) as { id: number; method: string }
      const room = { onePayout: 10n ** 30n, together: null }
      const result = { sign: refused, room }[method] ?? 0
      socket.write(encodeMessage({ id, ...(protocol !== undefined && { protocol }), result }))
    }
  }).listen(path)
  await once(server, 'listening')
  const client = socketSigner({ path, timeoutMs: 110_000 })
  const close = () => {
    client.close()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { world: worldWithSigner(stage, client), close }
}

test.each([
  ['the next', PROTOCOL + 1],
  ['an earlier', undefined],
])('beside a signer of %s release nothing is drafted and nothing given up', async (_, protocol) => {
  await coveredOrder()
  const other = await openOtherSigner(protocol)
  await stalledFor(other.world, payingChain(stage))
  const trouble = expect.stringMatching(/is of another release .*: start both of the same/)
  expect(await outflows()).toMatchObject([{ state: 'planned', status: 'EXCHANGE', trouble }])
  expect(await stage.db.query('SELECT 1 FROM attempts')).toEqual([])
  await workFor(signingWorld(knows(0)).world, payingChain(stage), 1)
  await stalledFor(other.world, payingChain(stage))
  other.close()
  expect(await outflows(), 'what was drafted before').toMatchObject([{ status: 'EXCHANGE', trouble }])
  expect(await stage.db.query('SELECT 1 FROM attempts')).toHaveLength(1)
})

test.each([
  ['has signed it', 'planned', 'EXCHANGE', knows(1)],
  ['gives no answer', 'planned', 'EXCHANGE', silent],
  ['does not know the question', 'planned', 'EXCHANGE', earlier],
  ['has signed nothing of it', 'cancelled', 'EMERGENCY', knows(0)],
] as const)(
  'a payout whose destination cannot be paid any more, and whose signer %s, is %s',
  async (_, state, status, lastSigned) => {
    await coveredOrder()
    await stalledFor(signingWorld(lastSigned).world, refusing('destination'))
    expect(await outflows()).toMatchObject([{ state, status }])
    const told = stage.logged.filter(({ message }) => message === 'an outflow waits for an operator')
    expect(told).toHaveLength(state === 'planned' ? 1 : 0)
  },
)

test.each([
  ['has signed', knows(1), 0, 1, 'the signer has signed attempt 1 of'],
  ['does not speak of', silent, 0, 0, 'the signer does not say whether it has signed'],
  ['has never signed', knows(0), 1, 0, 'nobody answers'],
] as const)(
  'an outflow after one that was cancelled without a draft, and that the signer %s, is drafted or not',
  async (_, lastSigned, drafts, times, trouble) => {
    const { terms } = await pricedAgain()
    const ofCancelled: LastSigned = async (payoutId) =>
      payoutId === `${terms.id}:1` ? lastSigned(payoutId) : 0
    await workFor(signingWorld(ofCancelled).world, payingChain(stage), 3)
    expect(await outflows()).toMatchObject([
      { state: 'cancelled' },
      { state: 'planned', status: 'EXCHANGE', trouble: expect.stringContaining(trouble) },
    ])
    expect(await stage.db.query('SELECT 1 FROM attempts')).toHaveLength(drafts)
    const told = stage.logged.filter(({ message }) => message === 'an outflow waits for an operator')
    expect(told).toHaveLength(times)
  },
)

test('an outflow after one that was forgotten is not given up, because nothing may be paid instead of it either', async () => {
  const { terms } = await pricedAgain()
  const { world } = signingWorld(async (payoutId) => (payoutId === `${terms.id}:1` ? 1 : 0))
  await stalledFor(world, payingChain(stage))
  expect(await outflows()).toMatchObject([{ state: 'cancelled' }, { state: 'planned', status: 'EXCHANGE' }])
})

test('a payout that was taken back while the signer was asked for it does not end the one after it', async () => {
  const order = await coveredOrder()
  const { stallMs } = stage.world.policy
  const stalledAtMs = stage.world.clock.nowMs() + stallMs
  let isTakenBack = false
  const { world } = signingWorld(async () => {
    if (!isTakenBack && stage.world.clock.nowMs() >= stalledAtMs) {
      isTakenBack = true
      await priceAgain(order)
    }
    return 0
  })
  await stalledFor(world)
  expect(await outflows()).toMatchObject([{ state: 'cancelled' }, { state: 'planned', status: 'EXCHANGE' }])
  const told = await stage.db.query("SELECT fact_key, outcome FROM facts WHERE kind = 'ExchangeStalled'")
  expect(told, 'it was told').toEqual([{ fact_key: `stalled:${order.terms.id}:1`, outcome: 'ignored' }])
})

test('a payout that the signer has signed a refund after takes no nonce, and the payouts behind it go out', async () => {
  const [refunded, other] = [await coveredOrder(), await coveredOrder()]
  const { world } = signingWorld(knows(0))
  const signer: Signer = {
    ...world.signer,
    lastOutflow: async (orderId) => (orderId === refunded.terms.id ? 2 : 0),
    sign: async ({ payoutId }) => {
      if (payoutId === `${refunded.terms.id}:1`)
        return refuse({ code: 'conflict', message: 'a later one was' })
      return accept({ txHash: `tx-${payoutId}`, bytes: 'ff' })
    },
  }
  await stalledFor({ ...world, signer }, payingChain(stage))
  const drafted = await stage.db.query(
    "SELECT DISTINCT payout_id AS id, intent->>'nonce' AS nonce FROM attempts",
  )
  expect(drafted).toEqual([{ id: `${other.terms.id}:1`, nonce: '0' }])
  const [first, second] = [await stateOf(refunded), await stateOf(other)]
  const why = `the signer has signed ${refunded.terms.id}:2, which comes after ${refunded.terms.id}:1: nothing is paid`
  expect(first).toEqual({ state: 'planned', trouble: why })
  expect(second).toEqual({ state: 'broadcast', trouble: null })
  const told = stage.logged.filter(({ message }) => message === 'an outflow waits for an operator')
  expect(told, 'once').toMatchObject([{ level: 'error', facts: { trouble: why } }])
})

test('a refund that the signer has signed is not ended either', async () => {
  await openReserve(stage)
  const { terms } = (await paidOrder(stage)).order
  const [amount, networkFee] = [amountOf('BTC:BTC', 999_000n), amountOf('BTC:BTC', 1_000n)]
  await tell(stage, terms.id, 'stalled:3', { kind: 'ExchangeStalled', payoutId: null, sequence: 3 })
  const refund = { amount, networkFee, address: 'back' }
  await tell(stage, terms.id, 'action:1', { kind: 'ActionChosen', action: 'refund', refund })
  const chain: Chain = {
    ...stage.chain('BTC'),
    bid: async () => refuse({ code: 'destination', message: 'it is dust there' }),
  }
  await stalledFor(signingWorld(knows(1)).world, chain)
  expect(await outflows()).toMatchObject([{ kind: 'refund', state: 'planned', status: 'REFUND' }])
  await workFor(signingWorld(knows(0)).world, chain, 1)
  expect(await outflows()).toMatchObject([{ kind: 'refund', state: 'cancelled', status: 'EMERGENCY' }])
})

test.each([
  // Its bytes were lost on their way, and are asked for at every step: nobody has to come.
  ['has signed, under whatever nonce', 'is not', 0, knows(1), 0],
  ['has signed, and another after it', 'is not', 0, knows(2), 1],
  ['does not speak of', 'is not', 0, silent, 1],
  ['has never signed', 'is', 1, knows(0), 0],
] as const)(
  'of a draft that the signer %s the nonce %s filled',
  async (_, _is, fillers, lastSigned, times) => {
    await coveredOrder()
    await workFor(signingWorld(knows(0)).world, payingChain(stage), 1)
    await stalledFor(signingWorld(lastSigned).world, payingChain(stage))
    const planned = await stage.db.query("SELECT 1 FROM outflows WHERE kind = 'filler'")
    expect(planned).toHaveLength(fillers)
    const told = stage.logged.filter(({ message }) => message === 'an outflow waits for an operator')
    expect(told).toHaveLength(times)
  },
)
