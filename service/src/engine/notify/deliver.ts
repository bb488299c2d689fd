import type { WebhookAnswer } from '../../channels/channel.ts'
import type { Sql } from '../../db/database.ts'
import { keptText } from '../../db/kept_text.ts'
import {
  type AttemptEnd,
  cancelWaiting,
  closeLine,
  type DueDelivery,
  freeLine,
  lockLine,
  noteAttempt,
  setDelivery,
} from '../../db/webhook_lines.ts'
import { CALLBACK, disableGoneEndpoint } from '../../db/webhook_receivers.ts'
import { unreachable } from '../../domain/assert.ts'
import type { InstantMs } from '../../domain/time.ts'
import { webhookIdOf } from '../../domain/webhooks/delivery_id.ts'
import { nextAttemptInMs } from '../../domain/webhooks/schedule.ts'
import type { WebhookWorld } from './webhook_world.ts'

/** By the receiver's own word there is nobody there any more. */
const GONE = 410

/** What of an answer or an error is kept, and shown with every attempt: an error repeats every name in the receiver's certificate. */
const SAID_LENGTH_MAX = 1_000

/**
 * Tells one receiver one event, and writes down what came of it. `isStopping`: it was cut off by us, which says nothing
 * about the receiver. Rejects when our own database fails: that counts for nobody, the claim runs out, and it is tried again.
 */
export async function deliver(
  world: WebhookWorld,
  delivery: DueDelivery,
  isStopping: () => boolean,
): Promise<void> {
  if (!delivery.isWanted) {
    await move(world, delivery, (tx) => cancelWaiting(tx, delivery, world.clock.nowMs()))
    return
  }
  const answer = await send(world, delivery)
  const end = endOf(answer)
  // One moment for all that is written of it: whoever reads that it has ended may count from there when the next is due.
  const endedAtMs = world.clock.nowMs()
  await noteAttempt(world.db, delivery, end, endedAtMs)
  if (answer.kind === 'failed' && isStopping()) return move(world, delivery, async () => {})
  await move(world, delivery, (tx) => settle(world, tx, delivery, { answer, end, nowMs: endedAtMs }))
}

async function send(world: WebhookWorld, { event, accountId, url }: DueDelivery): Promise<WebhookAnswer> {
  // Outside: trouble of our own database passes, and is no failure of the receiver.
  const secrets = await world.webhooks.secretsOf(accountId)
  if (secrets.length === 0) {
    return { kind: 'failed', why: 'no secret of the account could be opened to sign it with' }
  }
  try {
    return await world.webhooks.channel.deliver({
      url,
      id: webhookIdOf(event),
      body: world.webhooks.writeEvent(event),
      secrets,
      atWallMs: world.clock.wallMs(),
    })
  } catch (error) {
    // Ours to repair, and no reason to try again all the time.
    world.log.error(
      { order: event.orderId, sequence: event.sequence, err: error },
      'a webhook could not be made',
    )
    return { kind: 'failed', why: 'the message could not be made' }
  }
}

function endOf(answer: WebhookAnswer): AttemptEnd {
  switch (answer.kind) {
    case 'answered':
      return { outcome: 'answered', status: answer.status, said: keptText(answer.head, SAID_LENGTH_MAX) }
    case 'forbidden':
    case 'failed':
      return { outcome: answer.kind, status: null, said: keptText(answer.why, SAID_LENGTH_MAX) }
    default:
      return unreachable(answer)
  }
}

/** Whoever lost the claim writes nothing: another worker has told it again, or is about to. */
async function move(
  world: WebhookWorld,
  delivery: DueDelivery,
  write: (tx: Sql) => Promise<void>,
): Promise<void> {
  await world.db.transaction(async (tx) => {
    if (!(await lockLine(tx, delivery))) return
    await write(tx)
    await freeLine(tx, delivery)
  })
}

async function settle(
  world: WebhookWorld,
  tx: Sql,
  delivery: DueDelivery,
  { answer, end, nowMs }: { answer: WebhookAnswer; end: AttemptEnd; nowMs: InstantMs },
): Promise<void> {
  const isDelivered = answer.kind === 'answered' && answer.status >= 200 && answer.status < 300
  const failures = delivery.failures + (isDelivered ? 0 : 1)
  if (isDelivered) {
    return setDelivery(tx, delivery, { state: 'delivered', failures, dueAtMs: nowMs, nowMs })
  }
  const isGone = answer.kind === 'answered' && answer.status === GONE
  if (isGone) {
    await setDelivery(tx, delivery, { state: 'cancelled', failures, dueAtMs: nowMs, nowMs })
    await cancelWaiting(tx, delivery, nowMs)
    return close(world, tx, delivery)
  }
  const waitMs = nextAttemptInMs(failures, world.webhooks.chance())
  if (waitMs !== null) {
    return setDelivery(tx, delivery, { state: 'waiting', failures, dueAtMs: nowMs + waitMs, nowMs })
  }
  await setDelivery(tx, delivery, { state: 'exhausted', failures, dueAtMs: nowMs, nowMs })
  world.log.warn({ ...logged(delivery), said: end.said }, 'a webhook was given up')
  await world.webhooks.tellExhausted(tx, {
    orderId: delivery.orderId,
    accountId: delivery.accountId,
    url: delivery.url,
    host: delivery.host,
    endpoint: delivery.receiver === CALLBACK ? null : delivery.receiver,
    lastAnswer: end.status === null ? end.said : `HTTP ${end.status}`,
    nowMs,
  })
}

/** A `callback_url` is one order's; an endpoint was told of all, and its owner may not know that it is not any more. */
async function close(world: WebhookWorld, tx: Sql, delivery: DueDelivery): Promise<void> {
  const { orderId, accountId, url, receiver: endpoint } = delivery
  const nowMs = world.clock.nowMs()
  world.log.warn(logged(delivery), 'a receiver of webhooks wants no more (410)')
  if (endpoint === CALLBACK) return closeLine(tx, delivery, nowMs)
  const isNews = await disableGoneEndpoint(tx, endpoint, world.clock.wallMs())
  if (isNews) await world.webhooks.tellDisabled(tx, { orderId, accountId, url, endpoint, nowMs })
}

function logged({ orderId, receiver, sequence, host }: DueDelivery): object {
  return { order: orderId, receiver, sequence, host }
}
