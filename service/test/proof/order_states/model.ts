import { amountOf } from '../../../src/domain/money/amount.ts'
import type { Fact } from '../../../src/domain/orders/facts.ts'
import { AWAITED_MS } from '../../../src/domain/orders/lock_held.ts'
import {
  allButDust,
  commit,
  costOn,
  dustLeft,
  EXPIRES_MS,
  exactly,
  liveOutflow,
  priceNow,
  refundNow,
  START_MS,
  type Story,
  stalledNow,
  startStory,
  tell,
} from '../../../src/domain/orders/testing/story.ts'
import type { RateType } from '../../../src/domain/quotes/quote.ts'

/** How often each thing may happen; everything else may happen whenever the world allows it. */
export type Bounds = {
  readonly deposits: number
  readonly reorgs: number
  readonly actions: number
  readonly failures: number
}

/** An order and the world around it, small enough to be enumerated. */
export type World = {
  readonly story: Story
  readonly clock: Clock
  readonly transactions: readonly Transaction[]
  readonly left: Bounds
  /** Of what a further deposit may be. */
  readonly sizes: readonly Size[]
}

/** Whether the order is open, expired, or so long ago that it waits no more for what lies in a mempool. */
type Clock = 'open' | 'expired' | 'unawaited'

export type Size = (typeof usualSizes | typeof sizesWithDustLeft)[number]
type Transaction = { readonly size: Size; readonly where: 'gone' | 'mempool' | 'mined' | 'confirmed' }

/** What a deposit may bring. Two halves make exactly what is asked; one and a half too much. */
export const usualSizes = ['all', 'half', 'dust', 'foreign'] as const
/** Short and rest, which is dust, make exactly what is asked as well. Apart, because all together would be too many. */
export const sizesWithDustLeft = ['all', 'short', 'rest'] as const

/** One thing that happens: its name, and the world after it. */
export type Step = { readonly name: string; readonly next: World; readonly fact: Fact | null }

export function firstWorld(rateType: RateType, bounds: Bounds, sizes: readonly Size[] = usualSizes): World {
  return { story: startStory({ rateType }), clock: 'open', transactions: [], left: bounds, sizes }
}

/** Everything that may happen next. */
export function stepsFrom(world: World): Step[] {
  return [
    ...newDeposits(world),
    ...world.transactions.flatMap((_transaction, index) => movesOfTransaction(world, index)),
    ...timePasses(world),
    ...clockAndMarket(world),
    ...outflowSteps(world),
    ...actions(world),
  ]
}

const NOW_MS: Readonly<Record<Clock, number>> = {
  open: START_MS + 60_000,
  expired: EXPIRES_MS + 60_000,
  unawaited: EXPIRES_MS + AWAITED_MS + 60_000,
}

function nowOf({ clock }: World): number {
  return NOW_MS[clock]
}

function timePasses(world: World): Step[] {
  switch (world.clock) {
    case 'open':
      return [{ name: 'the time is up', next: { ...world, clock: 'expired' }, fact: null }]
    case 'expired':
      return [{ name: 'an hour has passed', next: { ...world, clock: 'unawaited' }, fact: null }]
    default:
      return []
  }
}

function hear(world: World, name: string, fact: Fact): Step {
  return { name, fact, next: { ...world, story: tell(world.story, fact, nowOf(world)).story } }
}

function newDeposits(world: World): Step[] {
  if (world.left.deposits === 0) return []
  const left = { ...world.left, deposits: world.left.deposits - 1 }
  return world.sizes.flatMap((size) =>
    [false, true].map((isMined) => {
      const transactions = [...world.transactions, { size, where: 'gone' as const }]
      return see({ ...world, transactions, left }, transactions.length - 1, isMined)
    }),
  )
}

function see(world: World, index: number, isMined: boolean): Step {
  const size = world.transactions[index]?.size ?? 'all'
  const fact: Fact = {
    kind: 'DepositSeen',
    key: keyOf(index),
    txHash: `tx${index}`,
    amount: amountFor(world, size),
    seenAtMs: nowOf(world),
    block: isMined ? { height: 1, hash: 'block' } : null,
  }
  const name = `deposit ${index} (${size}) is ${isMined ? 'mined' : 'in a mempool'}`
  return hear(moved(world, index, isMined ? 'mined' : 'mempool'), name, fact)
}

function amountFor({ story }: World, size: Size) {
  const { asks, from } = story.order.terms
  switch (size) {
    case 'all':
      return asks
    case 'half':
      return amountOf(from, asks.units / 2n)
    case 'short':
      return amountOf(from, allButDust(story.order))
    case 'rest':
      return amountOf(from, dustLeft(story.order))
    case 'dust':
      return amountOf(from, 1n)
    case 'foreign':
      return exactly('USDC:ERC20', '0.75')
  }
}

function keyOf(index: number): string {
  return `chain:tx${index}:0`
}

function moved(world: World, index: number, where: Transaction['where']): World {
  const transactions = world.transactions.map((one, at) => (at === index ? { ...one, where } : one))
  return { ...world, transactions }
}

function movesOfTransaction(world: World, index: number): Step[] {
  const key = keyOf(index)
  const reorgs = world.left.reorgs - 1
  const orphaned = (): Step[] => {
    if (reorgs < 0) return []
    const next = { ...moved(world, index, 'mempool'), left: { ...world.left, reorgs } }
    return [hear(next, `deposit ${index} leaves its block`, { kind: 'DepositUnmined', key })]
  }
  switch (world.transactions[index]?.where) {
    case 'gone':
      return [see(world, index, true)]
    case 'mempool':
      return [
        see(world, index, true),
        hear(moved(world, index, 'gone'), `deposit ${index} vanishes`, { kind: 'DepositVanished', key }),
      ]
    case 'mined':
      return [
        hear(moved(world, index, 'confirmed'), `deposit ${index} is deep`, { kind: 'DepositConfirmed', key }),
        ...orphaned(),
      ]
    default:
      return orphaned()
  }
}

function clockAndMarket(world: World): Step[] {
  const { story } = world
  const expired =
    world.clock === 'open'
      ? []
      : [hear(world, 'the order expires', { kind: 'OrderExpired', atMs: nowOf(world) })]
  const isWaiting = story.order.state.status === 'EXCHANGE'
  const market: Step[] = isWaiting
    ? [
        hear(world, 'it is exchanged', { kind: 'ExchangePriced', quote: priceNow(story) }),
        hear(world, 'the price has fallen', { kind: 'ExchangePriced', quote: priceNow(story, -400n) }),
        hear(world, 'the network is down', stalledNow(story)),
      ]
    : []
  return [...expired, ...market]
}

function outflowSteps(world: World): Step[] {
  const { story, left } = world
  const outflow = liveOutflow(story)
  if (outflow === undefined) return []
  const { payoutId, state } = outflow
  const isRefund = story.order.state.status === 'REFUND'
  const cost = costOn(isRefund ? story.order.terms.from : story.order.terms.to, 21_000n)
  const after = { ...world, left: { ...left, failures: left.failures - 1 } }
  const failure = { kind: 'PayoutFailed', payoutId, problem: 'DESTINATION_PROBLEM' } as const
  const spent = state === 'committed' ? cost : null
  const failed = left.failures > 0 ? [hear(after, 'the outflow fails', { ...failure, cost: spent })] : []
  const overtaken =
    left.failures > 0
      ? [hear(after, 'it fails where another one would pay', { ...failure, cost, wouldPayNow: true })]
      : []
  if (state !== 'committed') {
    return [...failed, { name: 'it is written down', next: { ...world, story: commit(story) }, fact: null }]
  }
  return [
    ...failed,
    ...overtaken,
    hear(world, 'it is broadcast', { kind: 'PayoutBroadcast', payoutId, txHash: '0xpayout' }),
    hear(world, 'it is deep', { kind: 'PayoutConfirmed', payoutId, txHash: '0xpayout', cost }),
  ]
}

function actions(world: World): Step[] {
  const { story, left } = world
  if (story.order.state.status !== 'EMERGENCY' || left.actions === 0) return []
  const next = { ...world, left: { ...left, actions: left.actions - 1 } }
  return [
    hear(next, 'the customer continues', {
      kind: 'ActionChosen',
      action: 'continue',
      quote: priceNow(story),
    }),
    hear(next, 'the customer takes the money back', {
      kind: 'ActionChosen',
      action: 'refund',
      refund: refundNow(story, 12_345n),
    }),
  ]
}

/** The same for worlds in which the same may happen from now on, whatever led there and in whatever order. */
export function nameOf({ story, clock, transactions, left }: World): string {
  const { order, outflows, books } = story
  const { state } = order
  const settled = 'settlement' in state && state.settlement !== null ? state.settlement.paid.units : ''
  const deposits = transactions.map(({ size, where }, index) => {
    const known = order.deposits.find(({ key }) => key === keyOf(index))
    return `${size} ${where} ${known?.role} ${known?.state} ${known?.isLate}`
  })
  const accounts = Object.entries(books).filter(([, units]) => units !== 0n)
  return [
    state.status,
    settled,
    'refund' in state ? state.refund.amount.units : '',
    'reasons' in state ? state.reasons.join(' ') : '',
    'txHash' in state ? state.txHash : '',
    order.isOutflowCommitted,
    order.firstEmergencyAtMs !== null,
    order.refundAddress,
    Object.values(order.failedCosts).map(({ units }) => units),
    // Which of two like deposits came first makes no difference to anything that follows.
    deposits.toSorted(),
    outflows.map((one) => one.state),
    accounts.map(([account, units]) => `${account} ${units}`).toSorted(),
    clock,
    Object.values(left),
  ].join('|')
}

/**
 * The way out: what is on its way is mined, unless it lies in a mempool for ever, and becomes deep, workers work, nothing fails
 * any more, and a customer who is asked takes the money back. The worlds on it, with their names; in the last nothing more
 * happens.
 */
export function* wayOut(
  world: World,
  mempool: 'moves' | 'is stuck',
): Generator<{ readonly name: string; readonly calm: World }> {
  const left = { deposits: 0, reorgs: 0, actions: 1, failures: 0 }
  let calm: World = { ...world, left }
  let name = nameOf(calm)
  for (let steps = 0; steps < STEPS_OUT_MAX; steps += 1) {
    yield { name, calm }
    const before = name
    const isStep = (one: Step) => {
      if (!isForward(one.name, mempool)) return false
      calm = { ...one.next, left }
      name = nameOf(calm)
      return name !== before
    }
    if (!stepsFrom(calm).some(isStep)) return
  }
}

const STEPS_OUT_MAX = 40

function isForward(name: string, mempool: 'moves' | 'is stuck'): boolean {
  if (mempool === 'is stuck' && /is mined$/.test(name)) return false
  return !/vanishes|leaves its block|has fallen|is down|fails|continues/.test(name)
}
