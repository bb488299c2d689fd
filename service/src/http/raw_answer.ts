import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { SECOND_MS } from '../domain/time.ts'
import { problemHeaders } from './answers/answers.ts'
import { problemJson } from './answers/problem_json.ts'
import { type Problem, problems } from './errors.ts'

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
}

/** Time to take the answer: Node no longer looks at how long it takes. */
const REST_TAKEN_MS = 2 * SECOND_MS

/** Answers on the socket itself, where Node has no request to answer; then closes it, whether or not the other side does. */
function answerOnSocket(socket: Socket, problem: Problem): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const { status } = problems[problem.code]
  const body = problemJson(problem, null)
  const headers = [...problemHeaders(problem), 'Content-Length', String(Buffer.byteLength(body))]
  let head = `HTTP/1.1 ${status} ${reasons[status] ?? 'Error'}\r\nConnection: close\r\n`
  for (let index = 0; index < headers.length; index += 2)
    head += `${headers[index]}: ${headers[index + 1]}\r\n`
  socket.end(`${head}\r\n${body}`)
  AbortSignal.timeout(REST_TAKEN_MS).addEventListener('abort', () => socket.destroy())
}

/** Node keeps the answer under way on its socket (null or undefined: none); there is no public way to it. */
export type InUse = Socket & { readonly _httpMessage?: ServerResponse | null }

const waiting = new WeakSet<Socket>()

/**
 * The same, but after the answers to requests that came whole before on this connection: else the client takes this for
 * theirs, and what was done for refused. A request that is not whole is the one that is meant.
 */
export function answerInTurn(socket: InUse, problem: Problem): void {
  const underWay = socket._httpMessage
  if (!underWay?.req.complete) {
    answerOnSocket(socket, problem)
  } else if (!waiting.has(socket)) {
    // Every further byte that cannot be read is told again.
    waiting.add(socket)
    underWay.once('close', () => {
      waiting.delete(socket)
      answerInTurn(socket, problem)
    })
  }
}
