import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { AnswerTooMuch, isLimit, isMethodMissing, jsonRpc, NodeRefusal, NodeSilence } from './json_rpc.ts'

type Answer = (body: string, response: ServerResponse, request: IncomingMessage) => void
let stop: (() => void) | undefined
afterEach(() => stop?.())

/** The address of a node that answers so. */
async function nodeAnswering(answer: Answer): Promise<string> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    answer(body, response, request)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stop = () => {
    server.closeAllConnections()
    server.close()
  }
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The same text to everybody; in it, ids count from the one that was asked with. */
const saying =
  (text: string, status = 200): Answer =>
  (body, response) => {
    const [{ id = 0 } = {}] = [JSON.parse(body) as { id: number } | { id: number }[]].flat()
    response
      .writeHead(status)
      .end(text.replace(/"id":(\d+)/g, (_, at) => `"id":${id + Number.parseInt(at, 10)}`))
  }

test('a refusal is told apart from silence', async () => {
  const said = '{"jsonrpc":"2.0","id":0,"error":{"code":3,"message":"execution reverted","data":"0x08"}}'
  const refused = await jsonRpc(await nodeAnswering(saying(said)), 1_000)
    .call('eth_call', [])
    .catch((error) => error)
  expect(refused).toBeInstanceOf(NodeRefusal)
  expect(refused).toMatchObject({ code: 3, data: '0x08' })
})

test('whoever refuses before reading the request cannot know its id', async () => {
  const said = '{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"too many requests"}}'
  const rpc = jsonRpc(await nodeAnswering(saying(said)), 1_000)
  await expect(rpc.call('eth_call', [])).rejects.toBeInstanceOf(NodeRefusal)
})

/** Alchemy does: https://github.com/alloy-rs/alloy/issues/1347 */
test('a refusal with a status that says the request was at fault is one', async () => {
  const said = '{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"Unsupported method: trace_block"}}'
  const rpc = jsonRpc(await nodeAnswering(saying(said, 400)), 1_000)
  const refused = await rpc.call('trace_block', []).catch((error) => error)
  expect(refused).toBeInstanceOf(NodeRefusal)
  expect(isMethodMissing(refused)).toBe(true)
  await expect(rpc.batch([{ method: 'trace_block', params: [] }])).rejects.toBeInstanceOf(NodeRefusal)
})

const silences = [
  {
    what: 'a status of a fault with a result',
    answer: saying('{"jsonrpc":"2.0","id":0,"result":"0x1"}', 400),
  },
  { what: "a server's own refusal", answer: saying('{"jsonrpc":"2.0","id":0,"error":{"code":1}}', 503) },
  { what: 'no JSON', answer: saying('<html>') },
  { what: 'JSON of another kind', answer: saying('[]') },
  { what: 'no result', answer: saying('{"jsonrpc":"2.0","id":0}') },
  { what: 'the answer to another', answer: saying('{"jsonrpc":"2.0","id":7,"result":"0x1"}') },
  { what: 'null', answer: saying('null') },
  {
    what: 'a server error, whatever it says',
    answer: saying('{"jsonrpc":"2.0","id":0,"result":"0x1"}', 502),
  },
  { what: 'too many requests', answer: saying('slow down', 429) },
  // Alchemy does: https://github.com/conduitxyz/node/issues/36
  {
    what: 'too many requests as an error',
    answer: saying('{"jsonrpc":"2.0","id":0,"error":{"code":429}}', 429),
  },
  {
    what: 'a request that came too slowly',
    answer: saying('{"jsonrpc":"2.0","id":0,"error":{"code":1}}', 408),
  },
  {
    what: 'a redirect',
    answer: ((_, response) => response.writeHead(302, { location: '/' }).end()) as Answer,
  },
  { what: 'a cut line', answer: ((_, response) => response.destroy()) as Answer },
  {
    what: 'half an answer',
    answer: ((_, response) =>
      response.writeHead(200, { 'content-length': 99 }).write('{', () => response.destroy())) as Answer,
  },
  { what: 'nothing in time', answer: (() => undefined) as Answer },
]
test.each(silences)('$what is silence', async ({ answer }) => {
  const rpc = jsonRpc(await nodeAnswering(answer), 300)
  await expect(rpc.call('eth_call', [])).rejects.toBeInstanceOf(NodeSilence)
  await expect(rpc.batch([{ method: 'eth_call', params: [] }])).rejects.toBeInstanceOf(NodeSilence)
})

test('traces longer than any that are honest are silence, before all of them are there', async () => {
  const said = Buffer.alloc(1_000_000, ' ')
  const url = await nodeAnswering((_, response) => {
    const goOn = () => {
      while (response.write(said));
    }
    response.on('drain', goOn)
    goOn()
  })
  const asked = jsonRpc(url, 20_000).call('trace_block', ['0x7'])
  await expect(asked).rejects.toThrow(/trace_block: the answer is longer than/)
  await expect(asked).rejects.toBeInstanceOf(AnswerTooMuch)
})

test('what is asked together is answered in the order asked, whatever the order of the answers', async () => {
  const url = await nodeAnswering((body, response) => {
    const calls = JSON.parse(body) as { id: number; params: unknown[] }[]
    const answers = calls.map(({ id, params }) => ({ jsonrpc: '2.0', id, result: params[0] }))
    response.end(JSON.stringify(answers.reverse()))
  })
  const numbers = Array.from({ length: 250 }, (_, at) => at)
  const calls = numbers.map((at) => ({ method: 'echo', params: [at] }))
  expect(await jsonRpc(url, 1_000).batch(calls)).toEqual(numbers)
})

test('one answer missing from a batch is silence, one refused is a refusal in its place', async () => {
  const url = await nodeAnswering(
    saying('[{"id":0,"result":1},{"id":1,"error":{"code":-32601,"message":"Method not found"}}]'),
  )
  const call = { method: 'eth_call', params: [] }
  const [first, second] = await jsonRpc(url, 1_000).settle([call, call])
  expect(first).toEqual({ ok: true, value: 1 })
  expect(second).toMatchObject({ ok: false, rejection: { code: -32601 } })
  await expect(jsonRpc(url, 1_000).settle([call, call, call])).rejects.toBeInstanceOf(NodeSilence)
})

test('a password in the address is sent as a login, and no part of the address is in an error', async () => {
  let login: string | undefined
  const url = new URL(
    await nodeAnswering((_, response, request) => {
      login = request.headers.authorization
      response.destroy()
    }),
  )
  url.username = 'user'
  url.password = 'p@ss'
  url.pathname = '/v3/canary'
  const error = await jsonRpc(url.href, 1_000)
    .call('eth_chainId', [])
    .catch((caught: Error) => caught)
  expect(login).toBe(`Basic ${Buffer.from('user:p@ss').toString('base64')}`)
  expect(error).toBeInstanceOf(NodeSilence)
  const { stack, cause } = error as Error
  expect(`${stack} ${JSON.stringify(error)} ${String(cause)}`).not.toMatch(/canary|p@ss|127\.0\.0\.1/)
})

const limits = [
  { what: '429 in words', answer: saying('slow down', 429), isOne: true },
  { what: '429 as an error', answer: saying('{"id":0,"error":{"code":-32000}}', 429), isOne: true },
  { what: '429 with 200', answer: saying('{"id":0,"error":{"code":429,"message":""}}'), isOne: true },
  { what: 'EIP-1474', answer: saying('{"id":0,"error":{"code":-32005,"message":""}}'), isOne: true },
  { what: 'words', answer: saying('{"id":0,"error":{"code":-32000,"message":"rate limit"}}'), isOne: true },
  { what: 'another error', answer: saying('{"id":0,"error":{"code":-32000,"message":""}}'), isOne: false },
  { what: 'another status', answer: saying('busy', 503), isOne: false },
]
test.each(limits)('a node that was asked too much says so: $what', async ({ answer, isOne }) => {
  const rpc = jsonRpc(await nodeAnswering(answer), 1_000)
  const errors = [
    await rpc.call('eth_call', []).catch((error) => error),
    await rpc.settle([{ method: 'eth_call', params: [] }]).catch((error) => error),
  ]
  expect(errors.map(isLimit)).toEqual([isOne, isOne])
})

const missing = [
  [-32601, 'Method not found', true],
  [-32000, 'the method debug_traceBlockByHash does not exist/is not available', true],
  [-32600, 'Unsupported method: debug_traceBlockByHash on this plan', true],
  [-32001, 'method debug_traceBlockByHash is not whitelisted', true],
  [-32600, 'trace_filter is not available on the Free tier - upgrade to Pay As You Go, or Enterprise', true],
  [-32000, 'historical state 0xabc is not available', false],
  [-32000, 'historical state is not available on your plan', false],
  [-32000, 'archive is not available on your plan', false],
  [-32000, 'required historical state unavailable (reexec=128)', false],
  [-32000, 'missing trie node 0xabc (path ) state 0xabc is not available', false],
  [-32000, 'block 0xabc not found', false],
  [-32005, 'limit exceeded', false],
] as const
test.each(missing)('%i %s: a missing method? %s', (code, message, isMissing) => {
  expect(isMethodMissing(new NodeRefusal('debug_traceBlockByHash', code, message, undefined))).toBe(isMissing)
})

test.each([
  [413, true],
  [504, true],
  [429, false],
  [500, false],
  [502, false],
  [503, false],
])('status %i says that there was too much to say: %s', async (status, isTooMuch) => {
  const url = await nodeAnswering(saying('<html></html>', status))
  const error = await jsonRpc(url, 1_000)
    .call('trace_block', [])
    .catch((thrown) => thrown)
  expect(error).toBeInstanceOf(NodeSilence)
  expect(error instanceof AnswerTooMuch).toBe(isTooMuch)
})
