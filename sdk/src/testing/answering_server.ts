import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Received = {
  readonly method: string
  readonly target: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export type Reply =
  | {
      readonly status?: number
      readonly headers?: Record<string, string>
      /** Text goes out as it is, anything else as JSON. */
      readonly body?: unknown
    } /** Cuts the line without an answer. */
  | 'cut' /** Never answers. */
  | 'silence'

export type TestServer = {
  readonly baseUrl: string
  readonly received: Received[]
  close(): Promise<void>
}

/** A server that answers as told and remembers what it was asked, byte by byte. */
export async function startTestServer(
  reply: (request: Received, index: number) => Reply,
): Promise<TestServer> {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const seen = {
      method: request.method ?? '',
      target: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(chunks).toString('utf8'),
    }
    const answer = reply(seen, received.push(seen) - 1)
    if (answer === 'cut') return request.socket.destroy()
    if (answer === 'silence') return
    const { status = 200, headers = {}, body = '' } = answer
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
    response.writeHead(status, headers).end(isRaw ? body : JSON.stringify(body))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

export const success = (data: unknown): Reply => ({ body: { success: true, data } })

export const problem = (
  status: number,
  code: string,
  more: object = {},
  headers?: Record<string, string>,
): Reply => ({
  status,
  ...(headers && { headers }),
  body: { error: true, error_code: code, message: `about ${code}`, ...more },
})
