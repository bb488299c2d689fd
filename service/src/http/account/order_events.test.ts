import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { soon } from '../../../test/harness/eventually.ts'
import { systemClock } from '../../clock.ts'
import { defaultPolicy } from '../../engine/default_policy.ts'
import { type FeedEvent, type Follower, openFeed } from '../../engine/notify/feed.ts'
import { closerOf } from '../close_server.ts'
import { STREAMS_PER_TOKEN } from '../limits/seats.ts'
import type { HttpParts } from '../parts.ts'
import { fakeDesk, ORDER_ID, ORDER_TOKEN, orderView } from '../testing/fake_desk.ts'
import { fullKey, type Harness, signedHeaders, startHttp } from '../testing/harness.ts'

/**
 * What: whoever follows an order and does not take what is told costs one connection, and no more than that.
 * How: the real server, a feed that the test speaks through, clients that ask for a stream on a connection whose answer
 * before never comes, so that nothing of the stream can be sent; the patience of the server is cut to a moment.
 */
const TARGET = `/v1/order/${ORDER_ID}/events`
const BLOCKED = 'GET /v1/rate?from=BTC&to=USDT&amount=1 HTTP/1.1\r\nHost: x\r\n\r\n'
const CLIENT_GONE = 'read ECONNRESET'

const done: FeedEvent = {
  orderId: ORDER_ID,
  accountId: 'account-1',
  callbackUrl: null,
  sequence: 5,
  previousStatus: 'WITHDRAW',
  status: 'DONE',
  snapshot: { ...orderView, status: 'DONE', completed_at: 1_790_000_100_000, withdraw_tx_hash: 'aa' },
  atMs: 1_790_000_100_000,
}

const { sleep, ...time } = systemClock()
const hastyClock = {
  ...time,
  sleep: (durationMs: number, signal?: AbortSignal) => sleep(Math.min(durationMs, 20), signal),
}

let http: Harness | undefined
afterEach(async () => {
  http?.app.server.closeAllConnections()
  await http?.close()
})

/** One stream of a caller at a time, unless told; what was before it on the connection is never answered. */
async function serve(
  since: () => Promise<readonly FeedEvent[]> = async () => [],
  parts: Partial<HttpParts> = {},
  streamsPerCaller = 1,
) {
  const followers = new Set<Follower>()
  const responses: ServerResponse[] = []
  const server = await startHttp({
    desk: fakeDesk({ rate: () => new Promise(() => {}) }),
    limits: { streamsPerCaller },
    parts: {
      clock: hastyClock,
      feed: {
        since,
        follow: (follower) => {
          followers.add(follower)
          return () => followers.delete(follower)
        },
        close: async () => {},
      },
      ...parts,
    },
  })
  http = server
  server.app.server.on('request', (_request, response) => responses.push(response))
  const ask = async (text: string): Promise<Socket> => {
    const socket = connect(Number.parseInt(new URL(server.base).port, 10), '127.0.0.1')
    await once(socket, 'connect')
    socket.on('error', ({ message }) => expect(message).toBe(CLIENT_GONE))
    socket.resume()
    socket.write(text)
    return socket
  }
  return { server, followers, responses, ask }
}

function streamOf(method = 'GET'): string {
  return `${method} ${TARGET} HTTP/1.1\r\nHost: x\r\nX-ORDER-TOKEN: ${ORDER_TOKEN}\r\n\r\n`
}

async function statusOfAnother({ base }: Harness): Promise<number> {
  const abort = new AbortController()
  const { status } = await fetch(base + TARGET, {
    headers: { 'X-ORDER-TOKEN': ORDER_TOKEN },
    signal: abort.signal,
  })
  abort.abort()
  return status
}

async function only(followers: ReadonlySet<Follower>): Promise<Follower> {
  await soon(() => expect(followers.size).toBe(1))
  return [...followers][0] ?? expect.unreachable()
}

const endings: [string, (follower: Follower) => void][] = [
  ['its order ends', (follower) => follower.tell(done)],
  ['it has lasted long enough', (follower) => follower.end()],
]

test.each(endings)(
  'when %s, a stream whose end nobody takes is told nothing more and is cut',
  async (_, end) => {
    const { server, followers, ask } = await serve()
    const socket = await ask(BLOCKED + streamOf())
    const follower = await only(followers)
    expect(await statusOfAnother(server)).toBe(429)
    end(follower)
    expect(followers.size).toBe(0)
    // Whoever is about to tell something may not know yet.
    follower.beat()
    follower.tell(done)
    follower.end()
    await once(socket, 'close')
    await soon(async () => expect(await statusOfAnother(server)).toBe(200))
  },
)

test.each(['GET', 'HEAD'])(
  'a %s that is answered at once and not taken gives its seat back',
  async (method) => {
    const since = vi.fn(async () => [done])
    const { server, followers, ask } = await serve(since)
    const socket = await ask(BLOCKED + streamOf(method))
    await once(socket, 'close')
    expect(since).toHaveBeenCalledOnce()
    expect(followers.size).toBe(0)
    expect(await statusOfAnother(server)).toBe(200)
  },
)

test('who lets too much lie is cut off, also behind another answer', async () => {
  const { followers, ask } = await serve()
  const socket = await ask(BLOCKED + streamOf())
  const follower = await only(followers)
  const pending = {
    ...done,
    status: 'PENDING' as const,
    snapshot: { ...orderView, status: 'PENDING' as const },
  }
  for (let sequence = 1; sequence < 500; sequence += 1) follower.tell({ ...pending, sequence })
  await once(socket, 'close')
  await soon(() => expect(followers.size).toBe(0))
})

test('whoever follows by a token has the seats of a network, not of each of its addresses', async () => {
  const server = await startHttp({ limits: { trustedProxies: ['127.0.0.1'], streamsPerCaller: 1 } })
  http = server
  const abort = new AbortController()
  const from = async (address: string) => {
    const headers = { 'X-ORDER-TOKEN': ORDER_TOKEN, 'X-Forwarded-For': address }
    return (await fetch(server.base + TARGET, { headers, signal: abort.signal })).status
  }
  const statuses = []
  for (const address of ['2001:db8:0:1::1', '2001:db8:0:1::2', '2001:db8:0:2::1', '192.0.2.1', '192.0.2.2'])
    statuses.push(await from(address))
  expect(statuses).toEqual([200, 429, 200, 200, 200])
  abort.abort()
})

test('what was missed is told at once, and followed from there', async () => {
  const missed = [2, 3].map(
    (sequence): FeedEvent => ({ ...done, sequence, status: 'PENDING', snapshot: orderView }),
  )
  const { followers, ask } = await serve(async () => missed)
  await ask(streamOf())
  expect((await only(followers)).after).toBe(3)
})

test('an order that is followed by its token has so many seats wherever they ask from, and its account has others', async () => {
  const server = await startHttp({ limits: { trustedProxies: ['127.0.0.1'] } })
  http = server
  const follow = async (headers: Readonly<Record<string, string>>) => {
    const abort = new AbortController()
    const { status } = await fetch(server.base + TARGET, { headers, signal: abort.signal })
    return { status, leave: () => abort.abort() }
  }
  const fromNetwork = (network: number) =>
    follow({ 'X-ORDER-TOKEN': ORDER_TOKEN, 'X-Forwarded-For': `2001:db8:0:${network}::1` })
  const streams = []
  for (let network = 0; network < STREAMS_PER_TOKEN; network += 1) streams.push(await fromNetwork(network))
  expect(streams.map(({ status }) => status)).toEqual(new Array(STREAMS_PER_TOKEN).fill(200))
  expect((await fromNetwork(STREAMS_PER_TOKEN)).status).toBe(429)
  expect((await follow(signedHeaders('GET', TARGET, '', {}))).status).toBe(200)
  streams[0]?.leave()
  await soon(async () => expect((await fromNetwork(STREAMS_PER_TOKEN)).status).toBe(200))
})

test.each([
  ['that are', ''],
  ['with a tunnel asked for behind them, that are', 'CONNECT elsewhere.example:443 HTTP/1.1\r\n\r\n'],
])('streams behind one another, %s left together, give all their seats back', async (_, last) => {
  const { server, followers, ask } = await serve(undefined, {}, 3)
  const socket = await ask(streamOf() + streamOf() + streamOf() + last)
  await soon(() => expect(followers.size).toBe(3))
  expect(await statusOfAnother(server)).toBe(429)
  socket.end()
  await soon(() => expect(followers.size).toBe(0))
  await ask(streamOf() + streamOf() + streamOf())
  await soon(() => expect(followers.size, 'there are as many seats again').toBe(3))
})

test('an answer that fails costs its connection, not the process', async () => {
  const { followers, responses, ask } = await serve()
  const socket = await ask(streamOf())
  await only(followers)
  responses[0]?.emit('error', new Error('it could not be written'))
  await once(socket, 'close')
  await soon(() => expect(followers.size).toBe(0))
})

test.each([
  ['a stream', streamOf()],
  ['one that waits before a tunnel', `${BLOCKED}${streamOf()}CONNECT elsewhere.example:443 HTTP/1.1\r\n\r\n`],
])('who leaves while the events are read for %s is not followed, and keeps no seat', async (_, text) => {
  const asked = Promise.withResolvers<void>()
  const events = Promise.withResolvers<readonly FeedEvent[]>()
  const { server, followers, responses, ask } = await serve(() => {
    asked.resolve()
    return events.promise
  })
  const socket = await ask(text)
  await asked.promise
  socket.destroy()
  await soon(() => expect(responses[0]?.destroyed).toBe(true))
  events.resolve([])
  await soon(() => expect(server.logText()).toContain('"route":"/v1/order/:order_id/events"'))
  expect(followers.size).toBe(0)
  expect(await statusOfAnother(server)).toBe(200)
})

test('a stream that is taken leaves its connection to the next request', async () => {
  const { server, followers, ask } = await serve()
  const socket = await ask(streamOf())
  let text = ''
  socket.on('data', (part) => {
    text += part
  })
  const follower = await only(followers)
  follower.tell(done)
  await soon(() => expect(text).toMatch(/"status":"DONE"[\s\S]*\r\n0\r\n\r\n$/))
  expect(text, 'it is followed by its token').toContain('"callback_url":null')
  expect(await statusOfAnother(server)).toBe(200)
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await once(socket, 'close')
  expect(text).toContain('{"status":"ok"}')
})

test.each(['instead of an event', 'after a beat'])(
  'who asked with a key that was revoked is let go %s',
  async (what) => {
    let key: typeof fullKey | null = fullKey
    let uses = 0
    const noteUse = () => {
      uses += 1
    }
    const { server, followers } = await serve(undefined, { apiKeys: { find: async () => key, noteUse } })
    const answer = await fetch(server.base + TARGET, { headers: signedHeaders('GET', TARGET, '', {}) })
    const follower = await only(followers)
    const event = (sequence: number): FeedEvent => ({ ...done, status: 'PENDING', sequence })
    let text = ''
    const ended = (async () => {
      for await (const part of answer.body ?? expect.unreachable()) text += Buffer.from(part).toString()
    })()
    follower.tell(event(1))
    await soon(() => expect(text).toMatch(/^retry: 2000\n\nid: 1\n/))
    follower.beat()
    follower.tell(event(2))
    await soon(() => expect(text).toMatch(/^retry: 2000\n\nid: 1\n[\s\S]*\n\n:\n\nid: 2\n/))
    expect(text).toContain(`"callback_url":"${orderView.callback_url}"`)
    key = null
    // The beat itself says nothing of the order.
    if (what === 'after a beat') follower.beat()
    else follower.tell(event(3))
    await ended
    expect(text).not.toContain('id: 3')
    expect(uses, 'the request, and each time that something was told').toBe(4)
    expect(followers.size).toBe(0)
  },
)

test('a key that cannot be asked for ends no stream and costs it no beat, until there is something to tell', async () => {
  let isAway = false
  const find = async () => (isAway ? Promise.reject(new Error('the database is away')) : fullKey)
  const { server, followers } = await serve(undefined, { apiKeys: { find, noteUse: () => {} } })
  const answer = await fetch(server.base + TARGET, { headers: signedHeaders('GET', TARGET, '', {}) })
  const follower = await only(followers)
  isAway = true
  follower.beat()
  await systemClock().endOfTurn()
  expect(followers.size).toBe(1)
  isAway = false
  follower.beat()
  follower.tell(done)
  expect(await answer.text()).toMatch(/^retry: 2000\n\n:\n\n:\n\nid: 5\n/)
})

test('a beat does not wait for the key that is asked for', async () => {
  const answers = [Promise.resolve(fullKey), new Promise<null>(() => {})]
  const find = () => answers.shift() ?? expect.unreachable()
  const { server, followers } = await serve(undefined, { apiKeys: { find, noteUse: () => {} } })
  const { body } = await fetch(server.base + TARGET, { headers: signedHeaders('GET', TARGET, '', {}) })
  const follower = await only(followers)
  follower.beat()
  let text = ''
  for await (const part of body ?? expect.unreachable()) {
    text += Buffer.from(part).toString()
    if (text === 'retry: 2000\n\n:\n\n') break
  }
})

test('an event that may not be told is not passed over: the stream ends before it', async () => {
  const keys = { find: async () => fullKey }
  const { server, followers } = await serve(undefined, {
    apiKeys: { find: () => keys.find(), noteUse: () => {} },
  })
  const answer = await fetch(server.base + TARGET, { headers: signedHeaders('GET', TARGET, '', {}) })
  const follower = await only(followers)
  keys.find = () => Promise.reject(new Error('the database is away'))
  follower.tell(done)
  expect(await answer.text()).toBe('retry: 2000\n\n')
  expect(followers.size).toBe(0)
})

test('a stream that is opened while the server closes does not keep it open', async () => {
  const clock = systemClock()
  const log = { info: () => {}, warn: () => {}, error: () => {} }
  const query = vi.fn(async () => [])
  const feed = openFeed({ db: { query }, clock, log, policy: defaultPolicy } as never)
  const [told, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const close = async () => {
    await feed.close()
    told.resolve()
    // As in the service: the last ones are still answered.
    await answered.promise
  }
  const server = await startHttp({ parts: { feed: { ...feed, close } } })
  const closing = closerOf(server.app, clock)()
  await told.promise
  const answer = await fetch(server.base + TARGET, { headers: { 'X-ORDER-TOKEN': ORDER_TOKEN } })
  expect([answer.status, await answer.text()]).toEqual([200, 'retry: 2000\n\n'])
  answered.resolve()
  await closing
  expect(query, 'nobody looks for whom has been let go').toHaveBeenCalledOnce()
})

test('what a proxy has of a stream it hands on at once, and keeps nothing of it', async () => {
  const { server } = await serve(async () => [done])
  const { headers } = await server.request('GET', TARGET, { headers: { 'X-ORDER-TOKEN': ORDER_TOKEN } })
  expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect([headers.get('x-accel-buffering'), headers.get('cache-control')]).toEqual(['no', 'no-store'])
})

test('an account whose streams all come back at once creates orders meanwhile', async () => {
  const server = await startHttp({ limits: { unitsPerMinute: 60, createUnits: 50, burstPerSecond: 20 } })
  http = server
  const abort = new AbortController()
  const open = async () => {
    const headers = signedHeaders('GET', TARGET, '')
    return fetch(server.base + TARGET, { headers, signal: abort.signal })
  }
  const streams = await Promise.all(Array.from({ length: 50 }, open))
  expect(new Set(streams.map(({ status }) => status))).toEqual(new Set([200]))
  expect(streams[0]?.headers.get('ratelimit')).toMatch(/^"stream-minute";r=/)
  const created = await server.signed('POST', '/v1/order/create', '{}')
  expect([created.status, created.headers.get('ratelimit')]).toEqual([
    400,
    expect.stringMatching(/^"minute";r=10;/),
  ])
  abort.abort()
})
