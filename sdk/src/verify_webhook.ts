import type { WebhookEvent } from './types.ts'

type PlainHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

export type ReceivedWebhook = {
  /** The request's headers: a `Headers`, or an object with lower-case names as Node has it. */
  readonly headers: Headers | PlainHeaders
  /** The body exactly as it arrived: parsed and written again it is another one. */
  readonly body: string | Uint8Array
  /** `whsec_…`; both of them while one replaces the other. */
  readonly secret: string | readonly string[]
  /** How old a webhook may be, or how far ahead its clock; 5 minutes where left out. */
  readonly toleranceSeconds?: number
  /** The time to compare with, epoch milliseconds; now where left out. */
  readonly nowMs?: number
}

/** What was received is no webhook of ours, or is not to be trusted. Answer 400 and do nothing. */
export class WebhookRefused extends Error {
  override readonly name = 'WebhookRefused'
  readonly code: 'HEADERS_MISSING' | 'TIMESTAMP_OUT_OF_TOLERANCE' | 'SIGNATURE_MISMATCH'

  constructor(code: WebhookRefused['code'], message: string) {
    super(message)
    this.code = code
  }
}

const TOLERANCE_SECONDS = 300

/**
 * The event, if it was signed with the secret within the tolerance (Standard Webhooks 1.0); else throws `WebhookRefused`, and `TypeError`
 * where a secret is none. It may be of a type that you do not know: `isOrderEvent` tells.
 * The same event may arrive more than once: `headers['webhook-id']` is the same then.
 */
export async function verifyWebhook(received: ReceivedWebhook): Promise<WebhookEvent> {
  const keys = [received.secret].flat().map(keyOf)
  const id = headerOf(received, 'webhook-id')
  const timestamp = headerOf(received, 'webhook-timestamp')
  const signatures = headerOf(received, 'webhook-signature')
  const { toleranceSeconds = TOLERANCE_SECONDS, nowMs = Date.now() } = received
  const ageSeconds = /^\d{1,12}$/.test(timestamp) ? nowMs / 1_000 - Number(timestamp) : Number.NaN
  if (!(Math.abs(ageSeconds) <= toleranceSeconds)) {
    throw new WebhookRefused('TIMESTAMP_OUT_OF_TOLERANCE', 'the webhook is too old, or from the future')
  }
  const body = typeof received.body === 'string' ? new TextEncoder().encode(received.body) : received.body
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), body)
  if (!(await isSigned(signed, signatures, keys))) {
    throw new WebhookRefused('SIGNATURE_MISMATCH', 'no signature of the webhook was made with the secret')
  }
  return JSON.parse(new TextDecoder().decode(body)) as WebhookEvent
}

function headerOf({ headers }: ReceivedWebhook, name: string): string {
  // Not by `instanceof`: servers that bring a fetch of their own have other `Headers` than the built-in ones.
  const value = typeof headers.get === 'function' ? headers.get(name) : (headers as PlainHeaders)[name]
  if (typeof value === 'string' && value !== '') return value
  throw new WebhookRefused('HEADERS_MISSING', `the header ${name} is missing`)
}

/** One that is none is a mistake of whoever set it, which must not look like a wrong signature. */
function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const key = bytesOf(secret.replace(/^whsec_/, ''))
  if (key.length > 0) return key
  throw new TypeError('a secret of webhooks is empty or no base64: look where `secret` comes from')
}

/** Of several signatures one is enough, and so of several secrets. WebCrypto compares in constant time. */
async function isSigned(
  signed: Uint8Array,
  header: string,
  keys: readonly Uint8Array<ArrayBuffer>[],
): Promise<boolean> {
  const signatures = header.split(' ').flatMap((entry) => (entry.startsWith('v1,') ? [entry.slice(3)] : []))
  for (const bytes of keys) {
    const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
      'verify',
    ])
    for (const signature of signatures) {
      if (await crypto.subtle.verify('HMAC', key, bytesOf(signature), new Uint8Array(signed))) return true
    }
  }
  return false
}

/** Of what is no base64, nothing: no signature is that. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    return new Uint8Array()
  }
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array {
  const all = new Uint8Array(head.length + tail.length)
  all.set(head)
  all.set(tail, head.length)
  return all
}
