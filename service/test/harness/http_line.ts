import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

type Call = { readonly id?: unknown; readonly method: string; readonly params?: readonly unknown[] }

/**
 * What becomes of a call: null lets it through; `refuse` answers with this error in the node's place (of a batch of
 * several, all are let through); `lose` lets it through and loses the answer.
 */
export type Meddling = (call: Call) => null | { readonly refuse: string; readonly code?: number } | 'lose'

/** The line between the service and one node: honest until told otherwise. */
export type NodeLine = {
  readonly url: string
  meddle(with_: Meddling | null): void
  /** How many calls were refused or lost since the last `meddle`. */
  count(): number
  stop(): Promise<void>
}

export async function openNodeLine(nodeUrl: string): Promise<NodeLine> {
  const target = new URL(nodeUrl)
  let meddling: Meddling | null = null
  let meddled = 0
  const server = createServer(async (request, response) => {
    const body = await readAll(request)
    const calls = JSON.parse(body) as Call | Call[]
    const verdicts = [calls].flat().map((call) => meddling?.(call) ?? null)
    const refusal = verdicts.find((verdict) => verdict !== null && verdict !== 'lose')
    if (refusal !== undefined && verdicts.length === 1) {
      meddled += 1
      const error = { code: refusal.code ?? -32000, message: refusal.refuse }
      const reply = { jsonrpc: '2.0', id: [calls].flat()[0]?.id ?? null, error }
      response.setHeader('content-type', 'application/json')
      return response.end(JSON.stringify(Array.isArray(calls) ? [reply] : reply))
    }
    const answer = await forward(target, request, body).catch(() => null)
    if (answer === null || verdicts.includes('lose')) {
      if (answer !== null) meddled += 1
      return request.socket.destroy()
    }
    response.writeHead(answer.status, { 'content-type': 'application/json' })
    response.end(answer.text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(nodeUrl)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    meddle: (next) => {
      meddling = next
      meddled = 0
    },
    count: () => meddled,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function forward(target: URL, request: IncomingMessage, body: string) {
  const url = new URL(request.url ?? '/', target)
  const { authorization } = request.headers
  const response = await fetch(`${url.protocol}//${url.host}${url.pathname}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
    body,
  })
  return { status: response.status, text: await response.text() }
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
