import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { isOrderEvent } from './order_event.ts'
import type { OrderStatus } from './types.ts'
import { type ReceivedWebhook, verifyWebhook, type WebhookRefused } from './verify_webhook.ts'

type Vector = {
  name: string
  secrets: string[]
  id: string
  timestamp: string
  body: string
  signature: string
}

const file = new URL('../../service/src/channels/webhook/webhook_vectors.json', import.meta.url)
const vectors = JSON.parse(readFileSync(file, 'utf8')) as readonly Vector[]

const received = ({ id, timestamp, body, signature, secrets }: Vector): ReceivedWebhook => ({
  headers: { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature },
  body,
  secret: secrets[0] ?? '',
  nowMs: Number(timestamp) * 1_000,
})

const [first, second] = vectors as readonly [Vector, Vector]

async function refusalOf(webhook: ReceivedWebhook): Promise<string> {
  return verifyWebhook(webhook).then(
    () => 'accepted',
    (error: WebhookRefused) => error.code,
  )
}

test.each(vectors)('$name verifies, as text, as bytes and with either secret', async (vector) => {
  const webhook = received(vector)
  const expected = JSON.parse(vector.body)
  expect(await verifyWebhook(webhook)).toEqual(expected)
  expect(await verifyWebhook({ ...webhook, body: new TextEncoder().encode(vector.body) })).toEqual(expected)
  expect(
    await verifyWebhook({ ...webhook, headers: new Headers(webhook.headers as Record<string, string>) }),
  ).toEqual(expected)
  for (const secret of vector.secrets) expect(await verifyWebhook({ ...webhook, secret })).toEqual(expected)
  const other = `whsec_${btoa('somebody else')}`
  expect(await verifyWebhook({ ...webhook, secret: [other, ...vector.secrets] })).toEqual(expected)
  expect(await refusalOf({ ...webhook, secret: other })).toBe('SIGNATURE_MISMATCH')
})

test('an order is read of an event only after its type was asked', async () => {
  const event = await verifyWebhook(received(first))
  // @ts-expect-error: a later service may send types that carry no order.
  const unasked: unknown = event.data.status
  const asked: OrderStatus | null = isOrderEvent(event) ? event.data.status : null
  expect([asked, unasked]).toEqual([JSON.parse(first.body).data.status, asked])
  expect(asked).not.toBeNull()
  for (const other of [
    { ...event, type: 'order.note_added' },
    { type: event.type },
    { ...event, data: null },
    null,
  ])
    expect(isOrderEvent(other)).toBe(false)
})

test('the headers may be those of another fetch than the one that is built in, as some servers have their own', async () => {
  class OtherHeaders extends Map<string, string> {
    override get(name: string) {
      return super.get(name.toLowerCase())
    }
  }
  const webhook = received(first)
  const headers = new OtherHeaders(Object.entries(webhook.headers as Record<string, string>))
  expect(await refusalOf({ ...webhook, headers: headers as unknown as Headers })).toBe('accepted')
  expect(await refusalOf({ ...webhook, headers: new OtherHeaders() as unknown as Headers })).toBe(
    'HEADERS_MISSING',
  )
})

test.each(['', 'whsec_', 'whsec_!!'])(
  '%j is no secret, which is told whatever stands beside it',
  async (none) => {
    const webhook = received(first)
    for (const secret of [none, [none, ...first.secrets], [...first.secrets, none]])
      await expect(verifyWebhook({ ...webhook, secret })).rejects.toThrow(TypeError)
  },
)

test('one of several signatures is enough, and other versions are passed over', async () => {
  const webhook = received(first)
  const sign = (signature: string) => ({
    ...webhook,
    headers: { ...webhook.headers, 'webhook-signature': signature } as Record<string, string>,
  })
  expect(await refusalOf(sign(`v1a,xyz ${first.signature}`))).toBe('accepted')
  expect(await refusalOf(sign(second.signature))).toBe('accepted')
  for (const wrong of [
    first.signature.replace('v1,', 'v2,'),
    'v1,',
    'v1',
    'v1,%%%',
    `${first.signature}A`,
    'x',
  ]) {
    expect(await refusalOf(sign(wrong)), wrong).toBe('SIGNATURE_MISMATCH')
  }
})

test('anything changed is refused: a byte of the body, the id, the time', async () => {
  const webhook = received(first)
  const { body, id } = first
  for (let index = 0; index < body.length; index += 7) {
    const changed = `${body.slice(0, index)}${body[index] === 'x' ? 'y' : 'x'}${body.slice(index + 1)}`
    expect(await refusalOf({ ...webhook, body: changed })).toBe('SIGNATURE_MISMATCH')
  }
  const headers = webhook.headers as Record<string, string>
  expect(await refusalOf({ ...webhook, headers: { ...headers, 'webhook-id': `${id}1` } })).toBe(
    'SIGNATURE_MISMATCH',
  )
  const later = String(Number(first.timestamp) + 1)
  expect(await refusalOf({ ...webhook, headers: { ...headers, 'webhook-timestamp': later } })).toBe(
    'SIGNATURE_MISMATCH',
  )
})

test('five minutes of difference are accepted, and no more', async () => {
  const webhook = received(first)
  const atMs = Number(first.timestamp) * 1_000
  expect(await refusalOf({ ...webhook, nowMs: atMs + 300_000 })).toBe('accepted')
  expect(await refusalOf({ ...webhook, nowMs: atMs - 300_000 })).toBe('accepted')
  expect(await refusalOf({ ...webhook, nowMs: atMs + 300_001 })).toBe('TIMESTAMP_OUT_OF_TOLERANCE')
  expect(await refusalOf({ ...webhook, nowMs: atMs - 300_001 })).toBe('TIMESTAMP_OUT_OF_TOLERANCE')
  expect(await refusalOf({ ...webhook, nowMs: atMs + 300_001, toleranceSeconds: 400 })).toBe('accepted')
  const { nowMs: _, ...now } = webhook
  expect(await refusalOf(now)).toBe('TIMESTAMP_OUT_OF_TOLERANCE')
  const headers = webhook.headers as Record<string, string>
  for (const timestamp of ['x', '1e9', '-1', '1769860800.0']) {
    expect(await refusalOf({ ...webhook, headers: { ...headers, 'webhook-timestamp': timestamp } })).toBe(
      'TIMESTAMP_OUT_OF_TOLERANCE',
    )
  }
})

test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
  'without %s it is refused',
  async (name) => {
    const webhook = received(first)
    const headers = { ...(webhook.headers as Record<string, string>), [name]: '' }
    expect(await refusalOf({ ...webhook, headers })).toBe('HEADERS_MISSING')
  },
)
