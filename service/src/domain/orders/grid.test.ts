import { describe, expect, test } from 'vitest'
import { assert } from '../assert.ts'
import { amountOf } from '../money/amount.ts'
import type { Decision } from './decision.ts'
import { type Fact, type FactKind, factKinds } from './facts.ts'
import { AWAITED_MS } from './lock_held.ts'
import { type OrderStatus, orderStatuses } from './order.ts'
import { checkBooks, legalMoves } from './testing/books.ts'
import { DUST, FOREIGN, IN_TIME_MS, keyOf, type Scene, scenes, seen } from './testing/scenes.ts'
import {
  commit,
  costOn,
  EXPIRES_MS,
  liveOutflow,
  priceNow,
  refundNow,
  type Story,
  tell,
} from './testing/story.ts'

/**
 * What: every state answers every fact, and each answer is the one written down here by hand.
 * How: the states are reached by the facts that lead there (testing/scenes.ts). A row is a state, a column a fact:
 *   STATUS  the order becomes this      same  something changed, the status did not      -  ignored
 *   not     refused, NOT_EMERGENCY      inv   refused, INVALID_ACTION                    chg  refused, OFFER_CHANGED
 */

/** Told to a scene; the time is the scene's, unless the fact brings its own. */
type Teller = (scene: Scene) => { readonly fact: Fact; readonly nowMs?: number; readonly story?: Story }

const depositSeen = (name: string, deposit: Omit<Parameters<typeof seen>[2], 'atMs'>): Teller => {
  return ({ story, nowMs }) => ({ fact: seen(story, name, { ...deposit, atMs: nowMs }) })
}
const depositFact = (
  kind: 'DepositUnmined' | 'DepositVanished' | 'DepositConfirmed',
  name: string,
): Teller => {
  return () => ({ fact: { kind, key: keyOf(name) } })
}
const newDeposit = (deposit: Omit<Parameters<typeof seen>[2], 'atMs'>, atMs = IN_TIME_MS): Teller => {
  return ({ story, nowMs }) => ({
    fact: seen(story, 'd9', { ...deposit, atMs }),
    nowMs: Math.max(nowMs, atMs),
  })
}
/** The same deposit again in another block, with the same amount. */
const minedAgain: Teller = ({ story, nowMs }) => {
  const amount = story.order.deposits.find(({ key }) => key === keyOf('d1'))?.amount
  return { fact: seen(story, 'd1', { ...(amount && { amount }), atMs: nowMs }) }
}

const liveId = ({ story }: Scene) => liveOutflow(story)?.payoutId ?? `${story.order.terms.id}:1`
const otherId = ({ story }: Scene) => `${story.order.terms.id}:9`
const sent = (idOf: (scene: Scene) => string): Teller => {
  return (scene) => ({
    fact: { kind: 'PayoutBroadcast', payoutId: idOf(scene), txHash: '0xsent' },
    story: commit(scene.story),
  })
}
const paid = (idOf: (scene: Scene) => string): Teller => {
  return (scene) => ({
    fact: { kind: 'PayoutConfirmed', payoutId: idOf(scene), txHash: '0xpaid', cost: costOn('ETH:ETH', 7n) },
    story: commit(scene.story),
  })
}
const failed = (idOf: (scene: Scene) => string): Teller => {
  return (scene) => ({
    fact: { kind: 'PayoutFailed', payoutId: idOf(scene), problem: 'NETWORK_PROBLEM', cost: null },
  })
}
const failedWhereOneWouldPay: Teller = (scene) => {
  const { from, to } = scene.story.order.terms
  const cost = costOn(scene.story.order.state.status === 'REFUND' ? from : to, 7n)
  const payoutId = liveId(scene)
  return {
    fact: { kind: 'PayoutFailed', payoutId, problem: 'DESTINATION_PROBLEM', cost, wouldPayNow: true },
    story: commit(scene.story),
  }
}
const stalledExchange = (sequencesAgo: number): Teller => {
  return ({ story }) => {
    const sequence = story.order.sequence - sequencesAgo
    return { fact: { kind: 'ExchangeStalled', payoutId: null, sequence } }
  }
}
const stalledPayout = (idOf: (scene: Scene) => string): Teller => {
  return (scene) => ({ fact: { kind: 'ExchangeStalled', payoutId: idOf(scene) } })
}

const priced = (quoteOf: (story: Story) => ReturnType<typeof priceNow>): Teller => {
  return ({ story }) => ({ fact: { kind: 'ExchangePriced', quote: quoteOf(story) } })
}
/** A quote on one unit more than was received. */
const quoteOnOther = (story: Story): ReturnType<typeof priceNow> => {
  const quote = priceNow(scenes.due.story)
  assert(quote !== null, 'the amount asked can be priced')
  const { from } = priceNow(story) ?? quote
  return { ...quote, from: amountOf(from.asset, from.units + 1n) }
}
const chosen = (action: 'continue' | 'recalculate', quoteOf = (story: Story) => priceNow(story)): Teller => {
  return ({ story }) => ({ fact: { kind: 'ActionChosen', action, quote: quoteOf(story) } })
}
const refunded = (refundOf: (story: Story) => ReturnType<typeof refundNow>): Teller => {
  return ({ story }) => ({ fact: { kind: 'ActionChosen', action: 'refund', refund: refundOf(story) } })
}
const refundOfOther = (story: Story): ReturnType<typeof refundNow> => {
  const refund = refundNow(story, 1n) ?? refundNow(scenes.due.story, 1n)
  return refund && { ...refund, networkFee: amountOf(refund.networkFee.asset, refund.networkFee.units + 1n) }
}

const tellers = {
  // A deposit nobody has heard of.
  seen: newDeposit({ isMined: false }),
  mined: newDeposit({}),
  late: newDeposit({}, EXPIRES_MS),
  partial: newDeposit({ percent: 50n }),
  dust: newDeposit({ amount: DUST }),
  foreign: newDeposit({ amount: FOREIGN }),
  unmined: depositFact('DepositUnmined', 'd9'),
  vanished: depositFact('DepositVanished', 'd9'),
  confirmed: depositFact('DepositConfirmed', 'd9'),
  // The deposits of the scene.
  d1Seen: depositSeen('d1', { isMined: false }),
  d1Mined: minedAgain,
  d1More: depositSeen('d1', { percent: 300n }),
  d1Foreign: depositSeen('d1', { amount: FOREIGN }),
  d1Unmined: depositFact('DepositUnmined', 'd1'),
  d1Vanished: depositFact('DepositVanished', 'd1'),
  d1Confirmed: depositFact('DepositConfirmed', 'd1'),
  d2Unmined: depositFact('DepositUnmined', 'd2'),
  d2Confirmed: depositFact('DepositConfirmed', 'd2'),
  // Time, market, and nothing going on.
  early: () => ({ fact: { kind: 'OrderExpired', atMs: EXPIRES_MS - 1 }, nowMs: EXPIRES_MS - 1 }),
  expired: () => ({ fact: { kind: 'OrderExpired', atMs: EXPIRES_MS }, nowMs: EXPIRES_MS }),
  unawaited: () => ({
    fact: { kind: 'OrderExpired', atMs: EXPIRES_MS + AWAITED_MS },
    nowMs: EXPIRES_MS + AWAITED_MS,
  }),
  priced: priced((story) => priceNow(story)),
  slipped: priced((story) => priceNow(story, -500n)),
  worthless: priced(() => null),
  pricedOther: priced(quoteOnOther),
  // The live outflow, or one that is not.
  sent: sent(liveId),
  sentOther: sent(otherId),
  paid: paid(liveId),
  paidOther: paid(otherId),
  failed: failed(liveId),
  failedOther: failed(otherId),
  overtaken: failedWhereOneWouldPay,
  // What has waited too long: the exchange that is due, an earlier one, the live outflow, or one that is not.
  stalled: stalledExchange(0),
  stalledEarlier: stalledExchange(1),
  stalledPayout: stalledPayout(liveId),
  stalledOther: stalledPayout(otherId),
  // Choices.
  continue: chosen('continue'),
  continueNothing: chosen('continue', () => null),
  continueOther: chosen('continue', quoteOnOther),
  recalculate: chosen('recalculate'),
  refund: refunded((story) => refundNow(story, 1n)),
  refundNothing: refunded(() => null),
  refundOther: refunded(refundOfOther),
} satisfies Record<string, Teller>

const NEW_DEPOSITS = `
                  seen     mined    late     partial  dust     foreign  unmined  vanished confirmed
new               PENDING  PENDING  same     PENDING  same     same     -        -        -
newVanished       PENDING  PENDING  same     PENDING  same     same     -        -        -
newDust           PENDING  PENDING  same     PENDING  same     same     -        -        -
newForeign        PENDING  PENDING  same     PENDING  same     same     -        -        -
newLate           PENDING  PENDING  same     PENDING  same     same     -        -        -
pendingSeen       same     same     same     same     same     same     -        -        -
pendingMined      same     same     same     same     same     same     -        -        -
pendingUnder      same     same     same     same     same     same     -        -        -
pendingOver       same     same     same     same     same     same     -        -        -
pendingTwo        same     same     same     same     same     same     -        -        -
pendingKept       same     same     same     same     same     same     -        -        -
expired           same     same     same     same     same     same     -        -        -
expiredVanished   same     same     same     same     same     same     -        -        -
expiredSeen       same     same     same     same     same     same     -        -        -
expiredMined      same     same     same     same     same     same     -        -        -
due               same     same     same     same     same     same     -        -        -
dueFloat          same     same     same     same     same     same     -        -        -
dueExtra          same     same     same     same     same     same     -        -        -
planned           same     same     same     same     same     same     -        -        -
committed         same     same     same     same     same     same     -        -        -
committedLost     same     same     same     same     same     same     -        -        -
withdraw          same     same     same     same     same     same     -        -        -
withdrawLost      same     same     same     same     same     same     -        -        -
withdrawGone      same     same     same     same     same     same     -        -        -
done              same     same     same     same     same     same     -        -        -
doneLost          same     same     same     same     same     same     -        -        -
emergencyUnder    same     same     same     same     same     same     -        -        -
emergencyTopUp    same     same     same     same     same     same     -        -        -
emergencyKept     EXCHANGE same     same     same     EXCHANGE EXCHANGE -        -        -
emergencyOver     same     same     same     same     same     same     -        -        -
emergencyLate     same     same     same     same     same     same     -        -        -
emergencySlipped  same     same     same     same     same     same     -        -        -
emergencyFailed   same     same     same     same     same     same     -        -        -
refundPlanned     same     same     same     same     same     same     -        -        -
refundCommitted   same     same     same     same     same     same     -        -        -
refundSent        same     same     same     same     same     same     -        -        -
refundLost        same     same     same     same     same     same     -        -        -
refunded          same     same     same     same     same     same     -        -        -
refundedLost      same     same     same     same     same     same     -        -        -
`

const KNOWN_DEPOSITS = `
                  d1Seen   d1Mined  d1More   d1Foreign d1Unmined d1Vanished d1Confirmed d2Unmined d2Confirmed
new               PENDING  PENDING  PENDING  same      -         -          -           -         -
newVanished       PENDING  PENDING  PENDING  same      -         -          -           -         -
newDust           -        same     PENDING  same      same      -          same        -         -
newForeign        -        same     PENDING  same      same      -          same        -         -
newLate           -        same     same     same      -         same       -           -         -
pendingSeen       -        same     same     NEW       -         NEW        -           -         -
pendingMined      -        same     same     NEW       same      -          EXCHANGE    -         -
pendingUnder      -        same     same     NEW       same      -          EMERGENCY   -         -
pendingOver       -        same     same     NEW       same      -          EMERGENCY   -         -
pendingTwo        -        -        -        -         same      -          -           same      EXCHANGE
pendingKept       -        -        -        -         same      -          -           -         -
expired           same     same     same     same      -         -          -           -         -
expiredVanished   PENDING  PENDING  PENDING  same      -         -          -           -         -
expiredSeen       -        same     same     same      -         same       -           -         -
expiredMined      -        same     same     same      same      -          EMERGENCY   -         -
due               -        -        -        -         PENDING   -          -           -         -
dueFloat          -        -        -        -         PENDING   -          -           -         -
dueExtra          -        -        -        -         PENDING   -          -           same      same
planned           -        -        -        -         PENDING   -          -           -         -
committed         -        -        -        -         same      -          -           -         -
committedLost     -        same     same     same      -         same       -           -         -
withdraw          -        -        -        -         same      -          -           -         -
withdrawLost      -        same     same     same      -         same       -           -         -
withdrawGone      same     same     same     same      -         -          -           -         -
done              -        -        -        -         same      -          -           -         -
doneLost          -        same     same     same      -         same       -           -         -
emergencyUnder    -        -        -        -         PENDING   -          -           -         -
emergencyTopUp    -        -        -        -         PENDING   -          -           same      EXCHANGE
emergencyKept     -        -        -        -         PENDING   -          -           PENDING   -
emergencyOver     -        -        -        -         PENDING   -          -           -         -
emergencyLate     -        -        -        -         EXPIRED   -          -           -         -
emergencySlipped  -        -        -        -         PENDING   -          -           -         -
emergencyFailed   -        -        -        -         PENDING   -          -           -         -
refundPlanned     -        -        -        -         PENDING   -          -           -         -
refundCommitted   -        -        -        -         same      -          -           -         -
refundSent        -        -        -        -         same      -          -           -         -
refundLost        -        same     same     same      -         same       -           -         -
refunded          -        -        -        -         same      -          -           -         -
refundedLost      -        same     same     same      -         same       -           -         -
`

const TIME_AND_MARKET = `
                  early    expired  unawaited priced   slipped   worthless pricedOther
new               -        EXPIRED  EXPIRED   -        -         -         -
newVanished       -        EXPIRED  EXPIRED   -        -         -         -
newDust           -        EXPIRED  EXPIRED   -        -         -         -
newForeign        -        EXPIRED  EXPIRED   -        -         -         -
newLate           -        EXPIRED  EXPIRED   -        -         -         -
pendingSeen       -        -        -         -        -         -         -
pendingMined      -        -        -         -        -         -         -
pendingUnder      -        -        -         -        -         -         -
pendingOver       -        -        -         -        -         -         -
pendingTwo        -        -        -         -        -         -         -
pendingKept       -        -        EMERGENCY -        -         -         -
expired           -        -        -         -        -         -         -
expiredVanished   -        -        -         -        -         -         -
expiredSeen       -        -        -         -        -         -         -
expiredMined      -        -        -         -        -         -         -
due               -        -        -         same     same      same      same
dueFloat          -        -        -         same     EMERGENCY EMERGENCY -
dueExtra          -        -        -         same     same      same      same
planned           -        -        -         -        -         -         -
committed         -        -        -         -        -         -         -
committedLost     -        -        -         -        -         -         -
withdraw          -        -        -         -        -         -         -
withdrawLost      -        -        -         -        -         -         -
withdrawGone      -        -        -         -        -         -         -
done              -        -        -         -        -         -         -
doneLost          -        -        -         -        -         -         -
emergencyUnder    -        -        -         -        -         -         -
emergencyTopUp    -        -        -         -        -         -         -
emergencyKept     -        -        EXCHANGE  -        -         -         -
emergencyOver     -        -        -         -        -         -         -
emergencyLate     -        -        -         -        -         -         -
emergencySlipped  -        -        -         -        -         -         -
emergencyFailed   -        -        -         -        -         -         -
refundPlanned     -        -        -         -        -         -         -
refundCommitted   -        -        -         -        -         -         -
refundSent        -        -        -         -        -         -         -
refundLost        -        -        -         -        -         -         -
refunded          -        -        -         -        -         -         -
refundedLost      -        -        -         -        -         -         -
`

const STALLED = `
                  stalled   stalledEarlier stalledPayout stalledOther
new               -         -              -             -
newVanished       -         -              -             -
newDust           -         -              -             -
newForeign        -         -              -             -
newLate           -         -              -             -
pendingSeen       -         -              -             -
pendingMined      -         -              -             -
pendingUnder      -         -              -             -
pendingOver       -         -              -             -
pendingTwo        -         -              -             -
pendingKept       -         -              -             -
expired           -         -              -             -
expiredVanished   -         -              -             -
expiredSeen       -         -              -             -
expiredMined      -         -              -             -
due               EMERGENCY -              -             -
dueFloat          EMERGENCY -              -             -
dueExtra          EMERGENCY -              -             -
planned           -         -              EMERGENCY     -
committed         -         -              -             -
committedLost     -         -              -             -
withdraw          -         -              -             -
withdrawLost      -         -              -             -
withdrawGone      -         -              -             -
done              -         -              -             -
doneLost          -         -              -             -
emergencyUnder    -         -              -             -
emergencyTopUp    -         -              -             -
emergencyKept     -         -              -             -
emergencyOver     -         -              -             -
emergencyLate     -         -              -             -
emergencySlipped  -         -              -             -
emergencyFailed   -         -              -             -
refundPlanned     -         -              -             -
refundCommitted   -         -              -             -
refundSent        -         -              -             -
refundLost        -         -              -             -
refunded          -         -              -             -
refundedLost      -         -              -             -
`

const OUTFLOWS = `
                  sent     sentOther paid     paidOther failed    failedOther overtaken
new               -        -         -        -         -         -           -
newVanished       -        -         -        -         -         -           -
newDust           -        -         -        -         -         -           -
newForeign        -        -         -        -         -         -           -
newLate           -        -         -        -         -         -           -
pendingSeen       -        -         -        -         -         -           -
pendingMined      -        -         -        -         -         -           -
pendingUnder      -        -         -        -         -         -           -
pendingOver       -        -         -        -         -         -           -
pendingTwo        -        -         -        -         -         -           -
pendingKept       -        -         -        -         -         -           -
expired           -        -         -        -         -         -           -
expiredVanished   -        -         -        -         -         -           -
expiredSeen       -        -         -        -         -         -           -
expiredMined      -        -         -        -         -         -           -
due               -        -         -        -         -         -           -
dueFloat          -        -         -        -         -         -           -
dueExtra          -        -         -        -         -         -           -
planned           WITHDRAW -         DONE     -         EMERGENCY -           same
committed         WITHDRAW -         DONE     -         EMERGENCY -           same
committedLost     WITHDRAW -         DONE     -         PENDING   -           PENDING
withdraw          same     -         DONE     -         EMERGENCY -           EXCHANGE
withdrawLost      same     -         DONE     -         PENDING   -           PENDING
withdrawGone      same     -         DONE     -         NEW       -           NEW
done              -        -         same     -         -         -           -
doneLost          -        -         same     -         -         -           -
emergencyUnder    -        -         -        -         -         -           -
emergencyTopUp    -        -         -        -         -         -           -
emergencyKept     -        -         -        -         -         -           -
emergencyOver     -        -         -        -         -         -           -
emergencyLate     -        -         -        -         -         -           -
emergencySlipped  -        -         -        -         -         -           -
emergencyFailed   -        -         -        -         -         -           -
refundPlanned     same     -         REFUNDED -         EMERGENCY -           same
refundCommitted   same     -         REFUNDED -         EMERGENCY -           same
refundSent        same     -         REFUNDED -         EMERGENCY -           same
refundLost        same     -         REFUNDED -         PENDING   -           PENDING
refunded          -        -         same     -         -         -           -
refundedLost      -        -         same     -         -         -           -
`

const CHOICES = `
                  continue continueNothing continueOther recalculate refund refundNothing refundOther
new               not      not             not           not         not    not           not
newVanished       not      not             not           not         not    not           not
newDust           not      not             not           not         not    not           not
newForeign        not      not             not           not         not    not           not
newLate           not      not             not           not         not    not           not
pendingSeen       not      not             not           not         not    not           not
pendingMined      not      not             not           not         not    not           not
pendingUnder      not      not             not           not         not    not           not
pendingOver       not      not             not           not         not    not           not
pendingTwo        not      not             not           not         not    not           not
pendingKept       not      not             not           not         not    not           not
expired           not      not             not           not         not    not           not
expiredVanished   not      not             not           not         not    not           not
expiredSeen       not      not             not           not         not    not           not
expiredMined      not      not             not           not         not    not           not
due               not      not             not           not         not    not           not
dueFloat          not      not             not           not         not    not           not
dueExtra          not      not             not           not         not    not           not
planned           not      not             not           not         not    not           not
committed         not      not             not           not         not    not           not
committedLost     not      not             not           not         not    not           not
withdraw          not      not             not           not         not    not           not
withdrawLost      not      not             not           not         not    not           not
withdrawGone      not      not             not           not         not    not           not
done              not      not             not           not         not    not           not
doneLost          not      not             not           not         not    not           not
emergencyUnder    EXCHANGE inv             chg           EXCHANGE    REFUND inv           chg
emergencyTopUp    EXCHANGE inv             chg           EXCHANGE    REFUND inv           chg
emergencyKept     EXCHANGE inv             chg           EXCHANGE    REFUND inv           chg
emergencyOver     EXCHANGE inv             chg           EXCHANGE    REFUND inv           chg
emergencyLate     EXCHANGE inv             chg           EXCHANGE    REFUND inv           chg
emergencySlipped  EXCHANGE inv             chg           EXCHANGE    REFUND inv           chg
emergencyFailed   EXCHANGE inv             chg           EXCHANGE    REFUND inv           chg
refundPlanned     not      not             not           not         not    not           not
refundCommitted   not      not             not           not         not    not           not
refundSent        not      not             not           not         not    not           not
refundLost        not      not             not           not         not    not           not
refunded          not      not             not           not         not    not           not
refundedLost      not      not             not           not         not    not           not
`

const tables = [NEW_DEPOSITS, KNOWN_DEPOSITS, TIME_AND_MARKET, STALLED, OUTFLOWS, CHOICES]

type Cell = { readonly state: string; readonly fact: string; readonly expected: string }

const cells: readonly Cell[] = tables.flatMap((table) => {
  const [head = [], ...rows] = table
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  return rows.flatMap(([state = '', ...answers]) => {
    assert(answers.length === head.length, `the row ${state} answers every column`)
    return answers.map((expected, index) => ({ state, fact: head[index] ?? '', expected }))
  })
})

const REFUSALS = { NOT_EMERGENCY: 'not', INVALID_ACTION: 'inv', OFFER_CHANGED: 'chg' } as const

function answerOf(before: OrderStatus, decision: Decision): string {
  if (decision.kind === 'ignored') return '-'
  if (decision.kind === 'refused') return REFUSALS[decision.code]
  const after = decision.order.state.status
  return after === before ? 'same' : after
}

function tellFact(scene: Scene, teller: Teller) {
  const told = teller(scene)
  const before = told.story ?? scene.story
  return { before, fact: told.fact, ...tell(before, told.fact, told.nowMs ?? scene.nowMs) }
}

describe('every state answers every fact', () => {
  test('the tables hold every state with every fact, once', () => {
    const expected = Object.keys(scenes).flatMap((state) =>
      Object.keys(tellers).map((fact) => `${state} × ${fact}`),
    )
    expect(cells.map(({ state, fact }) => `${state} × ${fact}`).toSorted()).toEqual(expected.toSorted())
  })

  test('the states are all there are, and so are the facts', () => {
    const statuses = Object.values(scenes).map(({ story }) => story.order.state.status)
    expect([...new Set(statuses)].toSorted()).toEqual([...orderStatuses].toSorted())
    const kinds = Object.values<Teller>(tellers).map((teller): FactKind => teller(scenes.due).fact.kind)
    expect([...new Set(kinds)].toSorted()).toEqual([...factKinds].toSorted())
  })

  test('every scene has true books', () => {
    for (const { story } of Object.values(scenes)) checkBooks(story)
  })

  describe.each(Object.entries(scenes))('%s', (name, scene) => {
    test.each(cells.filter(({ state }) => state === name))(
      '$fact: $expected',
      ({ fact: factName, expected }) => {
        const teller = (tellers as Record<string, Teller>)[factName]
        assert(teller !== undefined, `${factName} is a fact`)
        const { before, story, decision } = tellFact(scene, teller)
        const { status } = before.order.state
        expect(answerOf(status, decision)).toBe(expected)
        checkBooks(story)
        if (decision.kind !== 'changed') {
          expect(decision.why).not.toBe('')
          return
        }
        const isMove = decision.order.state.status !== status
        expect(decision.order.sequence - before.order.sequence).toBe(isMove ? 1 : 0)
        if (isMove) expect(legalMoves[status]).toContain(decision.order.state.status)
        expect(decision.order.terms).toBe(before.order.terms)
      },
    )
  })
})
