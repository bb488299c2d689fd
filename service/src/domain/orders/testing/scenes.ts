import { assert } from '../../assert.ts'
import { type Amount, amountOf } from '../../money/amount.ts'
import type { Fact } from '../facts.ts'
import {
  commit,
  EXPIRES_MS,
  liveOutflow,
  priceNow,
  refundNow,
  type Setting,
  START_MS,
  type Story,
  stalledNow,
  startStory,
  tell,
} from './story.ts'

/** An order brought into a state by the facts that really lead there, and the time it is then. */
export type Scene = { readonly story: Story; readonly nowMs: number }

export const IN_TIME_MS = START_MS + 60_000
export const LATE_MS = EXPIRES_MS + 60_000

type Act = (scene: Scene) => Scene

export const say = (factOf: (story: Story) => Fact): Act => {
  return ({ story, nowMs }) => {
    const { story: next, decision } = tell(story, factOf(story), nowMs)
    assert(decision.kind === 'changed', 'a scene is set by what changes the order')
    return { story: next, nowMs }
  }
}

export const keyOf = (name: string): string => `ETH:${name}:call:0`

export const BLOCK = { height: 100, hash: '0xblock' }

/** A deposit of a share of what is asked; mined, or in a mempool only. */
export function seen(
  { order: { terms } }: Story,
  name: string,
  deposit: {
    readonly percent?: bigint
    readonly amount?: Amount
    readonly isMined?: boolean
    readonly atMs: number
  },
): Fact & { kind: 'DepositSeen' } {
  const { percent = 100n, isMined = true } = deposit
  return {
    kind: 'DepositSeen',
    key: keyOf(name),
    txHash: `0x${name}`,
    amount: deposit.amount ?? amountOf(terms.from, (terms.asks.units * percent) / 100n),
    seenAtMs: deposit.atMs,
    block: isMined ? BLOCK : null,
  }
}

export const see = (name: string, percent: bigint): Act => {
  return (scene) => say((story) => seen(story, name, { percent, isMined: false, atMs: scene.nowMs }))(scene)
}
export const mine = (name: string, percent: bigint): Act => {
  return (scene) => say((story) => seen(story, name, { percent, atMs: scene.nowMs }))(scene)
}
const mineOther = (name: string, amount: Amount): Act => {
  return (scene) => say((story) => seen(story, name, { amount, atMs: scene.nowMs }))(scene)
}
export const confirm = (name: string): Act => say(() => ({ kind: 'DepositConfirmed', key: keyOf(name) }))
export const unmine = (name: string): Act => say(() => ({ kind: 'DepositUnmined', key: keyOf(name) }))
export const vanish = (name: string): Act => say(() => ({ kind: 'DepositVanished', key: keyOf(name) }))
export const expire: Act = ({ story }) =>
  say(() => ({ kind: 'OrderExpired', atMs: LATE_MS }))({ story, nowMs: LATE_MS })
export const price: Act = say((story) => ({ kind: 'ExchangePriced', quote: priceNow(story) }))
const slip: Act = say((story) => ({ kind: 'ExchangePriced', quote: priceNow(story, -500n) }))
export const stall: Act = say(stalledNow)
export const writeDown: Act = ({ story, nowMs }) => ({ story: commit(story), nowMs })
const payoutId = (story: Story) => liveOutflow(story)?.payoutId ?? 'none'
export const send: Act = say((story) => ({
  kind: 'PayoutBroadcast',
  payoutId: payoutId(story),
  txHash: '0xout',
}))
export const pay: Act = say((story) => ({
  kind: 'PayoutConfirmed',
  payoutId: payoutId(story),
  txHash: '0xout',
  cost: amountOf('ETH:ETH', 21_000n),
}))
export const fail: Act = say((story) => ({
  kind: 'PayoutFailed',
  payoutId: payoutId(story),
  problem: 'DESTINATION_PROBLEM',
  cost: null,
}))
export const refund: Act = say((story) => ({
  kind: 'ActionChosen',
  action: 'refund',
  refund: refundNow(story, 1n),
}))

/** What happens to a new order, one after the other. */
export function setScene(setting: Setting, ...acts: readonly Act[]): Scene {
  const start: Scene = { story: startStory(setting), nowMs: IN_TIME_MS }
  return goOn(start, ...acts)
}

export function goOn(scene: Scene, ...acts: readonly Act[]): Scene {
  return acts.reduce((before, act) => act(before), scene)
}

const fixed = (...acts: Act[]) => setScene({ rateType: 'fixed' }, ...acts)
const float = (...acts: Act[]) => setScene({ rateType: 'float' }, ...acts)

const later: Act = ({ story }) => ({ story, nowMs: LATE_MS })
const due = [mine('d1', 100n), confirm('d1')]
const committed = [...due, price, writeDown]
const refundDue = [mine('d1', 200n), confirm('d1'), refund]
const refundCommitted = [...refundDue, writeDown]

/** The amounts of these are looked at by nobody but the order: dust, and an asset it did not ask for. */
export const DUST = amountOf('ETH:ETH', 1n)
export const FOREIGN = amountOf('USDC:ERC20', 10n ** 24n)

/** Every state an order can be in, with every fate of the deposits it came from. `d1` pays it, `d2` comes on top. */
export const scenes = {
  new: fixed(),
  newVanished: fixed(see('d1', 100n), vanish('d1')),
  newDust: fixed(mineOther('d1', DUST)),
  newForeign: fixed(mineOther('d1', FOREIGN)),
  newLate: fixed(later, see('d1', 100n)),
  pendingSeen: fixed(see('d1', 100n)),
  pendingMined: fixed(mine('d1', 100n)),
  pendingUnder: fixed(mine('d1', 50n)),
  pendingOver: fixed(mine('d1', 200n)),
  pendingKept: fixed(mine('d1', 50n), see('d2', 50n), confirm('d1')),
  pendingTwo: fixed(mine('d1', 50n), mine('d2', 50n), confirm('d1')),
  expired: fixed(expire),
  expiredVanished: fixed(see('d1', 100n), vanish('d1'), expire),
  expiredSeen: fixed(expire, see('d1', 100n)),
  expiredMined: fixed(expire, mine('d1', 100n)),
  due: fixed(...due),
  dueFloat: float(...due),
  dueExtra: fixed(...due, mine('d2', 100n)),
  planned: fixed(...due, price),
  committed: fixed(...committed),
  committedLost: fixed(...committed, unmine('d1')),
  withdraw: fixed(...committed, send),
  withdrawLost: fixed(...committed, send, unmine('d1')),
  withdrawGone: fixed(...committed, send, unmine('d1'), vanish('d1')),
  done: fixed(...committed, send, pay),
  doneLost: fixed(...committed, send, pay, unmine('d1')),
  emergencyUnder: fixed(mine('d1', 50n), confirm('d1')),
  emergencyTopUp: fixed(mine('d1', 50n), confirm('d1'), mine('d2', 50n)),
  emergencyKept: fixed(
    mine('d1', 50n),
    confirm('d1'),
    mine('d2', 50n),
    mine('d3', 50n),
    confirm('d2'),
    unmine('d3'),
  ),
  emergencyOver: fixed(mine('d1', 200n), confirm('d1')),
  emergencyLate: fixed(expire, mine('d1', 100n), confirm('d1')),
  emergencySlipped: float(...due, slip),
  emergencyFailed: fixed(...committed, send, fail),
  refundPlanned: fixed(...refundDue),
  refundCommitted: fixed(...refundCommitted),
  refundSent: fixed(...refundCommitted, send),
  refundLost: fixed(...refundCommitted, send, unmine('d1')),
  refunded: fixed(...refundCommitted, send, pay),
  refundedLost: fixed(...refundCommitted, send, pay, unmine('d1')),
}
