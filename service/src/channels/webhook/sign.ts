import { createHmac } from 'node:crypto'
import type { InstantMs } from '../../domain/time.ts'

/**
 * The three headers of Standard Webhooks 1.0 (https://www.standardwebhooks.com): a signature for each live secret, so that
 * a receiver may know either of them.
 */
export function signedHeaders(message: {
  readonly id: string
  readonly atWallMs: InstantMs
  readonly body: string
  /** `whsec_` and base64. */
  readonly secrets: readonly string[]
}): Readonly<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const timestamp = String(Math.floor(message.atWallMs / 1_000))
  const signed = `${message.id}.${timestamp}.${message.body}`
  const signatures = message.secrets.map((secret) => {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
  })
  return {
    'webhook-id': message.id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}
