import { appendEvent, insertFact, isFactKnown, postForOrder } from '../db/books.ts'
import type { Sql } from '../db/database.ts'
import { lockOrder, readLocked, saveOrder } from '../db/orders.ts'
import { planOutflow, setOutflowState } from '../db/outflows.ts'
import { assert, unreachable } from '../domain/assert.ts'
import { assetOf } from '../domain/catalog/assets.ts'
import { decide } from '../domain/orders/decide.ts'
import type { Effect, Refusal } from '../domain/orders/decision.ts'
import type { Fact } from '../domain/orders/facts.ts'
import type { OrderId } from '../domain/orders/identifiers.ts'
import type { Order } from '../domain/orders/order.ts'
import type { Outflow } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import { viewOrder } from './view.ts'
import { warnOfDeposit } from './warn_of_deposits.ts'
import type { World } from './world.ts'

export type Applied =
  | { readonly kind: 'changed'; readonly order: Order }
  | { readonly kind: 'ignored'; readonly why: string }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'refused'; readonly code: Refusal; readonly why: string }
  | { readonly kind: 'no_order' }

/**
 * A fact under the key that names the outside event (`BTC:txid:vout:mined:blockhash`): telling it again changes nothing.
 * `alongside` writes what belongs to the same moment (a worker's row, a retry slot); it runs only when the fact is new
 * and not refused, and what it throws undoes everything.
 */
export type Told = {
  readonly factKey: string
  readonly fact: Fact
  readonly alongside?: (tx: Sql, order: Order) => Promise<void>
}

/**
 * The only writer of order state. Locks the order, drops a fact that is known by its key, lets `decide` say what it
 * means, and stores order, deposits, event, postings, outflows and the fact in one transaction.
 */
export async function apply(
  world: World,
  orderId: OrderId,
  factKey: string,
  fact: Fact,
  alongside: Told['alongside'] = nothing,
): Promise<Applied> {
  const [applied] = await applyInTurn(world, orderId, [{ factKey, fact, alongside }])
  assert(applied !== undefined, 'every fact is answered')
  return applied
}

/**
 * Several facts of one order, one after the other, in one transaction: what thousands of deposits mean takes all of them, and
 * they are read once. Answers in the same sequence.
 */
export async function applyInTurn(
  world: World,
  orderId: OrderId,
  all: readonly Told[],
): Promise<readonly Applied[]> {
  const { applied, changes } = await world.db.transaction(async (tx) => {
    const locked = await lockOrder(tx, orderId)
    if (locked === null) return { applied: all.map(() => ({ kind: 'no_order' }) as const), changes: [] }
    // Only now: who waited for a connection or the lock would date it before what happened meanwhile.
    const nowMs = world.clock.nowMs()
    const applied: Applied[] = []
    const changes: Change[] = []
    let order: Order | null = null
    for (const told of all) {
      if (await isFactKnown(tx, orderId, told.factKey)) {
        applied.push({ kind: 'duplicate' })
        continue
      }
      const before: Order = order ?? (await readLocked(tx, locked))
      const answer = await applyOne(world, tx, before, told, nowMs)
      order = answer.kind === 'changed' ? answer.order : before
      applied.push(answer)
      if (answer.kind === 'changed') changes.push({ fact: told.fact, before, after: answer.order })
    }
    return { applied, changes }
  })
  const last = changes.at(-1)
  if (last !== undefined) ringFor(world, last.after)
  // Not within: a transaction that is tried again would say it twice.
  for (const { fact, before, after } of changes) warnOfDeposit(world, fact, before, after)
  return applied
}

type Change = { readonly fact: Fact; readonly before: Order; readonly after: Order }

async function applyOne(
  world: World,
  tx: Sql,
  before: Order,
  { factKey, fact, alongside = nothing }: Told,
  nowMs: InstantMs,
): Promise<Applied> {
  const orderId = before.terms.id
  const decision = decide(before, fact, nowMs)
  switch (decision.kind) {
    case 'refused':
      return decision
    case 'ignored':
      await insertFact(tx, orderId, { key: factKey, kind: fact.kind, outcome: 'ignored' }, nowMs)
      await alongside(tx, before)
      return decision
    case 'changed': {
      const { order, postings, effects } = decision
      await insertFact(tx, orderId, { key: factKey, kind: fact.kind, outcome: 'changed' }, nowMs)
      await saveOrder(tx, before, order)
      await postForOrder(tx, orderId, factKey, postings, nowMs)
      for (const effect of effects.filter((one) => !isPlan(one))) await carryOut(tx, order, effect, nowMs)
      if (order.sequence > before.sequence) {
        const snapshot = viewOrder(order, world)
        await appendEvent(tx, order, { previousStatus: before.state.status, factKey, snapshot })
      }
      await alongside(tx, order)
      // Last: an order has one live outflow, and the one before it may end alongside.
      for (const effect of effects.filter(isPlan)) await carryOut(tx, order, effect, nowMs)
      return { kind: 'changed', order }
    }
    default:
      return unreachable(decision)
  }
}

/** What the change has made due. Whoever misses it looks for rows all the same, only later. */
function ringFor({ alarms }: World, { state, terms }: Order): void {
  alarms.ring('relay')
  if (state.status === 'EXCHANGE' && state.settlement === null) alarms.ring('exchange')
  else if (state.status === 'EXCHANGE') alarms.ring(`payouts ${assetOf(terms.to).chain}`)
  else if (state.status === 'REFUND') alarms.ring(`payouts ${assetOf(state.refund.amount.asset).chain}`)
}

async function nothing(): Promise<void> {}

function isPlan({ kind }: Effect): boolean {
  return kind === 'PlanPayout'
}

/** Effects are rows that are due; workers find them. */
async function carryOut(tx: Sql, order: Order, effect: Effect, nowMs: InstantMs): Promise<void> {
  switch (effect.kind) {
    case 'PlanPayout':
      return planOutflow(tx, outflowOf(order, effect.payoutId), nowMs)
    case 'CancelPayout': {
      // A failed one is dead already; a planned one dies here, before anything of it was written down.
      await setOutflowState(tx, effect.payoutId, ['planned'], 'cancelled')
      return
    }
    default:
      return unreachable(effect)
  }
}

function outflowOf(order: Order, payoutId: string): Outflow {
  const { state, terms } = order
  if (state.status === 'REFUND') {
    const { amount, address } = state.refund
    return { payoutId, kind: 'refund', asset: amount.asset, units: amount.units, address, tag: null }
  }
  assert(
    state.status === 'EXCHANGE' && state.settlement !== null,
    'a payout is planned by a settled exchange',
  )
  const { paid } = state.settlement
  const { destination: address, destinationTag: tag } = terms
  return { payoutId, kind: 'payout', asset: paid.asset, units: paid.units, address, tag }
}
