import type { ToldSecret } from '../../../src/accounts/keys.ts'
import type { Operation } from './operations.ts'
import type { Header, Sendable } from './sendable.ts'

/** A value of the query is its text; a value of the body is JSON, so that numbers may be written in any way. */
export type Entry = readonly [name: string, value: string]

/** A request while its parts can still be told apart. */
export type Form = {
  readonly operation: Operation
  readonly path: Readonly<Record<string, string>>
  readonly query: readonly Entry[]
  readonly body: readonly Entry[]
  readonly headers: readonly Header[]
}

/** What has to come of a request. `either`: nobody says, but it must not be a failure of ours. */
export type Expected = 'success' | 'refusal' | 'either'

/** What is sent, why, and what has to come of it. */
export type Case = {
  readonly operation: string
  readonly what: string
  readonly expected: Expected
  readonly request: Sendable
  /** Who signs it, when everything else is done. */
  readonly signer: ToldSecret | null
}

export function sendableOf({ operation, path, query, body, headers }: Form): Sendable {
  const filled = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encode(path[name] ?? ''))
  const pairs = query.map(([name, value]) => `${encode(name)}=${encode(value)}`)
  const json = `{${body.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
  return {
    method: operation.method,
    target: pairs.length === 0 ? filled : `${filled}?${pairs.join('&')}`,
    headers: operation.hasBody ? [...headers, ['Content-Type', 'application/json']] : headers,
    body: Buffer.from(operation.hasBody ? json : ''),
  }
}

/** As `encodeURIComponent`, but half a surrogate pair becomes the three bytes that a sloppy client would send. */
function encode(text: string): string {
  return text.isWellFormed()
    ? encodeURIComponent(text)
    : [...text].map((one) => (one.isWellFormed() ? encodeURIComponent(one) : '%ED%A0%80')).join('')
}

export function text(value: string): string {
  return JSON.stringify(value)
}
