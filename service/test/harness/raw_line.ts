import { connect, type Socket } from 'node:net'
import type { Answer } from '../../src/http/testing/answer.ts'
import { PATIENCE_MS } from './patience.ts'

/** One connection that says bytes as they are, which no HTTP client would, and goes on over a new one when it was closed. */
export type RawLine = {
  /** The answer to one request: to HEAD without a body, whatever its length says, and of a stream how it begins. */
  ask(bytes: Buffer, options?: { readonly isHead?: boolean }): Promise<Answer>
  close(): void
}

export function openRawLine(port: number): RawLine {
  let open: Socket | null = null
  return {
    ask: async (bytes, { isHead = false } = {}) => {
      const socket = open ?? (await dial(port))
      open = null
      const { answer, mayGoOn } = await exchange(socket, bytes, isHead)
      if (mayGoOn) open = socket
      else socket.destroy()
      return answer
    },
    close: () => open?.destroy(),
  }
}

/** Every answer on a connection of its own, until the service closes it. */
export async function sayRaw(port: number, bytes: Buffer): Promise<Answer[]> {
  const socket = await dial(port)
  const heard: Buffer[] = []
  await new Promise<void>((resolve, reject) => {
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error(`not closed after ${heard.join('')}`)))
    socket.on('data', (chunk) => heard.push(chunk))
    socket.on('close', () => resolve())
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // A service that has refused reads no further: what it said before counts.
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') resolve()
      else reject(error)
    })
    socket.write(bytes)
  })
  const answers: Answer[] = []
  for (let rest = Buffer.concat(heard); rest.length > 0; ) {
    const first = firstAnswer(rest, false)
    if (first === null) throw new Error(`an answer broke off: ${rest.toString('latin1')}`)
    answers.push(first.answer)
    rest = rest.subarray(first.length)
  }
  return answers
}

function dial(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket.off('error', reject)))
    socket.setNoDelay(true).once('error', reject)
  })
}

type Exchanged = { readonly answer: Answer; readonly mayGoOn: boolean }

function exchange(socket: Socket, bytes: Buffer, isHead: boolean): Promise<Exchanged> {
  return new Promise((resolve, reject) => {
    let heard: Buffer = Buffer.alloc(0)
    const end = (settle: () => void) => {
      clearTimeout(late)
      for (const event of ['data', 'error', 'close']) socket.removeAllListeners(event)
      // A service that has refused may reset the line before we let go of it.
      socket.on('error', () => {})
      settle()
    }
    const late = setTimeout(
      () => end(() => reject(new Error(`no answer, only ${JSON.stringify(heard.toString('latin1'))}`))),
      PATIENCE_MS,
    )
    socket.on('data', (chunk) => {
      heard = Buffer.concat([heard, chunk])
      const first = firstAnswer(heard, isHead)
      if (first === null) return
      const { answer, length } = first
      const isOver = answer.headers.get('connection') !== 'close' && !isStream(answer.headers)
      const mayGoOn = isOver && heard.length === length
      end(() => resolve({ answer, mayGoOn }))
    })
    socket.on('error', (error) => end(() => reject(error)))
    socket.on('close', () => end(() => reject(new Error('the line was closed without an answer'))))
    socket.write(bytes)
  })
}

/** The first whole answer and how many bytes it takes; null while there is more to come. "Go on" (1xx) is passed over. */
function firstAnswer(bytes: Buffer, isHead: boolean): { answer: Answer; length: number } | null {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return null
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const [, digits] = /^HTTP\/1\.1 (\d{3}) /.exec(statusLine) ?? []
  if (digits === undefined) throw new Error(`this is no answer: ${statusLine}`)
  const status = Number(digits)
  const bodyStart = headEnd + 4
  if (status < 200) {
    const next = firstAnswer(bytes.subarray(bodyStart), isHead)
    return next && { answer: next.answer, length: bodyStart + next.length }
  }
  const headers = new Headers(lines.map((line) => splitHeader(line)))
  const bodyLength = bodyLengthOf(status, headers, isHead, bytes.length - bodyStart)
  if (Number.isNaN(bodyLength)) throw new Error(`an answer does not say how long it is: ${lines.join('; ')}`)
  if (bytes.length < bodyStart + bodyLength) return null
  const body = bytes.subarray(bodyStart, bodyStart + bodyLength)
  return { answer: answerOf(status, headers, body), length: bodyStart + bodyLength }
}

function bodyLengthOf(status: number, headers: Headers, isHead: boolean, heardBytes: number): number {
  if (isHead || status === 204 || status === 304) return 0
  return isStream(headers) ? heardBytes : Number(headers.get('content-length') ?? Number.NaN)
}

/** It goes on for as long as its order takes. */
function isStream(headers: Headers): boolean {
  return headers.get('content-type')?.startsWith('text/event-stream') === true
}

function splitHeader(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).trim()]
}

function answerOf(status: number, headers: Headers, bytes: Buffer): Answer {
  const text = bytes.toString()
  const isJson = headers.get('content-type')?.startsWith('application/json') === true && text !== ''
  return { status, headers, bytes, text, json: isJson ? JSON.parse(text) : undefined }
}
