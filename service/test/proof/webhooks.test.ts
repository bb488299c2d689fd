import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { webhookChannel } from '../../src/channels/webhook/webhook_channel.ts'
import { writeOrderEvent } from '../../src/http/account/order_event.ts'
import { orderView } from '../../src/http/testing/fake_desk.ts'
import { type Chance, chanceFrom, dealer } from '../harness/chance.ts'
import { eventually } from '../harness/eventually.ts'
import { prove } from './prove.ts'
import { findWrong } from './webhooks/check.ts'
import { type Behaviour, behaviours, type Receiver, startReceiver } from './webhooks/receivers.ts'
import { HISTORY, openStage, type Stage } from './webhooks/stage.ts'

/**
 * What: every event reaches its receiver, in order for each order, signed, whatever receivers do and however often
 * notifiers are killed; and the checks that say so notice a notifier that loses events.
 * How: a real PostgreSQL, real servers on this machine, notifiers in processes that are killed with SIGKILL; the events
 * are written as `apply` writes them, and the service's clock runs 600 times as fast as ours.
 */
type Expected = Map<string, { readonly url: string; events: number }>

async function onStage<Value>(
  of: readonly Behaviour[],
  run: (stage: Stage, receivers: readonly Receiver[]) => Promise<Value>,
): Promise<Value> {
  const stage = await openStage()
  const receivers = await Promise.all(of.map((behaviour) => startReceiver(behaviour, stage.secret)))
  try {
    return await run(stage, receivers)
  } finally {
    for (const receiver of receivers) receiver.stop()
    await stage.stop()
  }
}

/** Two notifiers, of which one is killed again and again and another one started; answers how many were. */
async function killRepeatedly(
  stage: Stage,
  isOver: () => boolean,
  chance: Chance,
  restMsMax: number,
): Promise<number> {
  const running: ChildProcess[] = [await stage.startNotifier(), await stage.startNotifier()]
  let kills = 0
  while (!isOver()) {
    await pause(chance.between(restMsMax / 5, restMsMax))
    const [killed] = running.splice(chance.below(running.length), 1)
    killed?.kill('SIGKILL')
    kills += 1
    running.push(await stage.startNotifier())
  }
  return kills
}

/** Everything that has happened has been told. */
async function allTold(stage: Stage, besides: string): Promise<void> {
  const [left] = await stage.rows<{ unrelayed: string; waiting: string; given_up: string }>(
    `SELECT (SELECT count(*) FROM orders WHERE relayed_sequence < sequence) AS unrelayed,
       (SELECT count(*) FROM webhook_deliveries d JOIN webhook_lines l USING (bucket, order_id, receiver)
        WHERE state = 'waiting' AND l.url <> $1) AS waiting,
       (SELECT count(*) FROM webhook_deliveries WHERE state IN ('exhausted', 'cancelled')) AS given_up`,
    [besides],
  )
  if (left?.unrelayed === '0' && left.waiting === '0' && left.given_up === '0') return
  throw new Error(JSON.stringify(left))
}

/** Of every hundred orders so many are told to each: what hangs keeps its places for long. */
const SHARES = {
  well: 25,
  again: 25,
  errors: 15,
  redirects: 12,
  resets: 12,
  drips: 5,
  hangs: 3,
  dead: 3,
} as const

prove('every event reaches its receiver, in order and signed, while notifiers are killed', async (proof) => {
  const orderCount = proof.sized({ short: 200, long: 4_000 })
  const chance = chanceFrom(proof.seed)
  await onStage(behaviours, async (stage, receivers) => {
    const urls = receivers.flatMap(({ url, behaviour }) =>
      Array.from({ length: SHARES[behaviour] }, () => url),
    )
    const deal = dealer(urls, chance)
    const given = Array.from({ length: orderCount }, deal)
    const orders = await stage.makeOrders(given)
    const expected: Expected = new Map(
      orders.map((id, index) => [id, { url: given[index] ?? '', events: 1 }]),
    )
    const dead = receivers.find(({ behaviour }) => behaviour === 'dead')
    const committed = new Map<string, number>()
    let isOver = false
    const killing = killRepeatedly(stage, () => isOver, chance, 4_000)
    try {
      const first = () => allTold(stage, dead?.url ?? '')
      await eventually('the first events are told', first, {
        timeoutMs: proof.sized({ short: 180_000, long: 600_000 }),
      })
      await live(stage, chance, orders, expected, committed, proof.sized({ short: 6, long: 4 }))
      const patience = { timeoutMs: proof.sized({ short: 360_000, long: 1_800_000 }) }
      await eventually('all others are told', () => allTold(stage, dead?.url ?? ''), patience)
      dead?.heal()
      await eventually('everybody is told', () => allTold(stage, ''), patience)
    } finally {
      isOver = true
    }
    const kills = await killing
    const wrong = findWrong(receivers, expected)
    if (wrong.length > 0)
      throw new Error(`${wrong.length} things are wrong:\n${wrong.slice(0, 20).join('\n')}`)
    if (kills < proof.sized({ short: 3, long: 30 })) throw new Error(`only ${kills} notifiers were killed`)
    const arrivals = receivers.flatMap((receiver) => receiver.arrivals)
    proof.figure(
      'events',
      [...expected.values()].reduce((sum, { events }) => sum + events, 0),
    )
    proof.figure('orders', orders.length)
    proof.figure('notifiers killed', kills)
    proof.figure('requests received', arrivals.length)
    proof.figure('signatures that did not verify', 0)
    proof.figure(
      'attempts by outcome',
      (
        await stage.rows<{ outcome: string; count: string }>(
          `SELECT coalesce(outcome, 'never noted') || coalesce(' ' || status, '') AS outcome, count(*) AS count
         FROM webhook_attempts GROUP BY 1 ORDER BY 2 DESC`,
        )
      )
        .map(({ outcome, count }) => `${count} × ${outcome}`)
        .join(', '),
    )
    const delays = delaysOf(receivers, committed)
    proof.figure('p50 from commit to a healthy receiver, ms', percentile(delays, 0.5))
    proof.figure('p95, ms', percentile(delays, 0.95))
  })
})

/** All orders go through their history, a few of them at a time, in an order by chance. */
async function live(
  stage: Stage,
  chance: Chance,
  orders: readonly string[],
  expected: Expected,
  committed: Map<string, number>,
  atOnce: number,
): Promise<void> {
  for (let sequence = 2; sequence <= HISTORY.length; sequence += 1) {
    const waiting = chance.shuffled(orders)
    while (waiting.length > 0) {
      const moved = waiting.splice(0, atOnce)
      const atWallMs = await stage.move(moved)
      for (const id of moved) {
        const order = expected.get(id)
        if (order !== undefined) order.events = sequence
        committed.set(`${id} ${sequence}`, atWallMs)
      }
      await pause(50)
    }
  }
}

/** From the commit to the first arrival, at receivers that answer well all the time. */
function delaysOf(receivers: readonly Receiver[], committed: ReadonlyMap<string, number>): number[] {
  const first = new Map<string, number>()
  for (const { behaviour, arrivals } of receivers) {
    if (behaviour !== 'well' && behaviour !== 'again') continue
    for (const { orderId, sequence, atWallMs } of arrivals) {
      const key = `${orderId} ${sequence}`
      const at = committed.get(key)
      if (at !== undefined && !first.has(key)) first.set(key, atWallMs - at)
    }
  }
  return [...first.values()].sort((left, right) => left - right)
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

prove('a notifier that notes events before it writes their rows is caught', async (proof) => {
  await onStage(['well'], async (stage, receivers) => {
    const [receiver] = receivers
    const orders = await stage.makeOrders(Array.from({ length: 40 }, () => receiver?.url ?? ''))
    const expected: Expected = new Map(orders.map((id) => [id, { url: receiver?.url ?? '', events: 1 }]))
    // It dies in between, with all events on its hands; the next one finds nothing to do.
    const dying = await stage.startNotifier('notes first and stands')
    await eventually('all are noted', async () => {
      const unnoted = await stage.rows('SELECT order_id FROM orders WHERE relayed_sequence < sequence')
      if (unnoted.length > 0) throw new Error(`${unnoted.length} are not`)
    })
    dying.kill('SIGKILL')
    await once(dying, 'exit')
    await stage.startNotifier('notes first')
    await stage.move(orders.slice(0, 20))
    for (const id of orders.slice(0, 20)) expected.set(id, { url: receiver?.url ?? '', events: 2 })
    await eventually('what was not lost is told', () => allTold(stage, ''))
    await eventually('it has arrived', () => {
      if ((receiver?.arrivals.length ?? 0) < 20) throw new Error('not yet')
    })
    const wrong = findWrong(receivers, expected)
    const lost = wrong.filter((what) => what.endsWith('1 never came'))
    proof.figure('events', 60)
    proof.figure('found to be lost', lost.length)
    if (lost.length !== 40)
      throw new Error(`of 40 lost events ${lost.length} were found:\n${wrong.join('\n')}`)
  })
})

/** Nothing of it comes from a database: whoever writes an event again, by whatever it knows then, is what is to be noticed. */
test('a receiver that is told the same event in other words notices it', async () => {
  const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
  const receiver = await startReceiver('well', secret)
  const limits = { connectMs: 5_000, allMs: 5_000 }
  const channel = webhookChannel({ loopbackAllowed: true, limits })
  const tell = async (atMs: number) => {
    const event = { sequence: 1, previousStatus: null, snapshot: orderView, atMs }
    const id = `evt_${orderView.order_id}_1`
    const body = writeOrderEvent(event)
    await channel.deliver({ url: receiver.url, id, body, secrets: [secret], atWallMs: Date.now() })
  }
  try {
    await tell(1)
    await tell(1)
    expect(receiver.wrong).toEqual([])
    await tell(2)
    expect(receiver.wrong).toEqual([`evt_${orderView.order_id}_1 came again with another body`])
    expect(receiver.arrivals).toHaveLength(3)
  } finally {
    await channel.close()
    receiver.stop()
  }
})
