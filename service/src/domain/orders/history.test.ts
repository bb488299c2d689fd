import fc from 'fast-check'
import { expect, test } from 'vitest'
import { assert } from '../assert.ts'
import type { AssetId } from '../catalog/assets.ts'
import { type Amount, amountOf } from '../money/amount.ts'
import type { Fact } from './facts.ts'
import type { Order, OrderStatus } from './order.ts'
import { checkBooks, finalStatuses, legalMoves } from './testing/books.ts'
import {
  allButDust,
  commit,
  costOn,
  dustLeft,
  ETH_TO_USDT,
  EXPIRES_MS,
  exactly,
  liveOutflow,
  type Pair,
  priceNow,
  refundNow,
  type Setting,
  START_MS,
  type Story,
  stalledNow,
  startStory,
  tell,
} from './testing/story.ts'

/**
 * What: whatever happens to an order, in whatever sequence, no money is lost, invented or paid twice.
 * How: random histories of what chains, markets, clocks and people may do; after every step the books are compared
 * with what the chains hold, and the order's move with the list of legal moves.
 */

type Transaction = 'absent' | 'mempool' | 'mined' | 'confirmed'

/** The world's side of a history: what each deposit's transaction is, and the time. */
type Run = { story: Story; nowMs: number; blocks: number; readonly transactions: Transaction[] }

type DepositStep = {
  readonly do: 'see' | 'mine' | 'confirm' | 'unmine' | 'vanish'
  readonly tx: number
  readonly size: number
}

type Step =
  | DepositStep
  | { readonly do: 'wait'; readonly minutes: number }
  | { readonly do: 'price'; readonly changeBps: number }
  | { readonly do: 'expire' | 'stall' | 'commit' | 'broadcast' | 'pay' | 'fail' | 'overtake' }
  | { readonly do: 'continue' | 'recalculate'; readonly changeBps: number }
  | { readonly do: 'refund' }

const PAIRS: readonly Pair[] = [
  ETH_TO_USDT,
  { from: 'USDT:BEP20', to: 'BTC:BTC', asks: '2500' },
  { from: 'BTC:BTC', to: 'USDT:ERC20', asks: '0.04' },
]

const share = (bps: bigint) => (order: Order) => (order.terms.asks.units * bps) / 10_000n

/** What a deposit may bring; the last one is another asset. */
const SIZES: readonly ((order: Order) => bigint)[] = [
  ...[10_000n, 5_000n, 4_000n, 9_990n, 12_000n, 1n].map(share),
  allButDust,
  dustLeft,
  share(10_000n),
]
const FOREIGN_SIZE = SIZES.length - 1

const TRANSACTIONS_MAX = 3

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constantFrom('see', 'mine', 'mine', 'mine', 'confirm', 'confirm', 'unmine', 'unmine', 'vanish'),
      tx: fc.nat(TRANSACTIONS_MAX - 1),
      size: fc.oneof(
        { weight: 3, arbitrary: fc.constant(0) },
        { weight: 2, arbitrary: fc.nat(FOREIGN_SIZE) },
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait'), minutes: fc.integer({ min: 1, max: 20 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('price'), changeBps: fc.integer({ min: -400, max: 400 }) }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'expire',
        'stall',
        'commit',
        'commit',
        'broadcast',
        'broadcast',
        'pay',
        'fail',
        'overtake',
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('continue', 'recalculate'),
      changeBps: fc.integer({ min: -400, max: 400 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refund') }) },
)

type Beginning = Setting & { readonly transactions: number }

/** With one transaction, histories go deep; with more, they go wide. */
const beginning: fc.Arbitrary<Beginning> = fc.record({
  pair: fc.constantFrom(...PAIRS),
  rateType: fc.constantFrom('fixed', 'float'),
  toleranceBps: fc.constantFrom(0n, 0n, 50n),
  transactions: fc.integer({ min: 1, max: TRANSACTIONS_MAX }),
})

function start(from: Beginning): Run {
  const transactions = Array.from({ length: from.transactions }, (): Transaction => 'absent')
  return { story: startStory(from), nowMs: START_MS, blocks: 0, transactions }
}

/** The facts that a step makes true now; none where the world does not allow it. */
function factOf(run: Run, what: Step): Fact | null {
  const { story, nowMs } = run
  const outflow = liveOutflow(story)
  switch (what.do) {
    case 'see':
    case 'mine':
    case 'confirm':
    case 'unmine':
    case 'vanish':
      return depositFact(run, what)
    case 'wait':
      run.nowMs += what.minutes * 60_000
      return null
    case 'expire':
      return nowMs >= EXPIRES_MS ? { kind: 'OrderExpired', atMs: nowMs } : null
    case 'price':
      return { kind: 'ExchangePriced', quote: priceNow(story, BigInt(what.changeBps)) }
    case 'stall':
      return stalledNow(story)
    case 'commit':
      if (outflow !== undefined) run.story = commit(story)
      return null
    case 'broadcast':
      return outflow?.state === 'committed'
        ? { kind: 'PayoutBroadcast', payoutId: outflow.payoutId, txHash: `0x${run.blocks}` }
        : null
    case 'pay': {
      if (outflow?.state !== 'committed') return null
      const cost = costOn(costlyAsset(story), 21_000n)
      return { kind: 'PayoutConfirmed', payoutId: outflow.payoutId, txHash: '0xpaid', cost }
    }
    case 'fail': {
      if (outflow === undefined) return null
      const cost = outflow.state === 'committed' ? costOn(costlyAsset(story), 21_000n) : null
      return { kind: 'PayoutFailed', payoutId: outflow.payoutId, problem: 'DESTINATION_PROBLEM', cost }
    }
    case 'overtake': {
      if (outflow?.state !== 'committed') return null
      const failed = { problem: 'DESTINATION_PROBLEM', cost: costOn(costlyAsset(story), 21_000n) } as const
      return { kind: 'PayoutFailed', payoutId: outflow.payoutId, ...failed, wouldPayNow: true }
    }
    case 'continue':
    case 'recalculate':
      return { kind: 'ActionChosen', action: what.do, quote: priceNow(story, BigInt(what.changeBps)) }
    case 'refund':
      return { kind: 'ActionChosen', action: 'refund', refund: refundNow(story, 12_345n) }
  }
}

function costlyAsset({ order: { state, terms } }: Story): AssetId {
  return state.status === 'REFUND' ? terms.from : terms.to
}

function depositFact(run: Run, step: DepositStep): Fact | null {
  const { do: what, size } = step
  const tx = step.tx % run.transactions.length
  const key = `chain:tx${tx}:0`
  const now = run.transactions[tx]
  const seen = (block: boolean): Fact => {
    run.transactions[tx] = block ? 'mined' : 'mempool'
    run.blocks += 1
    return {
      kind: 'DepositSeen',
      key,
      txHash: `tx${tx}`,
      amount: sizeOf(run.story, size),
      seenAtMs: run.nowMs,
      block: block ? { height: run.blocks, hash: `block${run.blocks}` } : null,
    }
  }
  switch (what) {
    case 'see':
      return now === 'absent' ? seen(false) : null
    case 'mine':
      return now === 'absent' || now === 'mempool' ? seen(true) : null
    case 'confirm':
      if (now === 'mined') run.transactions[tx] = 'confirmed'
      return now === 'mined' ? { kind: 'DepositConfirmed', key } : null
    case 'unmine':
      if (now !== 'mined' && now !== 'confirmed') return null
      run.transactions[tx] = 'mempool'
      return { kind: 'DepositUnmined', key }
    default:
      if (now !== 'mempool') return null
      run.transactions[tx] = 'absent'
      return { kind: 'DepositVanished', key }
  }
}

function sizeOf({ order }: Story, size: number): Amount {
  if (size === FOREIGN_SIZE) return exactly(order.terms.from === 'ETH:ETH' ? 'USDC:ERC20' : 'BNB:BNB', '0.75')
  return amountOf(order.terms.from, SIZES[size]?.(order) ?? 0n)
}

/** One step, and everything that must hold after it. */
function take(run: Run, what: Step): void {
  const before = run.story.order
  const fact = factOf(run, what)
  if (fact === null) return
  const { story, decision } = tell(run.story, fact, run.nowMs)
  run.story = story
  checkBooks(story)
  const isMove = story.order.state.status !== before.state.status
  assert(story.order.sequence === before.sequence + (isMove ? 1 : 0), 'the sequence counts changes of status')
  if (!isMove) return
  assert(decision.kind === 'changed', 'only a change changes')
  const legal = legalMoves[before.state.status]
  assert(
    legal.includes(story.order.state.status),
    `${before.state.status} may become ${story.order.state.status} by ${fact.kind}`,
  )
}

const RUNS = 4_000

test('in every history the books say what the chains hold, and only legal moves are made', () => {
  fc.assert(
    fc.property(beginning, fc.array(step, { maxLength: 60, size: 'max' }), (choice, steps) => {
      const run = start(choice)
      for (const what of steps) take(run, what)
    }),
    { numRuns: RUNS },
  )
})

test('the histories reach every state and make every legal move', { timeout: 120_000 }, () => {
  const seen = new Set<string>()
  const statuses = new Set<OrderStatus>()
  const samples = fc.sample(fc.tuple(beginning, fc.array(step, { maxLength: 80, size: 'max' })), {
    numRuns: 12_000,
    seed: 7,
  })
  for (const [choice, steps] of samples) {
    const run = start(choice)
    for (const what of steps) {
      const from = run.story.order.state.status
      take(run, what)
      const to = run.story.order.state.status
      statuses.add(to)
      if (from !== to) seen.add(`${from} → ${to}`)
    }
  }
  const legal = Object.entries(legalMoves).flatMap(([from, to]) => to.map((one) => `${from} → ${one}`))
  expect(legal.filter((move) => !seen.has(move))).toEqual([])
  expect(statuses.size).toBe(9)
})

test('every order can be brought to an end, and then nothing is owed', () => {
  fc.assert(
    fc.property(beginning, fc.array(step, { maxLength: 40, size: 'max' }), (choice, steps) => {
      const run = start(choice)
      for (const what of steps) take(run, what)
      finish(run)
      const { status } = run.story.order.state
      assert([...finalStatuses, 'EXPIRED'].includes(status), `it ends as ${status}`)
      const owed = Object.entries(run.story.books).filter(
        ([account, units]) => /(customer_deposits|_owed)$/.test(account) && units !== 0n,
      )
      expect(owed).toEqual([])
    }),
    { numRuns: RUNS },
  )
})

/** The world calms down: what is on its way is mined, the workers work, and the customer wants the money back. */
function finish(run: Run): void {
  for (let tx = 0; tx < run.transactions.length; tx += 1) {
    if (run.transactions[tx] === 'mempool') take(run, { do: 'mine', tx, size: 0 })
    take(run, { do: 'confirm', tx, size: 0 })
  }
  take(run, { do: 'wait', minutes: 15 })
  take(run, { do: 'expire' })
  for (let round = 0; round < 2; round += 1) {
    take(run, { do: 'price', changeBps: 0 })
    take(run, { do: 'refund' })
    take(run, { do: 'commit' })
    take(run, { do: 'broadcast' })
    take(run, { do: 'pay' })
  }
}
