import type { Clock } from '../../clock.ts'
import type { Database, Sql } from '../../db/database.ts'
import { fillRetrySlot, findEarlier, lockEarlier, moveRetrySlot } from '../../db/retry_slots.ts'
import { type DeliveryState, deliveryStates } from '../../db/webhook_lines.ts'
import {
  findDeliveries,
  findDelivery,
  findEnded,
  type LoggedDelivery,
  type LogPosition,
  redeliver,
} from '../../db/webhook_log.ts'
import { CALLBACK, isReceiverEnabled } from '../../db/webhook_receivers.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import type { InstantMs } from '../../domain/time.ts'
import { deliveryIdOf, readDeliveryId, webhookIdOf } from '../../domain/webhooks/delivery_id.ts'
import type { DeskOutcome, DeskRejection, RetrySlot } from './desk.ts'

export { deliveryStates }

/** One event for one receiver, as its owner sees it. Times are epoch milliseconds of the service's clock. */
export type DeliveryView = {
  readonly id: string
  /** What receivers know a repetition by: the same for every receiver and attempt. */
  readonly webhook_id: string
  readonly order_id: string
  readonly sequence: number
  readonly status: string
  readonly url: string
  /** Null for the order's own `callback_url`. */
  readonly endpoint_id: string | null
  readonly state: DeliveryState
  readonly event_at: number
  readonly next_attempt_at: number | null
  readonly ended_at: number | null
  readonly attempts: readonly {
    readonly began_at: number
    readonly ended_at: number | null
    /** unknown: it was about to be sent, and nobody lived to note what came of it. */
    readonly outcome: 'answered' | 'forbidden' | 'failed' | 'unknown'
    readonly http_status: number | null
    readonly response: string | null
  }[]
}

export type DeliveryPage = {
  readonly deliveries: readonly DeliveryView[]
  /** Where the next page begins; null when there is none. */
  readonly next: LogPosition | null
}

/** What an account may see of its webhooks, and have done again. */
export type WebhookDesk = {
  listDeliveries(
    accountId: string,
    filter: { readonly orderId: string | null; readonly state: DeliveryState | null },
    page: { readonly after: LogPosition | null; readonly limit: number },
  ): Promise<DeliveryPage>
  /** Null: no such delivery, or not theirs. */
  redeliver(
    accountId: string,
    deliveryId: string,
    retry: RetrySlot,
  ): Promise<DeskOutcome<Replayable<{ readonly delivery: DeliveryView }>> | null>
  /** Everything since that is over, or what ended in one state. */
  redeliverSince(
    accountId: string,
    since: Since,
    retry: RetrySlot,
  ): Promise<DeskOutcome<Replayable<{ readonly redelivered: number }>>>
}

type Replayable<Answer> = Answer & { readonly isReplay: boolean }

type DeskPlace = { readonly db: Database; readonly clock: Clock }

export function webhookDesk(place: DeskPlace): WebhookDesk {
  return {
    listDeliveries: async (accountId, { orderId, state }, { after, limit }) => {
      const states = state === null ? deliveryStates : [state]
      // One more than is wanted says whether there is a next page.
      const found = await findDeliveries(place.db, accountId, { orderId, states }, after, limit + 1)
      const page = found.slice(0, limit)
      return { deliveries: page.map(viewDelivery), next: found.length > limit ? (page.at(-1) ?? null) : null }
    },
    redeliver: (accountId, deliveryId, retry) => redeliverOne(place, accountId, deliveryId, retry),
    redeliverSince: (accountId, since, retry) => redeliverMany(place, accountId, since, retry),
  }
}

async function redeliverOne(
  { db, clock }: DeskPlace,
  accountId: string,
  deliveryId: string,
  retry: RetrySlot,
): Promise<DeskOutcome<Replayable<{ delivery: DeliveryView }>> | null> {
  const key = readDeliveryId(deliveryId)
  const found = key === null ? null : await findDelivery(db, accountId, key)
  if (key === null || found === null) return null
  let earlier = await findEarlier(db, accountId, retry)
  if (earlier === null) {
    if (!(await isReceiverEnabled(db, key.receiver))) return refuse(disabled)
    const isFirst = await db.transaction(async (tx) => {
      const done = { orderId: key.orderId, answer: {} }
      if (!(await fillRetrySlot(tx, accountId, retry, done, clock.wallMs()))) return false
      await redeliver(tx, [key], clock.nowMs())
      return true
    })
    // Filled since it was looked at: by the same request, or by another one, for which nothing was done here.
    if (!isFirst) earlier = await findEarlier(db, accountId, retry)
  }
  if (earlier !== null && !earlier.ok) return earlier
  const delivery = (await findDelivery(db, accountId, key)) ?? found
  return accept({ delivery: viewDelivery(delivery), isReplay: earlier !== null })
}

const REDELIVERED_A_STEP = 500

type Since = { readonly sinceMs: number; readonly state: DeliveryState | null }

/** What the retry slot holds: how many so far, and what has not been looked at; once that is done, only how many. */
type Reached = {
  readonly redelivered: number
  readonly left?: { readonly after: LogPosition; readonly untilMs: InstantMs }
}

/**
 * In steps, each of which notes how far it got. Whoever repeats the request takes turns with the one who is still at it, and
 * goes on alone if that one died: all hear the same in the end, and nothing is begun again twice.
 */
async function redeliverMany(
  { db, clock }: DeskPlace,
  accountId: string,
  since: Since,
  retry: RetrySlot,
): Promise<DeskOutcome<Replayable<{ redelivered: number }>>> {
  for (let isReplay: boolean | null = null; ; ) {
    const step = await db.transaction((tx) => redeliverStep(tx, clock, accountId, since, retry))
    if (!step.ok) return step
    const { redelivered, left, isFirst } = step.value
    isReplay ??= !isFirst
    if (left === undefined) return accept({ redelivered, isReplay })
  }
}

async function redeliverStep(
  tx: Sql,
  clock: Clock,
  accountId: string,
  { sinceMs, state }: Since,
  retry: RetrySlot,
): Promise<DeskOutcome<Reached & { readonly isFirst: boolean }>> {
  const after = { eventAtMs: sinceMs, orderId: '', receiver: '', sequence: 0 }
  // What is redelivered meanwhile is behind the position: each is begun again once.
  const begun: Reached = { redelivered: 0, left: { after, untilMs: clock.nowMs() } }
  const isFirst = await fillRetrySlot(tx, accountId, retry, { orderId: '', answer: begun }, clock.wallMs())
  const earlier = isFirst ? null : await lockEarlier(tx, accountId, retry)
  if (earlier?.ok === false) return earlier
  const { redelivered, left } = earlier === null ? begun : (earlier.value.answer as Reached)
  if (left === undefined) return accept({ redelivered, isFirst })
  const states = state === null ? deliveryStates.filter((one) => one !== 'waiting') : [state]
  const ended = await findEnded(tx, accountId, left, states, REDELIVERED_A_STEP)
  const again = ended.length === 0 ? 0 : await redeliver(tx, ended, clock.nowMs())
  const last = ended.length === REDELIVERED_A_STEP ? ended.at(-1) : undefined
  const reached: Reached = {
    redelivered: redelivered + again,
    ...(last !== undefined && { left: { ...left, after: last } }),
  }
  await moveRetrySlot(tx, accountId, retry.slot, reached)
  return accept({ ...reached, isFirst })
}

const disabled: DeskRejection = {
  code: 'INVALID_PARAMETER',
  message: 'the endpoint of the delivery is disabled or deleted: enable it first',
  details: [{ field: 'delivery_id', message: 'goes to an endpoint that is disabled or deleted' }],
}

function viewDelivery(delivery: LoggedDelivery): DeliveryView {
  const { orderId, sequence, receiver, state } = delivery
  return {
    id: deliveryIdOf(delivery),
    webhook_id: webhookIdOf(delivery),
    order_id: orderId,
    sequence,
    status: delivery.orderStatus,
    url: delivery.url,
    endpoint_id: receiver === CALLBACK ? null : receiver,
    state,
    event_at: delivery.eventAtMs,
    next_attempt_at: state === 'waiting' ? delivery.dueAtMs : null,
    ended_at: delivery.endedAtMs,
    attempts: delivery.attempts.map(({ beganAtMs, endedAtMs, outcome, status, said }) => ({
      began_at: beganAtMs,
      ended_at: endedAtMs,
      outcome: outcome ?? 'unknown',
      http_status: status,
      response: said,
    })),
  }
}
