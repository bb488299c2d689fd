import { createClient, type OrderEvent } from '@cambist/sdk'
import { expect, test } from 'vitest'
import { createOrder, expectPaidOut, payAndBury, quickPair } from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: an order is followed through its whole life, with its key and with its token, over lost connections; the stream
 * says what GET says, in the sequence of the event log, and ends when the order has.
 * How: the published client and bare HTTP against the real service on real chains.
 */
const given = useTestSandbox({ networks: ['ETH', 'BNB'] })

async function collect(events: AsyncGenerator<OrderEvent>): Promise<OrderEvent[]> {
  const all: OrderEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

const stepsOf = (events: readonly OrderEvent[]) =>
  events.map(({ data }) => [data.sequence, data.previous_status, data.status])

test('an order is followed from NEW to DONE by its key and by its token, and both are told the same', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair)
  const anonymous = createClient({ baseUrl: sandbox.baseUrl })
  const byKey = collect(sandbox.client.followOrder(order.order_id))
  const byToken = collect(anonymous.followOrder(order.short_id, { token: order.token }))
  await payAndBury(sandbox, order)
  const done = await expectPaidOut(sandbox, order)
  const events = await byKey
  expect(stepsOf(events)).toEqual([
    [1, null, 'NEW'],
    [2, 'NEW', 'PENDING'],
    [3, 'PENDING', 'EXCHANGE'],
    [4, 'EXCHANGE', 'WITHDRAW'],
    [5, 'WITHDRAW', 'DONE'],
  ])
  expect(await byToken).toEqual(events)
  const { sequence: _, previous_status: __, ...last } = events.at(-1)?.data ?? expect.unreachable()
  expect(last).toEqual(done)
  expect(events.at(-1)?.timestamp).toBe(done.completed_at)

  sandbox.log('who comes back gets the rest, and who has everything is told so')
  expect(stepsOf(await collect(sandbox.client.followOrder(order.order_id, { after: 3 })))).toEqual([
    [4, 'EXCHANGE', 'WITHDRAW'],
    [5, 'WITHDRAW', 'DONE'],
  ])
  expect(await collect(sandbox.client.followOrder(order.order_id, { after: 5 }))).toEqual([])
  const path = `${sandbox.baseUrl}/v1/order/${order.order_id}/events?token=${order.token}`
  const nothing = await fetch(path, { headers: { 'Last-Event-ID': '5' } })
  expect([nothing.status, await nothing.text()]).toEqual([204, ''])
})

test('a stream that is cut is taken up where it was, and nothing is told twice', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair)
  let cuts = 0
  /** Every connection breaks after its first event. */
  const cutting: typeof fetch = async (...request) => {
    const response = await fetch(...request)
    if (response.body === null) return response
    cuts += 1
    let isOver = false
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        if (isOver) return controller.error(new Error('the line is cut'))
        controller.enqueue(chunk)
        isOver = Buffer.from(chunk).includes('\ndata: ')
      },
    })
    return new Response(response.body.pipeThrough(cut), response)
  }
  const client = createClient({ baseUrl: sandbox.baseUrl, fetch: cutting })
  const following = collect(client.followOrder(order.order_id, { token: order.token }))
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
  expect((await following).map(({ data }) => data.sequence)).toEqual([1, 2, 3, 4, 5])
  expect(cuts).toBeGreaterThan(1)
})

test('what may not be followed is refused as GET refuses it', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair)
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${sandbox.baseUrl}/v1/order/${path}`, { headers })
    return [response.status, ((await response.json()) as { error_code: string }).error_code]
  }
  const token = { 'X-ORDER-TOKEN': order.token }
  expect(await ask(`${order.order_id}/events`)).toEqual([401, 'UNAUTHORIZED'])
  expect(await ask(`${order.order_id}/events?token=wrong`)).toEqual([404, 'ORDER_NOT_FOUND'])
  expect(await ask('CB0000000000000000/events', token)).toEqual([404, 'ORDER_NOT_FOUND'])
  for (const id of ['-1', 'x', '1.0', '9999999999']) {
    const refused = await ask(`${order.order_id}/events`, { ...token, 'Last-Event-ID': id })
    expect(refused).toEqual([400, 'INVALID_PARAMETER'])
  }
})

test('an open stream says at once what has happened, in the form of Server-Sent Events, and ends with the service', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair)
  const api = await sandbox.startAnother(['api'])
  const path = `/v1/order/${order.order_id}/events?token=${order.token}`
  const response = await fetch(`${api.origin}${path}`)
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(response.headers.get('access-control-allow-origin')).toBe('*')
  const reading = response.text()
  await api.stop()
  expect(await reading).toMatch(
    /^retry: 2000\n\nid: 1\nevent: order.status_changed\ndata: \{"type":"order.status_changed",[^\n]*"status":"NEW",[^\n]*\}\n\n$/,
  )
  const head = await fetch(`${sandbox.baseUrl}${path}`, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
})
