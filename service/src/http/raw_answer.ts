import type { Duplex } from 'node:stream'
import { problemHeaders } from './answers/answers.ts'
import { problemJson } from './answers/problem_json.ts'
import { type Problem, problems } from './errors.ts'

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
}

/** Answers on the socket itself, where Node has no request to answer; then closes it. */
export function answerOnSocket(socket: Duplex, problem: Problem): void {
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
}
