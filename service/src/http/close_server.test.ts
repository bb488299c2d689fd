import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import fastify from 'fastify'
import { expect, test } from 'vitest'
import { soon } from '../../test/harness/eventually.ts'
import { type Clock, systemClock } from '../clock.ts'
import { closerOf } from './close_server.ts'

/**
 * What: a server that is closed answers whoever asked, and waits for nobody else.
 * How: clients that say nothing, half of a request, or one after the other; Node alone would wait for the first two for
 * longer than this test may take.
 */
async function* endless() {
  for (;;) yield Buffer.alloc(1_000_000)
}

const MUCH_BYTES = 64_000_000

async function serve(answer: Promise<void>, clock: Pick<Clock, 'sleep'> = systemClock()) {
  const app = fastify({ keepAliveTimeout: 600_000, forceCloseConnections: 'idle' })
  app.get('/', async () => {
    await answer
    return 'answered'
  })
  app.get('/much', async () => {
    await answer
    return Buffer.alloc(MUCH_BYTES)
  })
  app.get('/file', async () => {
    await answer
    return Readable.from(endless())
  })
  app.post('/', async ({ body }) => body)
  const close = closerOf(app, clock)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const open = async (text = '') => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    if (text !== '') socket.write(text)
    return socket
  }
  return { app, close, open }
}

async function readAll(socket: Socket): Promise<string> {
  const parts: Buffer[] = []
  socket.on('data', (part: Buffer) => parts.push(part))
  // Whether it is ended or cut makes no difference here.
  socket.on('error', () => {})
  await once(socket, 'close')
  return Buffer.concat(parts).toString()
}

const POSTED = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n'
const ASKED = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

test('who has asked is answered; who has said nothing, or half, loses the connection', async () => {
  const answer = Promise.withResolvers<void>()
  const { app, close, open } = await serve(answer.promise)
  const silent = readAll(await open())
  const half = readAll(await open('GET / HTTP/1.1\r\nHos'))
  const arrived = once(app.server, 'request')
  const asked = readAll(await open(ASKED))
  await arrived
  const closed = close()
  expect(await silent).toBe('')
  expect(await half).toBe('')
  answer.resolve()
  expect(await asked).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nanswered$/)
  await closed
})

test.each(['', 'a part'])(
  'who has sent the head of a request, and of its body %j, loses the connection',
  async (part) => {
    const { app, close, open } = await serve(Promise.resolve())
    const arrived = once(app.server, 'request')
    const posted = readAll(await open(POSTED + part))
    await arrived
    await close()
    expect(await posted).toBe('')
  },
)

test.each(['/much', '/file'])('who does not take the answer of %s is not waited for', async (path) => {
  const answer = Promise.withResolvers<void>()
  const { app, close, open } = await serve(answer.promise)
  const arrived = once(app.server, 'request')
  const unread = await open(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await arrived
  const closed = close()
  await soon(() => expect(app.server.listening).toBe(false))
  answer.resolve()
  await closed
  unread.destroy()
})

test('who takes an answer slowly that had been given whole before has all of it', async () => {
  const taken = Promise.withResolvers<void>()
  // However slow this machine is, no time passes until it is taken.
  const sleep = () => taken.promise.then(() => setImmediate())
  const { app, close, open } = await serve(Promise.resolve(), { sleep })
  const asked = once(app.server, 'request')
  const slow = await open('GET /much HTTP/1.1\r\nHost: x\r\n\r\n')
  const [, response] = (await asked) as [unknown, ServerResponse]
  await soon(() => expect(response.writableEnded).toBe(true))
  const closed = close()
  await soon(() => expect(app.server.listening).toBe(false))
  let bytes = 0
  slow.on('data', (part: Buffer) => {
    bytes += part.length
    if (bytes > MUCH_BYTES) taken.resolve()
  })
  slow.on('error', () => {})
  await new Promise((resolve) => slow.once('close', resolve))
  expect(bytes).toBeGreaterThan(MUCH_BYTES)
  await closed
})
