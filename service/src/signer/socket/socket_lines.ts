import type { Socket } from 'node:net'
import { parseExact, stringifyExact } from '../../domain/exact_json.ts'

/** The longest message either side takes: a transaction of 500 inputs is a tenth of it. */
export const MESSAGE_BYTES_MAX = 2 ** 20

export function encodeMessage(message: unknown): string {
  return `${stringifyExact(message)}\n`
}

/** Throws on what is not one exact JSON value in UTF-8. */
export function decodeMessage(line: Buffer): unknown {
  return parseExact(new TextDecoder('utf-8', { fatal: true }).decode(line))
}

/** The lines that arrive, until the other side ends; throws when one is too long or the line is cut. */
export async function* readLines(socket: Socket): AsyncGenerator<Buffer> {
  let parts: Buffer[] = []
  let bytes = 0
  const grow = (part: Buffer) => {
    bytes += part.length
    if (bytes > MESSAGE_BYTES_MAX) throw new Error(`a message is longer than ${MESSAGE_BYTES_MAX} bytes`)
    parts.push(part)
  }
  // Not destroyed when a line is refused: the other side is told why first.
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      grow(chunk.subarray(start, end))
      yield Buffer.concat(parts)
      parts = []
      bytes = 0
      start = end + 1
    }
    grow(chunk.subarray(start))
  }
}
