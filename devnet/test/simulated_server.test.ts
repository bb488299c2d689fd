import { get, type IncomingMessage } from 'node:http'
import { afterAll, afterEach, expect, test } from 'vitest'
import { CutLine, type Endpoint, jsonReply, type Line, serve } from '../src/simulated/server.ts'
import { createTroubles } from '../src/simulated/troubles.ts'
import { makeTemporaryFolder } from './harness.ts'

/**
 * What: the server of all simulated networks keeps its port, streams, and shows what went wrong inside.
 * How: an endpoint of a few words, asked over real HTTP.
 */
const folder = makeTemporaryFolder()
const troubles = createTroubles()
const running: { stop(): Promise<void> }[] = []

afterEach(async () => {
  troubles.set(null)
  for (const server of running.splice(0)) await server.stop()
})

afterAll(() => folder.remove())

const streams: Line[] = []
let closed = 0
const endpoint: Endpoint = {
  http: async ({ method, url, headers, body }) => {
    if (url.pathname === '/caller') return jsonReply({ origin: url.origin, accept: headers.accept })
    if (url.pathname === '/cut') throw new CutLine()
    if (url.pathname === '/broken') throw new Error('a wheel came off')
    if (url.pathname !== '/stream') return jsonReply({ method, query: url.searchParams.get('q'), body }, 202)
    const goOn = (line: Line) => {
      streams.push(line)
      line.onClose(() => {
        closed += 1
      })
    }
    return { status: 200, type: 'text/event-stream', body: 'hello\n', goOn }
  },
}

async function start() {
  const server = await serve(folder.path, endpoint, troubles)
  running.push(server)
  return { ...server, url: `http://127.0.0.1:${server.port}` }
}

test('it answers what the endpoint says, with its status', async () => {
  const { url } = await start()
  const response = await fetch(`${url}/path?q=1`, { method: 'POST', body: 'text' })
  expect([response.status, await response.json()]).toEqual([
    202,
    { method: 'POST', query: '1', body: 'text' },
  ])
})

test('an endpoint knows where its caller found it, and what kind of answer is wanted', async () => {
  const { url } = await start()
  const response = await fetch(`${url}/caller`, { headers: { accept: 'text/event-stream' } })
  expect(await response.json()).toEqual({ origin: url, accept: 'text/event-stream' })
})

test('what breaks inside is told, and a line that is cut tells nothing', async () => {
  const { url } = await start()
  const response = await fetch(`${url}/broken`)
  expect([response.status, await response.json()]).toEqual([500, { error: 'a wheel came off' }])
  await expect(fetch(`${url}/cut`)).rejects.toThrow()
})

test('the next start has the same port, or another when somebody took it', async () => {
  const first = await start()
  const beside = await start()
  expect(beside.port).not.toBe(first.port)
  for (const server of running.splice(0)) await server.stop()
  expect((await start()).port).toBe(beside.port)
})

test('an answer goes on until its caller hangs up', async () => {
  const { url } = await start()
  const response = await new Promise<IncomingMessage>((resolve) => get(`${url}/stream`, resolve))
  let heard = ''
  response.setEncoding('utf8').on('data', (text) => {
    heard += text
  })
  response.on('error', () => {})
  await expect.poll(() => heard).toBe('hello\n')
  streams[0]?.send('news\n')
  await expect.poll(() => heard).toBe('hello\nnews\n')
  expect(closed).toBe(0)
  response.destroy()
  await expect.poll(() => closed).toBe(1)
})

test('it stops though a caller waits for an answer that never comes', async () => {
  const { url } = await start()
  troubles.set({ hangs: true })
  const asking = get(url)
  const hungUp = new Promise((resolve) => asking.on('error', resolve))
  await new Promise((resolve) => asking.on('socket', (socket) => socket.on('connect', resolve)))
  await running.splice(0)[0]?.stop()
  expect(await hungUp).toBeInstanceOf(Error)
})
