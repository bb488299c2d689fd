import { createHmac } from 'node:crypto'
import type { ToldSecret } from '../../../src/accounts/keys.ts'

/** A request just before it becomes bytes. One character of the texts is one byte, so that any byte can be said. */
export type Sendable = {
  readonly method: string
  readonly target: string
  readonly headers: readonly Header[]
  readonly body: Buffer
  /** How the body is told apart from what follows; by its length, unless said otherwise. */
  readonly framing?: 'length' | 'chunks' | 'none'
  readonly version?: string
}

export type Header = readonly [name: string, value: string]

/** With the three headers of docs/api.md, by an implementation of the test's own. */
export function signed(
  request: Sendable,
  { keyId, secret }: ToldSecret,
  timestamp = String(Math.floor(Date.now() / 1_000)),
): Sendable {
  const { method, target, body } = request
  const mac = createHmac('sha256', secret)
    .update(`${timestamp}\n${method}\n${target}\n`, 'latin1')
    .update(body)
  const headers: Header[] = [
    ['X-API-KEY', keyId],
    ['X-API-SIGN', mac.digest('hex')],
    ['X-API-TIMESTAMP', timestamp],
  ]
  return { ...request, headers: [...request.headers, ...headers] }
}

export function bytesOf(request: Sendable): Buffer {
  const { method, target, headers, body, version = 'HTTP/1.1' } = request
  const framing = request.framing ?? (body.length > 0 || method === 'POST' ? 'length' : 'none')
  const frame: Header[] =
    framing === 'length'
      ? [['Content-Length', String(body.length)]]
      : framing === 'chunks'
        ? [['Transfer-Encoding', 'chunked']]
        : []
  const lines = [['Host', 'cambist.test'] as const, ...headers, ...frame].map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  const head = Buffer.from(`${method} ${target} ${version}\r\n${lines.join('')}\r\n`, 'latin1')
  return Buffer.concat([head, framing === 'chunks' ? inChunks(body) : body])
}

/** Pieces of odd sizes, an extension, and a trailer: all of it legal, and none of it part of the body. */
function inChunks(body: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let start = 0, size = 1; start < body.length; start += size, size = (size * 7) % 61) {
    const piece = body.subarray(start, start + size)
    const extension = size % 2 === 0 ? ';x=1' : ''
    pieces.push(Buffer.from(`${piece.length.toString(16)}${extension}\r\n`), piece, Buffer.from('\r\n'))
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\nX-Trailer: 1\r\n\r\n')])
}

/** A line for a shell that says the same bytes again. */
export function shellLine(bytes: Buffer, port: number): string {
  const shown = bytes
    .toString('latin1')
    .replaceAll('\\', '\\\\')
    .replaceAll('\r', '\\r')
    .replaceAll('\n', '\\n')
    .replaceAll(/[^\x20-\x7e]|['%]/g, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, '0')}`)
  return `printf '${shown}' | nc -q 2 127.0.0.1 ${port}`
}
