import {
  type AgentOptions,
  createServer,
  globalAgent,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, expect, test } from 'vitest'
import { type NodeLine, openLine, readJson } from './node_line.ts'

/**
 * What: a question to a node has one answer or a reason why there is none, in time, and the reason never holds the address.
 */
type Answer = (response: ServerResponse, request: IncomingMessage, body: string) => void
type Node = {
  /** With a login and a path in its address, as providers have them. */
  readonly line: NodeLine
  /** Every connection that was ever made to it. */
  readonly connections: readonly Socket[]
}

const SECRETS = /us@er|us%40er|pass|canary|127\.0\.0\.1/
let stop: (() => void) | undefined
afterEach(() => stop?.())

async function nodeAnswering(answer: Answer, timeoutMs = 60_000): Promise<Node> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    answer(response, request, body)
  })
  const connections: Socket[] = []
  server.on('connection', (socket) => connections.push(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stop = () => {
    server.closeAllConnections()
    server.close()
  }
  const { port } = server.address() as AddressInfo
  return {
    line: openLine(`http://us%40er:pass@127.0.0.1:${port}/v3/canary/?key=canary`, timeoutMs),
    connections,
  }
}

const post = { method: 'POST', body: '{}' } as const

test('a question says what it is, who asks and how long it is, at the address of the node', async () => {
  let seen: unknown
  const { line } = await nodeAnswering((response, { method, url, headers }, body) => {
    const { authorization, 'content-type': type, 'content-length': length, 'user-agent': agent } = headers
    seen = { method, url, authorization, type, length, agent, body }
    response.writeHead(418).end('{"yes":"é"}')
  })
  const login = `Basic ${Buffer.from('us@er:pass').toString('base64')}`
  const asked = { authorization: login, type: 'application/json', agent: 'Cambist/1' }
  const answer = await line.ask({ method: 'POST', body: '"é"' })
  expect(answer).toEqual({ ok: true, value: { status: 418, text: '{"yes":"é"}' } })
  expect(seen).toEqual({ method: 'POST', url: '/v3/canary/?key=canary', ...asked, length: '4', body: '"é"' })

  await line.ask({ method: 'POST', path: '/tx', body: 'a=b', contentType: 'text/plain' })
  expect(seen).toMatchObject({
    method: 'POST',
    url: '/v3/canary/tx?key=canary',
    type: 'text/plain',
    body: 'a=b',
  })
  await line.ask({ method: 'GET', path: '/a?b=c d' })
  expect(seen).toMatchObject({
    method: 'GET',
    url: '/v3/canary/a?b=c%20d&key=canary',
    type: undefined,
    body: '',
  })
})

test('the next question goes the same way, and a new one when the node has closed it', async () => {
  const { line, connections } = await nodeAnswering((response) => response.end('1'))
  for (let asked = 0; asked < 3; asked += 1) expect((await line.ask(post)).ok).toBe(true)
  expect(connections).toHaveLength(1)
  const closed = new Promise((resolve) => connections[0]?.once('close', resolve))
  connections[0]?.end()
  await closed
  expect((await line.ask(post)).ok).toBe(true)
  expect(connections).toHaveLength(2)
})

test('a connection that nobody uses is closed by us, one on which an answer is awaited never', async () => {
  const { options } = globalAgent as unknown as { readonly options: AgentOptions }
  const { timeout } = options
  options.timeout = 50
  try {
    const { line, connections } = await nodeAnswering((response) => {
      setTimeout(() => response.end('1'), 200)
    })
    expect((await line.ask(post)).ok).toBe(true)
    const [connection] = connections
    if (connection?.closed === false) await new Promise((resolve) => connection.once('close', resolve))
    expect((await line.ask(post)).ok).toBe(true)
    expect(connections).toHaveLength(2)
  } finally {
    options.timeout = timeout
  }
})

test('an answer may come packed, and in pieces that end within a letter', async () => {
  const text = '{"a":"ж€😀"}'.repeat(1_000)
  const bytes = Buffer.from(text)
  let packs: unknown
  const { line } = await nodeAnswering((response, request) => {
    packs = request.headers['accept-encoding']
    if (request.method === 'GET')
      return response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(bytes))
    response.write(bytes.subarray(0, 7), () => response.end(bytes.subarray(7)))
  })
  expect(await line.ask({ method: 'GET' })).toEqual({ ok: true, value: { status: 200, text } })
  expect(packs).toBe('gzip')
  expect(await line.ask(post)).toEqual({ ok: true, value: { status: 200, text } })
})

const packed = { 'content-encoding': 'gzip' }
const zeros = gzipSync(Buffer.alloc(10_000_000))
const failures: readonly { readonly what: string; readonly answer: Answer; readonly reason: RegExp }[] = [
  {
    what: 'a redirect, whatever stands in it',
    answer: (response) => response.writeHead(307, { location: 'http://127.0.0.1/canary' }).end('{}'),
    reason: /^HTTP 307: it is somewhere else$/,
  },
  {
    what: 'a line cut before the answer',
    answer: (response) => response.destroy(),
    reason: /^the node cannot be reached \(ECONNRESET\)$/,
  },
  {
    what: 'a line cut within the answer',
    answer: (response) =>
      response.writeHead(200, { 'content-length': 99 }).write('{', () => response.destroy()),
    reason: /^the node cannot be reached \(ECONNRESET\)$/,
  },
  {
    what: 'a line cut within what was packed',
    answer: (response) =>
      response.writeHead(200, packed).write(zeros.subarray(0, 50), () => response.destroy()),
    reason: /^the node cannot be reached \(\w+\)$/,
  },
  {
    what: 'something packed that ends too soon',
    answer: (response) => response.writeHead(200, packed).end(zeros.subarray(0, 50)),
    reason: /^the node cannot be reached \(Z_BUF_ERROR\)$/,
  },
  {
    what: 'something that is not packed as it says',
    answer: (response) => response.writeHead(200, packed).end('{}'),
    reason: /^the node cannot be reached \(Z_DATA_ERROR\)$/,
  },
  {
    what: 'another protocol',
    answer: (response) => response.writeHead(101, { connection: 'upgrade', upgrade: 'x' }).end(),
    reason: /^HTTP 101: it speaks another protocol$/,
  },
  {
    what: 'something else than HTTP',
    answer: (response) => response.socket?.end('SSH-2.0-canary\r\n'),
    reason: /^the node cannot be reached \(HPE_\w+\)$/,
  },
  {
    what: 'more than was asked for',
    answer: (response) => response.end(Buffer.alloc(1_000_001)),
    reason: /^the answer is longer than 1000000 bytes$/,
  },
  {
    what: 'little that is more than was asked for when it is unpacked',
    answer: (response) => response.writeHead(200, packed).end(zeros),
    reason: /^the answer is longer than 1000000 bytes$/,
  },
]
test.each(failures)('$what is no answer', async ({ answer, reason }) => {
  const { line } = await nodeAnswering(answer)
  const asked = await line.ask({ ...post, bytesMax: 1_000_000 })
  expect(asked).toEqual({ ok: false, rejection: expect.stringMatching(reason) })
  expect(JSON.stringify(asked)).not.toMatch(SECRETS)
})

const silences: readonly { readonly what: string; readonly answer: Answer }[] = [
  { what: 'nothing', answer: () => {} },
  {
    what: 'information without end',
    answer: (response) => sayForEver(response, () => response.writeProcessing()),
  },
  { what: 'half an answer', answer: (response) => response.write('{') },
  {
    what: 'an answer that goes on and on',
    answer: (response) => sayForEver(response, () => response.write(' ')),
  },
]
test.each(silences)('$what is no answer, when the time is over; the line is closed', async ({ answer }) => {
  const { line, connections } = await nodeAnswering(answer, 200)
  expect(await line.ask(post)).toEqual({ ok: false, rejection: 'no answer within 200 ms' })
  const [connection] = connections
  if (connection?.closed === false) await new Promise((resolve) => connection.once('close', resolve))
})

function sayForEver(response: ServerResponse, say: () => void): void {
  if (response.destroyed) return
  say()
  setImmediate(() => sayForEver(response, say))
}

test('nobody there is no answer, and neither name nor port is told', async () => {
  const { line } = await nodeAnswering((response) => response.end())
  stop?.()
  expect(await line.ask(post)).toEqual({
    ok: false,
    rejection: 'the node cannot be reached (ECONNREFUSED)',
  })
  const nowhere = openLine('http://canary.invalid:8545/canary', 5_000)
  expect(await nowhere.ask(post)).toEqual({
    ok: false,
    rejection: expect.stringMatching(/^the node cannot be reached \(E\w+\)$/),
  })
})

test('what an answer says in JSON may be revived; without JSON it says nothing', () => {
  const revive = (_key: string, value: unknown, context?: { source?: string }) => context?.source ?? value
  expect(readJson({ status: 500, text: '{"a":0.10}' })).toEqual({ ok: true, value: { a: 0.1 } })
  expect(readJson({ status: 200, text: '{"a":0.10}' }, revive)).toEqual({ ok: true, value: { a: '0.10' } })
  expect(readJson({ status: 502, text: '<html>' })).toEqual({ ok: false, rejection: 'HTTP 502 without JSON' })
})
