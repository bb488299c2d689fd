import { STATUS_CODES } from 'node:http'
import type { HttpReply } from '../simulated/server.ts'

/** https://developers.stellar.org/docs/data/apis/horizon/api-reference/errors/response */
export class Problem extends Error {
  readonly reply: HttpReply
  constructor(status: number, name: string, title: string, detail: string, extras?: object) {
    super(title)
    const type = `https://stellar.org/horizon-errors/${name}`
    this.reply = {
      status,
      type: 'application/problem+json; charset=utf-8',
      body: JSON.stringify({ type, title, status, detail, ...(extras && { extras }) }),
    }
  }
}

export function notFound(): Problem {
  return new Problem(
    404,
    'not_found',
    'Resource Missing',
    'The resource at the url requested was not found.  This usually occurs for one of two reasons:  The url requested is not valid, or no data in our database could be found with the parameters provided.',
  )
}

export function badRequest(invalid_field: string, reason: string): Problem {
  const detail = 'The request you sent was invalid in some way.'
  return new Problem(400, 'bad_request', STATUS_CODES[400] ?? '', detail, { invalid_field, reason })
}
