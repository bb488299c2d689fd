import { connect, type Socket } from 'node:net'
import type { BenchRequest } from '../load.ts'

/** The bytes of a request as they go over a connection that stays open. */
export function bytesOf({ method = 'GET', path, headers = {}, body = '' }: BenchRequest): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = Buffer.byteLength(body)
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nHost: bench\r\n${lines.join('')}Content-Length: ${length}\r\n\r\n${body}`,
  )
}

/** One connection, one request at a time: as little work as can be, for it shares the processor with what it loads. */
export type Line = { ask(request: Buffer): Promise<void>; end(): void }

/** `ask` is over when the whole answer is there; anything but 200 rejects. */
export async function openLine(url: string): Promise<Line> {
  const { hostname, port } = new URL(url)
  const socket = await opened(hostname, Number(port))
  let answer = ''
  let waiting: { resolve(): void; reject(error: Error): void } | undefined
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    answer += text
    const head = answer.indexOf('\r\n\r\n')
    if (head === -1 || answer.length < head + 4 + lengthIn(answer)) return
    const whole = answer
    answer = ''
    if (whole.startsWith('HTTP/1.1 200 ')) waiting?.resolve()
    else waiting?.reject(new Error(`refused: ${whole}`))
  })
  socket.on('error', (error) => waiting?.reject(error))
  socket.on('close', () => waiting?.reject(new Error('the server closed the connection')))
  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        socket.write(request)
      }),
    end: () => {
      socket.destroy()
    },
  }
}

function lengthIn(answer: string): number {
  return Number(/\r\ncontent-length: (\d+)/i.exec(answer)?.[1] ?? Number.NaN)
}

function opened(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true }, () => resolve(socket))
    socket.once('error', reject)
  })
}
