import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, TxStatus } from '../../chains/chain.ts'
import { insertAddresses } from '../../db/addresses.ts'
import type { Database, Sql } from '../../db/database.ts'
import { saveComparison } from '../../db/reconciliations.ts'
import { assert } from '../../domain/assert.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { readPayoutId } from '../../domain/orders/identifiers.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { type Intent, type Outflow, type TronIntent, validityOf } from '../../domain/payouts/intent.ts'
import type { Signer, SignRejection } from '../../signer/signer.ts'
import {
  type BooksStage,
  confirmDeposit,
  fundReserve,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  tell,
} from '../testing/books_stage.ts'
import { willingSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { workPayouts } from './work.ts'

/**
 * What: where nothing on chain keeps two attempts apart but time, a payout happens at most once, whatever the network takes,
 * loses, answers or does not, and wherever the process dies; and it happens once, or is given up and never does.
 * How: a real PostgreSQL, and a chain in memory whose transactions have nothing but an expiration: no nonce, no coin, so that
 * it pays every one that gets into a block, and its connector and signer ask no questions. The engine's own step is called by processes that die at every statement.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('over')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n
const LIFE_MS = 60_000
const SOLID_LAG_MS = 57_000
const RESERVE = 'reserve-0'
const FATES = ['take', 'lose', 'hide', 'take and cut', 'cut', 'refuse', 'lose and remember'] as const

/** A chain that takes everything that is not too late, also twice. */
class CarelessChain {
  headMs = 1_000_000
  readonly intents = new Map<string, TronIntent>()
  readonly waiting = new Set<string>()
  /** Taken by a node that nobody asks, and in a block at the last moment. */
  readonly hidden = new Set<string>()
  /** Lost, and of which the node says for ever that it has seen them before and nothing else. */
  readonly seenBefore = new Set<string>()
  readonly mined = new Map<string, { readonly height: number; readonly atMs: number }>()
  /** What happens to the next broadcasts. */
  fate: (txHash: string) => (typeof FATES)[number] = () => 'take'
  readonly sent: string[] = []

  get height(): number {
    return this.headMs / 3_000
  }

  /** One block: all that waits and has time left is in it. */
  mine(blocks = 1): void {
    for (let made = 0; made < blocks; made += 1) {
      for (const txHash of this.hidden) {
        const { expirationMs = 0 } = this.intents.get(txHash) ?? {}
        if (expirationMs - this.headMs <= 6_000) this.waiting.add(txHash)
      }
      for (const txHash of this.waiting) {
        const intent = this.intents.get(txHash)
        assert(intent !== undefined, 'it was signed')
        if (intent.expirationMs > this.headMs)
          this.mined.set(txHash, { height: Math.floor(this.height), atMs: this.headMs })
      }
      this.waiting.clear()
      this.headMs += 3_000
    }
  }

  broadcast(txHash: string): 'accepted' | 'refused' | 'unknown' {
    this.sent.push(txHash)
    if (this.waiting.has(txHash) || this.mined.has(txHash)) return 'accepted'
    if (this.seenBefore.has(txHash)) return 'unknown'
    const intent = this.intents.get(txHash)
    assert(intent !== undefined, 'it was signed')
    if (intent.expirationMs <= this.headMs) return 'refused'
    const fate = this.fate(txHash)
    if (fate === 'take' || fate === 'take and cut') this.waiting.add(txHash)
    if (fate === 'hide') this.hidden.add(txHash)
    if (fate === 'lose and remember') this.seenBefore.add(txHash)
    if (fate === 'refuse') return 'refused'
    return fate === 'take' || fate.startsWith('lose') ? 'accepted' : 'unknown'
  }

  lookup(txHash: string): TxStatus {
    const mined = this.mined.get(txHash)
    if (mined === undefined) return { where: this.waiting.has(txHash) ? 'mempool' : 'absent' }
    const block = { height: mined.height, hash: `h${mined.height}` }
    return { where: 'block', block, succeeded: true, cost: amountOf('TRX:TRX', 300_000n) }
  }

  isOver(intent: Intent, txHash: string | null): boolean {
    const solidMs = this.headMs - SOLID_LAG_MS
    const isLate = solidMs >= (validityOf(intent)?.untilMs ?? 0)
    return isLate && (txHash === null || (this.mined.get(txHash)?.atMs ?? Infinity) > solidMs)
  }
}

function connect(careless: CarelessChain): Chain {
  const timesNow = () => ({
    reference: { id: 'ab'.repeat(32), timeMs: careless.headMs - SOLID_LAG_MS },
    expirationMs: careless.headMs + LIFE_MS,
  })
  return {
    ...stage.chain('TRX'),
    model: 'account',
    head: async () => ({ height: Math.floor(careless.height), hash: `h${Math.floor(careless.height)}` }),
    blockHash: async (height) => `h${height}`,
    balance: async () => 10n ** 30n,
    lookup: async (txHash) => careless.lookup(txHash),
    isOver: async (intent, txHash) => careless.isOver(intent, txHash),
    bid: async () => accept({ family: 'tron', energySun: 0n, feeLimitSun: 0n, otherSun: 0n, ...timesNow() }),
    draft: (outflow: Outflow, bid, funds) => {
      assert(bid.family === 'tron' && funds.model === 'timed', 'nothing is taken but time')
      const { payoutId, address: to, units } = outflow
      const { reference, expirationMs } = bid
      return accept({
        ...{ family: 'tron', chain: 'TRX', payoutId, attempt: 1, from: funds.from, to, units, token: null },
        ...{ feeLimitSun: 0n, reference, expirationMs, timestampMs: expirationMs },
      })
    },
    raise: (previous, bid) => {
      assert(previous.family === 'tron' && bid.family === 'tron', 'both are of TRON')
      const { reference, expirationMs } = bid
      return accept({ ...previous, attempt: previous.attempt + 1, reference, expirationMs })
    },
    broadcast: async ({ txHash }) => careless.broadcast(txHash),
    minedNonce: () => Promise.reject(new Error('there are no nonces')),
  }
}

/** Signs the same for the same, as the real one does; its own refusals are told in replacement.test.ts. */
function signerOf(careless: CarelessChain): Signer {
  return willingSigner({
    lastSigned: async (payoutId) => {
      const signed = [...careless.intents.values()].filter((intent) => intent.payoutId === payoutId)
      return Math.max(0, ...signed.map(({ attempt }) => attempt))
    },
    lastOutflow: async (orderId) => {
      const signed = [...careless.intents.values()].map(({ payoutId }) => readPayoutId(payoutId))
      return Math.max(0, ...signed.filter((one) => one.orderId === orderId).map(({ number }) => number))
    },
    sign: async (intent) => {
      assert(intent.family === 'tron', 'it is of TRON')
      const txHash = createHash('sha256').update(`${intent.payoutId}#${intent.attempt}`).digest('hex')
      careless.intents.set(txHash, intent)
      return accept({ txHash, bytes: '00' })
    },
  })
}

async function planPayout() {
  await insertAddresses(stage.db, 'tron', 'reserve', 0, [RESERVE])
  await fundReserve(stage, 'ETH:ETH', ETHER)
  const order = await placeOrder(stage, 'ETH:ETH', 'TRX:TRX', { asks: ETHER, promises: 100_000_000n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  await lookAt(stage, 'ETH', 100)
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  await lookAt(stage, 'TRX', 100)
  return order
}

/** All chains go on being looked at, however late it gets, and that which pays up to where it is. */
async function lookNow(paying?: Chain): Promise<void> {
  await stage.db.query('UPDATE chain_heads SET looked_wall_ms = $1', [stage.world.clock.wallMs()])
  if (paying === undefined) return
  const { height } = await paying.head()
  await stage.db.query('UPDATE chain_heads SET height = $2 WHERE chain = $1', [paying.id, height])
}

type Death = { left: number; isDead: boolean }

/** A process that ends after so many statements and broadcasts, before or after one of them. */
function mortal(world: SigningWorld, chain: Chain, death: Death): { world: SigningWorld; chain: Chain } {
  const beat = () => {
    death.left -= 1
    if (death.left <= 0) death.isDead = true
    if (death.isDead) throw new Error('the process is dead')
  }
  const between = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    beat()
    const value = await work()
    beat()
    return value
  }
  const sqlOf = (sql: Sql): Sql => ({ query: (text, values) => between(() => sql.query(text, values)) })
  const db: Database = {
    ...sqlOf(world.db),
    transaction: (work) => between(() => world.db.transaction((tx) => work(sqlOf(tx)))),
    close: world.db.close,
  }
  const dying: Chain = { ...chain, broadcast: (tx) => between(() => chain.broadcast(tx)) }
  return { world: { ...world, db }, chain: dying }
}

async function liveOnce(chain: Chain, signer: Signer, left: number): Promise<boolean> {
  const death = { left, isDead: false }
  const given: SigningWorld = { ...stage.world, seal: () => 'seal', signer }
  const { world, chain: dying } = mortal(given, chain, death)
  await lookNow(chain)
  try {
    await workPayouts(world, dying)
  } catch (error) {
    if (!death.isDead) throw error
  }
  // Over every claim.
  stage.advance(7_000)
  return death.isDead
}

async function outflows() {
  return stage.db.query<{ state: string; attempts: number }>(
    `SELECT state, (SELECT count(*)::int FROM attempts a WHERE a.payout_id = o.payout_id) AS attempts FROM outflows o`,
  )
}

const FOREVER = Number.POSITIVE_INFINITY

test.each(FATES)(
  'wherever the process dies, a payout that the network would first %s pays once',
  async (first) => {
    const deaths = []
    // Every statement of a step has its turn, before and after it.
    for (let left = 1; left <= 60; left += 4) {
      await stage.reset()
      await planPayout()
      const careless = new CarelessChain()
      const [chain, signer] = [connect(careless), signerOf(careless)]
      let chosen: string | null = null
      careless.fate = (txHash) => {
        chosen ??= txHash
        return txHash === chosen ? first : 'take'
      }
      for (let round = 0; round < 80; round += 1) {
        if (await liveOnce(chain, signer, round % 2 === 0 ? left : FOREVER)) deaths.push(left)
        careless.mine(round % 3 === 0 ? 5 : 2)
        const [outflow] = await outflows()
        if (outflow?.state === 'confirmed') break
      }
      careless.mine(40)
      expect(careless.mined.size, `dying after ${left}`).toBe(1)
      expect(await outflows()).toMatchObject([{ state: 'confirmed' }])
    }
    expect(deaths.length).toBeGreaterThan(10)
  },
  120_000,
)

test.each(['lose', 'lose and remember'] as const)(
  'as long as an attempt that networks %s may get into a block there is no other one',
  async (fate) => {
    await planPayout()
    const careless = new CarelessChain()
    const [chain, signer] = [connect(careless), signerOf(careless)]
    careless.fate = () => fate
    while (careless.headMs - SOLID_LAG_MS < 1_000_000 + LIFE_MS) {
      expect((await outflows())[0]?.attempts).toBeLessThan(2)
      await liveOnce(chain, signer, FOREVER)
      expect((await outflows())[0]?.attempts).toBe(1)
      careless.mine()
    }
    for (let round = 0; round < 3; round += 1) await liveOnce(chain, signer, FOREVER)
    expect(await outflows()).toMatchObject([{ attempts: 2 }])
  },
)

test('what was taken, is lost, and of which the node then says nothing for ever is followed by one that pays', async () => {
  await planPayout()
  const careless = new CarelessChain()
  const [chain, signer] = [connect(careless), signerOf(careless)]
  careless.fate = () => 'lose and remember'
  await liveOnce(chain, signer, FOREVER)
  const startedAtMs = stage.world.clock.nowMs()
  careless.fate = () => 'take'
  while ((await outflows())[0]?.state !== 'confirmed') {
    expect(stage.world.clock.nowMs() - startedAtMs).toBeLessThan(stage.world.policy.stallMs)
    await liveOnce(chain, signer, FOREVER)
    careless.mine(2)
  }
  careless.mine(40)
  expect(await outflows()).toMatchObject([{ state: 'confirmed', attempts: 2 }])
  expect(careless.mined.size).toBe(1)
})

test('what is never taken is given up when all attempts are over, without a filler, and never before', async () => {
  await planPayout()
  const careless = new CarelessChain()
  const [chain, signer] = [connect(careless), signerOf(careless)]
  careless.fate = () => 'refuse'
  await liveOnce(chain, signer, FOREVER)
  stage.advance(stage.world.policy.stallMs)
  for (let round = 0; round < 3; round += 1) await liveOnce(chain, signer, FOREVER)
  expect(await outflows(), 'it has time left').toMatchObject([{ state: 'signed', attempts: 1 }])
  careless.mine(40)
  for (let round = 0; round < 3; round += 1) await liveOnce(chain, signer, FOREVER)
  expect(await outflows()).toMatchObject([{ state: 'failed', attempts: 1 }])
  const orders = await stage.db.query<{ status: string }>('SELECT status FROM orders')
  expect(orders).toEqual([{ status: 'EMERGENCY' }])
  careless.fate = () => 'take'
  careless.mine(100)
  expect(careless.mined.size).toBe(0)
})

test('what is drafted anew is signed only while its deposit is still in its block, and is given up when it is not', async () => {
  await planPayout()
  const careless = new CarelessChain()
  const [chain, signer] = [connect(careless), signerOf(careless)]
  careless.fate = () => 'lose'
  await liveOnce(chain, signer, FOREVER)
  stage.chain('ETH').fork(100)
  careless.mine(40)
  for (let round = 0; round < 3; round += 1) await liveOnce(chain, signer, FOREVER)
  expect(await outflows()).toMatchObject([{ attempts: 2 }])
  expect(careless.intents.size, 'the second is not signed').toBe(1)
  stage.advance(stage.world.policy.stallMs)
  careless.mine(40)
  for (let round = 0; round < 3; round += 1) await liveOnce(chain, signer, FOREVER)
  expect(await outflows()).toMatchObject([{ state: 'failed', attempts: 2 }])
  expect(careless.intents.size).toBe(1)
})

/** Refuses every attempt; with a code of `conflict`, because it knows another one. */
function refusingSigner(careless: CarelessChain, code: SignRejection['code']): Signer {
  return { ...signerOf(careless), sign: async () => refuse({ code, message: 'it does not sign' }) }
}

test.each<[SignRejection['code'], string, string]>([
  ['limit_exceeded', 'cancelled', 'EMERGENCY'],
  ['conflict', 'planned', 'EXCHANGE'],
])(
  'what the signer refuses for good (%s) is given up when its time is over, and only where it has signed nothing else',
  async (code, outflow, order) => {
    await planPayout()
    const careless = new CarelessChain()
    const [chain, signer] = [connect(careless), refusingSigner(careless, code)]
    await liveOnce(chain, signer, FOREVER)
    stage.advance(stage.world.policy.stallMs)
    for (let round = 0; round < 3; round += 1) await liveOnce(chain, signer, FOREVER)
    expect(await outflows(), 'it has time left').toMatchObject([{ state: 'planned', attempts: 1 }])
    careless.mine(40)
    for (let round = 0; round < 3; round += 1) await liveOnce(chain, signer, FOREVER)
    expect(await outflows()).toMatchObject([{ state: outflow, attempts: 1 }])
    expect(await stage.db.query('SELECT status FROM orders')).toEqual([{ status: order }])
  },
)

test('attempts that are over are no proof while the signer knows a later one', async () => {
  await planPayout()
  const careless = new CarelessChain()
  const [chain, signer] = [connect(careless), signerOf(careless)]
  careless.fate = () => 'refuse'
  await liveOnce(chain, signer, FOREVER)
  stage.advance(stage.world.policy.stallMs)
  careless.mine(40)
  const later: Signer = { ...signer, lastSigned: async () => 2 }
  for (let round = 0; round < 3; round += 1) await liveOnce(chain, later, FOREVER)
  expect(await outflows()).toMatchObject([{ state: 'signed', attempts: 1 }])
  expect(await stage.db.query('SELECT status FROM orders')).toEqual([{ status: 'EXCHANGE' }])
  stage.advance(30_000)
  for (let round = 0; round < 3; round += 1) await liveOnce(chain, signer, FOREVER)
  expect(await outflows()).toMatchObject([{ state: 'failed', attempts: 1 }])
})

test('nothing is given up when another worker has drafted a further attempt meanwhile', async () => {
  await planPayout()
  const careless = new CarelessChain()
  const signer = signerOf(careless)
  careless.fate = () => 'refuse'
  await liveOnce(connect(careless), signer, FOREVER)
  stage.advance(stage.world.policy.stallMs)
  careless.mine(40)
  let isTaken = false
  const slow: Chain = {
    ...connect(careless),
    isOver: async (intent, txHash) => {
      const verdict = careless.isOver(intent, txHash)
      if (!isTaken) await stage.db.query('UPDATE outflows SET claim_fence = claim_fence + 1')
      isTaken = true
      return verdict
    },
  }
  await liveOnce(slow, signer, FOREVER)
  expect(isTaken).toBe(true)
  expect(await outflows()).toMatchObject([{ state: 'signed' }])
})

test('while blocks are read for an attempt, however long that takes, nobody else begins', async () => {
  await planPayout()
  const careless = new CarelessChain()
  const signer = signerOf(careless)
  careless.fate = () => 'lose'
  const free: number[] = []
  const slow: Chain = {
    ...connect(careless),
    isOver: async (intent, txHash, between) => {
      for (let block = 0; block < 60; block += 1) {
        await between?.()
        // A minute in all, where a claim is held for six seconds.
        stage.advance(1_001)
      }
      await lookNow()
      free.push(await countFree())
      return careless.isOver(intent, txHash)
    },
  }
  await workThroughAttempts(careless, slow, signer)
  expect(new Set(free), 'it stays in our hands').toEqual(new Set([0]))
  expect((await outflows())[0]?.attempts).toBeGreaterThan(2)
})

test('while its attempts are looked for, however long that takes, nobody else begins', async () => {
  await planPayout()
  const careless = new CarelessChain()
  const signer = signerOf(careless)
  careless.fate = () => 'lose'
  const free: number[] = []
  const slow: Chain = {
    ...connect(careless),
    lookup: async (txHash) => {
      stage.advance(2_500)
      await lookNow()
      free.push(await countFree())
      return careless.lookup(txHash)
    },
  }
  await workThroughAttempts(careless, slow, signer)
  expect((await outflows())[0]?.attempts, 'they take longer than a claim').toBeGreaterThan(4)
  expect(new Set(free), 'it stays in our hands').toEqual(new Set([0]))
})

/** Each round is longer than an attempt lives. */
async function workThroughAttempts(careless: CarelessChain, chain: Chain, signer: Signer): Promise<void> {
  for (let round = 0; round < 12; round += 1) {
    await lookNow()
    await workPayouts({ ...stage.world, seal: () => 'seal', signer }, chain)
    stage.advance(7_000)
    careless.mine(20)
  }
}

/** Outflows that another worker could take. */
async function countFree(): Promise<number> {
  const [others] = await stage.db.query<{ free: number }>(
    'SELECT count(*)::int AS free FROM outflows WHERE claimed_until_wall_ms <= $1',
    [stage.world.clock.wallMs()],
  )
  return others?.free ?? expect.fail()
}

/** As often as it takes to stop outflows; without a difference, to let them go on. */
async function saveDifferences(difference: bigint) {
  const asset = 'TRX:TRX'
  const comparison = {
    asset,
    height: 100,
    ledgerUnits: 0n,
    inFlight: 0n,
    chainUnits: difference,
    difference,
  } as const
  const time = { nowMs: stage.world.clock.nowMs(), dueWallMs: Number.MAX_SAFE_INTEGER }
  for (let count = 0; count < 3; count += 1)
    await stage.db.transaction((tx) => saveComparison(tx, 'TRX', comparison, time))
}

/** Signs attempts in their turn only, as the real one does, and not at all while it is away. */
function strictSigner(careless: CarelessChain) {
  const signer = signerOf(careless)
  const state = { isAway: false, signed: 0, refused: 0 }
  const strict: Signer = {
    ...signer,
    sign: async (intent, authority) => {
      if (state.isAway) throw new Error('the signer does not answer')
      if (intent.attempt > state.signed + 1) {
        state.refused += 1
        return refuse({ code: 'conflict', message: 'it does not follow' })
      }
      state.signed = Math.max(state.signed, intent.attempt)
      return signer.sign(intent, authority)
    },
  }
  return { state, strict }
}

test.each(['the signer is away', 'outflows are stopped'])(
  'an attempt that was not signed before its time was over is followed by one that is: %s',
  async (why) => {
    await planPayout()
    const careless = new CarelessChain()
    const chain = connect(careless)
    const { state, strict } = strictSigner(careless)
    careless.fate = () => 'lose'
    await liveOnce(chain, strict, FOREVER)
    const setAway = async (isAway: boolean) => {
      if (why === 'the signer is away') state.isAway = isAway
      else await saveDifferences(isAway ? 1n : 0n)
    }
    await setAway(true)
    for (let round = 0; round < 12; round += 1) {
      careless.mine(10)
      await liveOnce(chain, strict, FOREVER)
    }
    await setAway(false)
    careless.fate = () => 'take'
    for (let round = 0; round < 60; round += 1) {
      await liveOnce(chain, strict, FOREVER)
      careless.mine(2)
    }
    expect(state.refused).toBe(0)
    expect(await outflows()).toMatchObject([{ state: 'confirmed' }])
    expect(careless.mined.size).toBe(1)
  },
)

test('an attempt whose signer took its time is not sent for the first time once outflows are stopped', async () => {
  await planPayout()
  const careless = new CarelessChain()
  const chain = connect(careless)
  const signer = signerOf(careless)
  careless.fate = () => 'lose'
  await liveOnce(chain, signer, FOREVER)
  const [first] = careless.sent
  careless.fate = () => 'take'
  const slow: Signer = {
    ...signer,
    sign: async (intent, authority) => {
      stage.advance(2_000)
      await lookNow(chain)
      await saveDifferences(1n)
      return signer.sign(intent, authority)
    },
  }
  for (let round = 0; round < 12; round += 1) {
    careless.mine(20)
    await liveOnce(chain, slow, FOREVER)
  }
  expect(careless.intents.size, 'a second attempt was signed').toBe(2)
  expect(new Set(careless.sent)).toEqual(new Set([first]))
  await saveDifferences(0n)
  for (let round = 0; round < 60; round += 1) {
    await liveOnce(chain, signer, FOREVER)
    careless.mine(2)
  }
  expect(await outflows()).toMatchObject([{ state: 'confirmed' }])
  expect(careless.mined.size).toBe(1)
})
