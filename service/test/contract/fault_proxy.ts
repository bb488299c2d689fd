import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * pass: an honest proxy. drop_reply: forwards, then cuts the line instead of answering. cut: cuts the line at
 * once. hang: never answers. garbage: answers 200 with no JSON. unavailable: answers 503 with a web page.
 */
export type Fault = 'pass' | 'drop_reply' | 'cut' | 'hang' | 'garbage' | 'unavailable'

export type FaultProxy = {
  readonly url: string
  /** From the next request that names `method` on (null: from the next request on), every one fails so. */
  failWith(fault: Fault, method: string | null): void
  /** Requests that reached the node although the caller got no good answer. */
  forwardedAndDropped(): number
  stop(): Promise<void>
}

/** A node behind a bad line: an HTTP proxy that fails the way it is told. */
export async function startFaultProxy(targetUrl: string): Promise<FaultProxy> {
  const target = new URL(targetUrl)
  let fault: Fault = 'pass'
  let trigger: string | null = null
  let dropped = 0

  const server = createServer(async (request, response) => {
    const body = await readAll(request)
    if (trigger !== null && body.includes(`"${trigger}"`)) trigger = null
    const now = trigger === null ? fault : 'pass'
    switch (now) {
      case 'pass':
        return forward(target, request, body, response)
      case 'drop_reply':
        await fetchFrom(target, request, body)
        dropped += 1
        return request.socket.destroy()
      case 'cut':
        return request.socket.destroy()
      case 'hang':
        return
      case 'garbage':
        return response.writeHead(200, { 'content-type': 'application/json' }).end('<html>{"result": ')
      case 'unavailable':
        return response
          .writeHead(503, { 'content-type': 'text/html' })
          .end('<h1>503 Service Unavailable</h1>')
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(targetUrl)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as AddressInfo).port)

  return {
    url: url.href,
    failWith(next, method) {
      fault = next
      trigger = method
    },
    forwardedAndDropped: () => dropped,
    stop: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)))
        server.closeAllConnections()
      }),
  }
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function fetchFrom(target: URL, request: IncomingMessage, body: Buffer) {
  const url = new URL(request.url ?? '/', `${target.protocol}//${target.host}`)
  const { authorization } = request.headers
  const answer = await fetch(url, {
    method: request.method ?? 'POST',
    body: new Uint8Array(body),
    headers: {
      'content-type': request.headers['content-type'] ?? 'application/json',
      ...(authorization === undefined ? {} : { authorization }),
    },
  })
  return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) }
}

async function forward(target: URL, request: IncomingMessage, body: Buffer, response: ServerResponse) {
  const { status, bytes } = await fetchFrom(target, request, body)
  response.writeHead(status, { 'content-type': 'application/json' }).end(bytes)
}
