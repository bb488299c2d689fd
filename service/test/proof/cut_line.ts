import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * Where a connection is cut: after so many bytes of what one side says. `request`: a request that is shorter arrives, and
 * the line is cut in place of the first byte of its answer. `answer`: one that is shorter passes unharmed.
 */
export type Cut = {
  readonly side: 'request' | 'answer'
  readonly afterBytes: number
  /** By a reset, which may take what lies in the buffers with it. */
  readonly isHard: boolean
}

/** A line over TCP that breaks; each connection is asked about once. */
export type CutLine = {
  readonly url: string
  /** Connections that were cut before the request was whole, instead of an answer, and within one. */
  readonly cuts: { inRequest: number; beforeAnswer: number; inAnswer: number }
  stop(): Promise<void>
}

export async function openCutLine(targetUrl: string, cutNext: () => Cut | null): Promise<CutLine> {
  const target = new URL(targetUrl)
  const cuts = { inRequest: 0, beforeAnswer: 0, inAnswer: 0 }
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const service = connect(Number(target.port), target.hostname)
    for (const socket of [client, service]) {
      open.add(socket)
      socket.on('close', () => open.delete(socket))
      socket.on('error', () => {})
    }
    carry(client, service, cutNext(), cuts)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(targetUrl)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.origin,
    cuts,
    stop: async () => {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function carry(client: Socket, service: Socket, cut: Cut | null, cuts: CutLine['cuts']): void {
  const hangUp = () => {
    for (const socket of [client, service]) cut?.isHard ? socket.resetAndDestroy() : socket.destroy()
  }
  const said = { request: 0, answer: 0 }
  /** Hands on what may still pass; true when the line breaks here. */
  const pass = (side: Cut['side'], chunk: Buffer, to: Socket): boolean => {
    const left = cut?.side === side ? cut.afterBytes - said[side] : Number.POSITIVE_INFINITY
    said[side] += chunk.length
    if (left > chunk.length) {
      to.write(chunk)
      return false
    }
    to.write(chunk.subarray(0, left), hangUp)
    return true
  }
  client.on('data', (chunk) => {
    if (pass('request', chunk, service)) cuts.inRequest += 1
  })
  service.on('data', (chunk) => {
    if (cut?.side === 'request') {
      cuts.beforeAnswer += 1
      hangUp()
    } else if (pass('answer', chunk, client)) cuts.inAnswer += 1
  })
  client.on('end', () => service.end())
  service.on('end', () => client.end())
}
