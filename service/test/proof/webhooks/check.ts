import type { Receiver } from './receivers.ts'
import { HISTORY } from './stage.ts'

/** Everything that is wrong with what the receivers got; nothing when the claim holds. */
export function findWrong(
  receivers: readonly Receiver[],
  expected: ReadonlyMap<string, { readonly url: string; readonly events: number }>,
): string[] {
  const wrong = receivers.flatMap(({ behaviour, wrong }) => wrong.map((what) => `${behaviour}: ${what}`))
  for (const receiver of receivers) {
    const reached = new Map<string, number>()
    for (const { orderId, sequence, status, previousStatus } of receiver.arrivals) {
      const before = reached.get(orderId) ?? 0
      if (expected.get(orderId)?.url !== receiver.url) wrong.push(`${orderId} went to ${receiver.behaviour}`)
      if (sequence < before || sequence > before + 1)
        wrong.push(`${orderId}: ${sequence} came after ${before}`)
      reached.set(orderId, Math.max(before, sequence))
      const [previous = null, now] = [HISTORY[sequence - 2], HISTORY[sequence - 1]]
      if (status !== now || previousStatus !== previous) wrong.push(`${orderId}: ${sequence} is not frozen`)
    }
  }
  const accepted = new Set(
    receivers.flatMap(({ arrivals }) =>
      arrivals
        .filter(({ isAccepted }) => isAccepted)
        .map(({ orderId, sequence }) => `${orderId} ${sequence}`),
    ),
  )
  for (const [orderId, { events }] of expected) {
    for (let sequence = 1; sequence <= events; sequence += 1) {
      if (!accepted.has(`${orderId} ${sequence}`)) wrong.push(`${orderId}: ${sequence} never came`)
    }
  }
  return wrong
}
