import { afterEach, expect, test, vi } from 'vitest'
import { CambistError } from './cambist_error.ts'
import { createClient } from './client.ts'
import type { FollowOptions } from './follow_order.ts'

/**
 * What: whoever follows an order hears of it to its end, whatever becomes of the lines and of the service meanwhile.
 * How: a fetch of the test's own and a clock that it moves, because the client's patience is longer than a test's.
 */
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

type Line = (signal: AbortSignal) => Response

const STATUS_CHANGED = 'order.status_changed'

/** As the service writes it (service/src/http/account/order_events.ts); without `data`, what else an event may be. */
const message = (id: number, type: string, data?: string) =>
  `id: ${id}\nevent: ${type}\n${data === undefined ? '' : `data: ${data}\n`}\n`

const events = (...told: readonly (readonly [sequence: number, status: string])[]) =>
  told
    .map(([sequence, status]) =>
      message(sequence, STATUS_CHANGED, JSON.stringify({ type: STATUS_CHANGED, data: { sequence, status } })),
    )
    .join('')

const EVENT_STREAM = { headers: { 'Content-Type': 'text/event-stream; charset=utf-8' } }

/** Says something and then nothing more; `end` says that this was all. */
function stream(text: string, end: 'closed' | 'silent', onCancel = () => {}): Line {
  return () =>
    new Response(
      new ReadableStream({
        start: (controller) => {
          controller.enqueue(new TextEncoder().encode(text))
          if (end === 'closed') controller.close()
        },
        cancel: onCancel,
      }),
      EVENT_STREAM,
    )
}

const away: Line = () => {
  throw new TypeError('fetch failed')
}

const problem =
  (status: number, code: string, headers: Record<string, string> = {}): Line =>
  () =>
    Response.json({ error: true, error_code: code, message: 'no' }, { status, headers })

/** Each request gets the next line, and the last one again. */
function follow(lines: readonly Line[], options: FollowOptions = {}) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const lastIds: (string | null)[] = []
  const client = createClient({
    baseUrl: 'http://cambist.test',
    fetch: async (_url, init) => {
      const line = lines[Math.min(lastIds.length, lines.length - 1)]
      lastIds.push(new Headers(init?.headers).get('last-event-id'))
      return line?.(init?.signal ?? new AbortController().signal) ?? expect.unreachable()
    },
  })
  const heard: number[] = []
  const following = (async () => {
    for await (const { data } of client.followOrder('CB1', { token: 't', ...options }))
      heard.push(data.sequence)
  })()
  return { heard, following, lastIds }
}

test('a line that has gone silent is let go, and the rest is fetched on another', async () => {
  const cancelled = vi.fn()
  const { heard, following, lastIds } = follow([
    stream(events([1, 'NEW']), 'silent', cancelled),
    stream(events([2, 'DONE']), 'closed'),
  ])
  await vi.advanceTimersByTimeAsync(40_000)
  expect([heard, lastIds], 'the service says something every 15 s').toEqual([[1], ['0']])
  await vi.advanceTimersByTimeAsync(10_000)
  await following
  expect([heard, lastIds]).toEqual([
    [1, 2],
    ['0', '1'],
  ])
  expect(cancelled).toHaveBeenCalledOnce()
})

test('a comment now and then keeps a line on which nothing happens', async () => {
  let say = (_text: string) => {}
  const quiet: Line = () =>
    new Response(
      new ReadableStream({
        start: (controller) => {
          say = (text) => controller.enqueue(new TextEncoder().encode(text))
        },
      }),
      EVENT_STREAM,
    )
  const { heard, following, lastIds } = follow([quiet])
  for (let beats = 0; beats < 20; beats += 1) {
    await vi.advanceTimersByTimeAsync(15_000)
    say(':\n\n')
  }
  say(events([1, 'DONE']))
  await following
  expect([heard, lastIds]).toEqual([[1], ['0']])
})

test('a service that is away for minutes is come back to', async () => {
  const minutesAway = Array.from({ length: 200 }, () => away)
  const { heard, following, lastIds } = follow([
    stream(events([1, 'NEW'], [2, 'PENDING']), 'closed'),
    ...minutesAway,
    problem(503, 'MAINTENANCE', { 'Retry-After': '3600' }),
    stream(events([3, 'DONE']), 'closed'),
  ])
  await vi.advanceTimersByTimeAsync(600_000)
  await following
  expect(heard).toEqual([1, 2, 3])
  expect(new Set(lastIds.slice(1))).toEqual(new Set(['2']))
})

test('whoever loses a line together with many others comes back apart from them', async () => {
  const all = Array.from({ length: 60 }, () =>
    follow([stream(events([1, 'NEW']), 'closed'), stream(events([2, 'DONE']), 'closed')]),
  )
  const back = () => all.filter(({ heard }) => heard.length === 2).length
  await vi.advanceTimersByTimeAsync(499)
  expect(back()).toBe(0)
  await vi.advanceTimersByTimeAsync(751)
  expect(back()).toBeGreaterThan(0)
  expect(back()).toBeLessThan(60)
  await vi.advanceTimersByTimeAsync(750)
  expect(back()).toBe(60)
})

test.each([
  ['is away', away],
  ['refuses', problem(429, 'RATE_LIMITED')],
])('a service that %s for long is asked less often', async (_what, line) => {
  vi.spyOn(Math, 'random').mockReturnValue(0.99)
  const stop = new AbortController()
  const { following, lastIds } = follow([stream(events([1, 'NEW']), 'closed'), line], { signal: stop.signal })
  const ended = expect(following).rejects.toBe('enough')
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lastIds.length).toBeLessThan(40)
  stop.abort('enough')
  await ended
})

test('who is asked to wait waits so long, and not as long as all the others', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0)
  const { heard, following } = follow([
    stream(events([1, 'NEW']), 'closed'),
    problem(503, 'MAINTENANCE', { 'Retry-After': '3600' }),
    stream(events([2, 'DONE']), 'closed'),
  ])
  await vi.advanceTimersByTimeAsync(500 + 60_000)
  expect(heard).toEqual([1])
  await vi.advanceTimersByTimeAsync(1_000)
  await following
  expect(heard).toEqual([1, 2])
})

test('a service that answers with faults for minutes is come back to', async () => {
  const fault = problem(500, 'INTERNAL_ERROR')
  const { heard, following } = follow([
    fault,
    stream(events([1, 'NEW']), 'closed'),
    ...Array.from({ length: 100 }, () => fault),
    stream(events([2, 'DONE']), 'closed'),
  ])
  await vi.advanceTimersByTimeAsync(600_000)
  await following
  expect(heard).toEqual([1, 2])
})

test('who comes back and is told that the request did not arrive in time comes back again', async () => {
  const { heard, following, lastIds } = follow([
    stream(events([1, 'NEW']), 'closed'),
    ...Array.from({ length: 10 }, () => problem(408, 'REQUEST_TIMEOUT')),
    stream(events([2, 'DONE']), 'closed'),
  ])
  await vi.advanceTimersByTimeAsync(600_000)
  await following
  expect(heard).toEqual([1, 2])
  expect(lastIds).toHaveLength(12)
})

test('a service that was never there is told, and so is a refusal', async () => {
  const never = follow([away])
  const told = expect(never.following).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  await vi.advanceTimersByTimeAsync(10_000)
  await told
  const refused = follow([stream(events([1, 'NEW']), 'closed'), problem(404, 'ORDER_NOT_FOUND')])
  const said = expect(refused.following).rejects.toBeInstanceOf(CambistError)
  await vi.advanceTimersByTimeAsync(10_000)
  await said
  expect([refused.heard, refused.lastIds]).toEqual([[1], ['0', '1']])
})

const shop: Line = () => new Response('<html>a shop</html>', { headers: { 'Content-Type': 'text/html' } })

test('what answers without being the service is told at the beginning', async () => {
  const { heard, following, lastIds } = follow([shop])
  const told = expect(following).rejects.toMatchObject({ code: 'UNEXPECTED_ANSWER', status: 200 })
  await vi.advanceTimersByTimeAsync(10_000)
  await told
  expect([heard, lastIds]).toEqual([[], ['0']])
})

test('what answers for a while in place of the service is waited out', async () => {
  const gone: Line = () => new Response('default backend', { status: 404 })
  const { heard, following, lastIds } = follow([
    stream(events([1, 'NEW']), 'closed'),
    ...Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? shop : gone)),
    stream(events([2, 'DONE']), 'closed'),
  ])
  await vi.advanceTimersByTimeAsync(600_000)
  await following
  expect(heard).toEqual([1, 2])
  expect(lastIds).toHaveLength(22)
})

test.each([401, 403])('a proxy that refuses whoever follows is not waited out: %i', async (status) => {
  const { heard, following, lastIds } = follow([
    stream(events([1, 'NEW']), 'closed'),
    () => new Response('<html>go away</html>', { status }),
  ])
  const told = expect(following).rejects.toMatchObject({ code: 'UNEXPECTED_ANSWER', status })
  await vi.advanceTimersByTimeAsync(10_000)
  await told
  expect([heard, lastIds]).toEqual([[1], ['0', '1']])
})

test("the caller's signal ends the waiting for a service that is away", async () => {
  const stop = new AbortController()
  const reason = new Error('enough')
  const { heard, following } = follow([stream(events([1, 'NEW']), 'closed'), away], { signal: stop.signal })
  const ended = expect(following).rejects.toBe(reason)
  await vi.advanceTimersByTimeAsync(120_000)
  stop.abort(reason)
  await ended
  expect(heard).toEqual([1])
})

test('events of other types are passed over, and are not asked for again', async () => {
  const { heard, following, lastIds } = follow([
    stream(
      events([1, 'NEW']) +
        message(2, 'order.note_added', JSON.stringify({ type: 'order.note_added', data: {} })),
      'closed',
    ),
    stream(message(3, 'order.note_added', 'no JSON'), 'closed'),
    stream(message(4, STATUS_CHANGED, JSON.stringify({ type: 'order.note_added', data: {} })), 'closed'),
    stream(events([5, 'DONE']), 'closed'),
  ])
  await vi.advanceTimersByTimeAsync(10_000)
  await following
  expect([heard, lastIds]).toEqual([
    [1, 5],
    ['0', '2', '3', '4'],
  ])
})

test.each([
  ['no data', undefined],
  ['no order in it', JSON.stringify({ type: STATUS_CHANGED })],
  ['nothing as its order', JSON.stringify({ type: STATUS_CHANGED, data: null })],
  ['nothing at all', 'null'],
])('an event with %s is passed over, and is not asked for again', async (_what, data) => {
  const { heard, following, lastIds } = follow([
    stream(events([1, 'NEW']) + message(2, STATUS_CHANGED, data), 'closed'),
    stream(events([3, 'DONE']), 'closed'),
  ])
  await vi.advanceTimersByTimeAsync(10_000)
  await following
  expect([heard, lastIds]).toEqual([
    [1, 3],
    ['0', '2'],
  ])
})

test('what is no id of the service is not sent to it', async () => {
  const { heard, following, lastIds } = follow([
    stream(`${events([1, 'NEW'])}id: undefined\nevent: order.note_added\n\nid:\n\n`, 'closed'),
    stream(events([2, 'DONE']), 'closed'),
  ])
  await vi.advanceTimersByTimeAsync(10_000)
  await following
  expect([heard, lastIds]).toEqual([
    [1, 2],
    ['0', '1'],
  ])
})

test('an event that cannot be read is told, because it would come again for ever', async () => {
  const { heard, following } = follow([
    stream(events([1, 'NEW']) + message(2, STATUS_CHANGED, '{'), 'closed'),
  ])
  const told = expect(following).rejects.toMatchObject({ code: 'UNEXPECTED_ANSWER', status: 200 })
  await vi.advanceTimersByTimeAsync(10_000)
  await told
  expect(heard).toEqual([1])
})

test('only a line that breaks is come back from: a fault in the program is told', async () => {
  let asked = 0
  const client = createClient({
    baseUrl: 'http://cambist.test',
    fetch: async () => {
      asked += 1
      return stream(events([1, 'NEW'], [2, 'DONE']), 'closed')(new AbortController().signal)
    },
  })
  const following = client.followOrder('CB1', { token: 't' })
  await following.next()
  const fault = new TypeError('a fault in the program')
  await expect(following.throw(fault)).rejects.toBe(fault)
  expect(asked).toBe(1)
})
