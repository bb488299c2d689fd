import { once } from 'node:events'
import { existsSync, linkSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import { parseExact, stringifyExact } from '../../domain/exact_json.ts'
import type { Signer } from '../signer.ts'
import {
  bitcoinIntent,
  coin,
  customerBitcoin,
  evmIntent,
  keys,
  sealed,
  startSigner,
} from '../testing/fixtures.ts'
import { memoryStore } from '../testing/memory_store.ts'
import { PROTOCOL } from './protocol.ts'
import { SignerUnavailable, socketSigner } from './socket_client.ts'
import { MESSAGE_BYTES_MAX } from './socket_lines.ts'
import { serveSigner } from './socket_server.ts'

let folder: string
let path: string
const running = new Set<() => void | Promise<void>>()

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cambist-signer-'))
  path = join(folder, 'signer.sock')
})
afterEach(async () => {
  for (const stop of [...running].reverse()) await stop()
  running.clear()
  rmSync(folder, { recursive: true })
})

async function serve(signer: Signer = startSigner().signer) {
  const errors: unknown[] = []
  const server = await serveSigner({ path, signer, onError: (error) => errors.push(error) })
  running.add(() => server.close())
  return {
    errors,
    close() {
      running.clear()
      return server.close()
    },
  }
}

/** Signing takes seconds at times, and on a busy machine more: how long is not what is shown here. */
function connectClient(timeoutMs = 110_000) {
  const client = socketSigner({ path, timeoutMs })
  running.add(() => client.close())
  return client
}

/** Sends these bytes as they are and gives the answers that came before `count` of them, or the end. */
async function talk(bytes: string | Buffer, count: number): Promise<readonly unknown[]> {
  const socket = connect(path)
  socket.write(bytes)
  let text = ''
  for await (const chunk of socket) {
    text += String(chunk)
    if (text.split('\n').length > count) break
  }
  socket.destroy()
  return text.trimEnd().split('\n').map(parseExact)
}

test('over the socket everything is as it is in process', async () => {
  const direct = startSigner().signer
  await serve()
  const client = connectClient()
  const toCustomerBitcoin = sealed({ destination: customerBitcoin, payoutAsset: 'BTC:BTC' })
  const payeeKey = { purpose: 'deposit', index: 7 } as const
  const gas = { payoutId: 'CB1:5', to: keys.address('evm', payeeKey) }
  for (const [intent, authority] of [
    [evmIntent({ units: 2n ** 60n + 1n }), sealed()],
    [evmIntent({ nonce: 9 }), sealed()],
    [bitcoinIntent({ payoutId: 'CB1:2' }), toCustomerBitcoin],
    [evmIntent({ ...gas, units: 1n }), sealed({ kind: 'sweep', payeeKey })],
    [evmIntent({ ...gas, units: 10n ** 18n, payoutId: 'CB1:3' }), sealed({ kind: 'sweep', payeeKey })],
    [
      evmIntent({ ...gas, payoutId: 'CB1:4' }),
      sealed({ kind: 'sweep', payeeKey: { ...payeeKey, index: 8 } }),
    ],
    [evmIntent(), { ...sealed(), destination: 'elsewhere' }],
  ] as const) {
    expect(await client.sign(intent, authority)).toStrictEqual(await direct.sign(intent, authority))
  }
  for (const asset of ['BTC:BTC', 'ETH:ETH', 'USDC:BEP20'] as const) {
    expect(await client.room(asset)).toStrictEqual(await direct.room(asset))
  }
  await expect(client.room('nothing' as 'BTC:BTC')).rejects.toThrow('asset is not an asset we know')
  for (const [payoutId, attempt] of [
    ['CB1:1', 1],
    ['CB1:2', 1],
    ['CB1:3', 0],
    ['CB9:1', 0],
  ] as const) {
    expect(await client.lastSigned(payoutId)).toBe(attempt)
    expect(await direct.lastSigned(payoutId)).toBe(attempt)
  }
  for (const [orderId, number] of [
    ['CB1', 5],
    ['CB9', 0],
  ] as const) {
    expect(await client.lastOutflow(orderId)).toBe(number)
    expect(await direct.lastOutflow(orderId)).toBe(number)
  }
  for (const orderId of ['CB1:1', '', 'x'.repeat(65), 7 as never, null as never]) {
    await expect(client.lastOutflow(orderId)).rejects.toThrow('orderId is malformed')
    await expect(direct.lastOutflow(orderId)).rejects.toThrow('orderId is malformed')
  }
  for (const payoutId of ['CB1', 'CB1:0', `${'x'.repeat(65)}:1`, 7 as never, null as never]) {
    await expect(client.lastSigned(payoutId)).rejects.toThrow('payoutId is malformed')
    await expect(direct.lastSigned(payoutId)).rejects.toThrow('payoutId is malformed')
  }
  expect(await client.addresses('bitcoin', 'deposit', 3, 200)).toEqual(
    await direct.addresses('bitcoin', 'deposit', 3, 200),
  )
})

test('only our own user may open the socket, and the umask of the process stays as it was', async () => {
  const before = process.umask()
  await serve()
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(process.umask()).toBe(before)
})

test('two clients ask for the same payout at once and get the same bytes', async () => {
  const { signer, store } = startSigner()
  await serve(signer)
  const clients = [connectClient(), connectClient()]
  const asks = Array.from({ length: 40 }, (_, at) => clients[at % 2]?.sign(evmIntent(), sealed()))
  const answers = await Promise.all(asks)
  expect(store.records).toHaveLength(1)
  for (const answer of answers) expect(answer).toEqual({ ok: true, value: store.records[0]?.tx })
})

test('many requests on one line find their own answers', async () => {
  await serve()
  const client = connectClient()
  const asked = Array.from({ length: 100 }, (_, at) => client.addresses('evm', 'deposit', at, 1))
  const expected = Array.from({ length: 100 }, (_, index) => [
    keys.address('evm', { purpose: 'deposit', index }),
  ])
  expect(await Promise.all(asked)).toEqual(expected)
})

test('a transaction of 500 inputs fits', async () => {
  await serve()
  const inputs = Array.from({ length: 500 }, (_, index) => ({ ...coin(1, 1_000_000n), index }))
  const payment = { address: customerBitcoin, satoshi: 100_000_000n }
  const key = { purpose: 'change', index: 4 } as const
  const change = { address: keys.address('bitcoin', key), satoshi: 399_950_000n, key }
  const intent = bitcoinIntent({ inputs, payment, change, feeSatoshi: 50_000n })
  expect(
    await connectClient().sign(intent, sealed({ destination: customerBitcoin, payoutAsset: 'BTC:BTC' })),
  ).toMatchObject({
    ok: true,
  })
})

test('what is no request is answered with an error, and the line and the others go on', async () => {
  const { errors } = await serve()
  const garbage = [
    '',
    '{',
    'null',
    '[]',
    `{"id":"1","protocol":${PROTOCOL},"method":"sign","params":[]}`,
    `{"id":1,"protocol":${PROTOCOL},"method":"sign"}`,
    '\0',
  ]
  const unknown = `{"id":3,"protocol":${PROTOCOL},"method":"privateKey","params":[]}`
  const wrong = `{"id":4,"protocol":${PROTOCOL},"method":"addresses","params":["evm","deposit",0,{"$bigint":"1"}]}`
  const good = `{"id":5,"protocol":${PROTOCOL},"method":"addresses","params":["evm","deposit",0,1]}`
  const bytes = Buffer.concat([
    Buffer.from([0xff, 10]),
    Buffer.from(`${[...garbage, unknown, wrong, good].join('\n')}\n`),
  ])
  const answers = await talk(bytes, garbage.length + 4)
  const notUnderstood = expect.stringContaining('a request is one line')
  expect(answers).toHaveLength(garbage.length + 4)
  expect(answers.filter((answer) => (answer as { id: unknown }).id === null)).toEqual(
    Array.from({ length: garbage.length + 1 }, () => ({
      id: null,
      protocol: PROTOCOL,
      error: notUnderstood,
    })),
  )
  expect(answers).toContainEqual({
    ...{ id: 3, protocol: PROTOCOL },
    error: 'a method is addresses, room, lastSigned, lastOutflow or sign',
  })
  expect(answers).toContainEqual({
    id: 4,
    protocol: PROTOCOL,
    error: 'count is a whole number from 1 to 1000',
  })
  expect(answers).toContainEqual({
    id: 5,
    protocol: PROTOCOL,
    result: [keys.address('evm', { purpose: 'deposit', index: 0 })],
  })
  expect(errors).toEqual([])
})

test('who asks in another protocol is told what to start, and nothing is signed', async () => {
  const { signer, store } = startSigner()
  await serve(signer)
  const params = [evmIntent(), sealed()]
  const of = (protocol: unknown) => `${stringifyExact({ id: 1, protocol, method: 'sign', params })}\n`
  const spoken: readonly [unknown, string][] = [
    [PROTOCOL + 1, `its protocol is ${PROTOCOL + 1}, that of the signer ${PROTOCOL}`],
    ['1', 'its protocol is an earlier one'],
  ]
  for (const [protocol, why] of spoken) {
    const error = expect.stringMatching(`another release.*${why}.*start both of the same release`)
    expect(await talk(of(protocol), 1)).toEqual([{ id: 1, protocol: PROTOCOL, error }])
  }
  // One of an earlier release, and one that has put its parameters elsewhere.
  for (const line of ['{"id":1,"method":"sign","params":[]}\n', '{"id":1,"protocol":7}\n']) {
    expect(await talk(line, 1)).toMatchObject([{ id: 1, error: expect.stringContaining('another release') }])
  }
  expect(store.records).toEqual([])
})

test('no JSON value in place of an intent or authority brings the server down', async () => {
  await serve()
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (intent, authority) => {
      const [answer] = await talk(
        `${JSON.stringify({ id: 1, protocol: PROTOCOL, method: 'sign', params: [intent, authority] })}\n`,
        1,
      )
      expect(answer).toHaveProperty(
        answer !== null && typeof answer === 'object' && 'error' in answer ? 'error' : 'result.ok',
        expect.anything(),
      )
    }),
    { numRuns: 30 },
  )
  expect(await connectClient().sign(evmIntent(), sealed())).toMatchObject({ ok: true })
})

test('a message without end is cut off at the bound; the other clients do not notice', async () => {
  await serve()
  const client = connectClient()
  expect(await client.addresses('evm', 'deposit', 0, 1)).toHaveLength(1)
  const answers = await talk('x'.repeat(MESSAGE_BYTES_MAX + 1), Number.POSITIVE_INFINITY)
  expect(answers).toEqual([
    { id: null, protocol: PROTOCOL, error: `a message is longer than ${MESSAGE_BYTES_MAX} bytes` },
  ])
  expect(await client.addresses('evm', 'deposit', 0, 1)).toHaveLength(1)
})

test('a client that leaves in the middle of a word or an answer does no harm', async () => {
  const { errors } = await serve()
  for (const words of [
    '{"id":1,',
    `{"id":1,"protocol":${PROTOCOL},"method":"addresses","params":["evm","deposit",0,1000]}\n`,
  ]) {
    const socket = connect(path)
    await once(socket, 'connect')
    socket.write(words)
    socket.destroy()
    await once(socket, 'close')
  }
  expect(await connectClient().addresses('evm', 'deposit', 0, 1)).toHaveLength(1)
  expect(errors).toEqual([])
})

test("what goes wrong inside is told to the server's log and not to the client", async () => {
  const secret = new Error('password of the database: hunter2')
  const store = { ...memoryStore(), attempts: () => Promise.reject(secret) }
  const { errors } = await serve(startSigner({}, store).signer)
  const client = connectClient()
  await expect(client.sign(evmIntent(), sealed())).rejects.toThrow('the signer failed; its log says why')
  expect(errors).toEqual([secret])
  expect(await client.addresses('evm', 'deposit', 0, 1)).toHaveLength(1)
})

test('a signer that cannot read its record, or knows no such question, never says that it has signed nothing', async () => {
  const away = () => Promise.reject(new Error('the database is away'))
  const store = { ...memoryStore(), attempts: away, lastOutflow: away }
  const failing = await serve(startSigner({}, store).signer)
  await expect(connectClient().lastSigned('CB1:1')).rejects.toThrow('the signer failed; its log says why')
  await expect(connectClient().lastOutflow('CB1')).rejects.toThrow('the signer failed; its log says why')
  await failing.close()
  // What one answers that knows fewer.
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () =>
      socket.write(`{"id":1,"protocol":${PROTOCOL},"error":"a method is addresses, room or sign"}\n`),
    )
  }).listen(path)
  await once(server, 'listening')
  running.add(() => {
    server.close()
  })
  await expect(connectClient().lastSigned('CB1:1')).rejects.toThrow('a method is addresses, room or sign')
  await expect(connectClient().lastOutflow('CB1')).rejects.toThrow('a method is addresses, room or sign')
})

test('a client finds a restarted signer again; until then it says that there is none', async () => {
  const store = memoryStore()
  const client = connectClient()
  const unavailable = () => expect(client.sign(evmIntent(), sealed())).rejects.toThrow(SignerUnavailable)
  await unavailable()
  const first = await serve(startSigner({}, store).signer)
  const answer = await client.sign(evmIntent(), sealed())
  expect(answer).toMatchObject({ ok: true })
  await first.close()
  expect(existsSync(path)).toBe(false)
  await unavailable()
  await serve(startSigner({}, store).signer)
  expect(await client.sign(evmIntent(), sealed())).toEqual(answer)
})

test('a line that is cut rejects what waits on it, and closing waits for what is being worked on', async () => {
  const { signer, store } = startSigner()
  const asked = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const server = await serve({
    ...signer,
    async sign(intent, authority) {
      asked.resolve()
      await goOn.promise
      return signer.sign(intent, authority)
    },
  })
  const waiting = expect(connectClient().sign(evmIntent(), sealed())).rejects.toThrow(SignerUnavailable)
  await asked.promise
  const closing = server.close()
  await waiting
  expect(store.records).toHaveLength(0)
  goOn.resolve()
  await closing
  expect(store.records).toHaveLength(1)
})

test('a request without an answer ends at its time; a late answer harms nobody', async () => {
  const { signer } = startSigner()
  const goOn = Promise.withResolvers<void>()
  await serve({
    ...signer,
    async sign(intent, authority) {
      await goOn.promise
      return signer.sign(intent, authority)
    },
    async lastSigned(payoutId) {
      await goOn.promise
      return signer.lastSigned(payoutId)
    },
  })
  const client = connectClient(200)
  await expect(client.sign(evmIntent(), sealed())).rejects.toThrow('no answer within 200 ms')
  await expect(client.lastSigned('CB1:1')).rejects.toThrow('no answer within 200 ms')
  const line = client.connection?.()
  expect(line).toBeTruthy()
  goOn.resolve()
  // Its time is short: on a busy machine one question may not be enough.
  await expect.poll(() => client.addresses('evm', 'deposit', 0, 1)).toHaveLength(1)
  await expect.poll(() => client.sign(evmIntent(), sealed())).toMatchObject({ ok: true })
  expect(client.connection?.(), 'the line is not cut').toBe(line)
})

test('a closed client and a request that is too long are refused before anything is sent', async () => {
  await serve()
  const client = connectClient()
  const long = { ...sealed(), destination: 'x'.repeat(MESSAGE_BYTES_MAX) }
  await expect(client.sign(evmIntent(), long)).rejects.toThrow('too long')
  expect(await client.addresses('evm', 'deposit', 0, 1)).toHaveLength(1)
  client.close()
  await expect(client.sign(evmIntent(), sealed())).rejects.toThrow(SignerUnavailable)
})

test('a peer that answers nonsense is not believed', async () => {
  const answers = [
    'nonsense\n',
    '7\n',
    '{"id":null,"error":"?"}\n',
    `{"id":1,"protocol":${PROTOCOL},"result":{"ok":true}}\n`,
    `{"id":1,"protocol":${PROTOCOL}}\n`,
    `{"id":1,"protocol":${PROTOCOL},"result":null}\n`,
    `{"id":1,"protocol":${PROTOCOL},"result":"0"}\n`,
    `{"id":1,"protocol":${PROTOCOL},"result":-1}\n`,
    `{"id":1,"protocol":${PROTOCOL},"result":{"$bigint":"0"}}\n`,
    'x'.repeat(MESSAGE_BYTES_MAX + 1),
  ]
  let next = 0
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(answers[next] ?? ''))
  }).listen(path)
  await once(server, 'listening')
  running.add(() => {
    server.close()
  })
  for (next = 0; next < answers.length; next += 1) {
    const client = connectClient()
    await expect(client.sign(evmIntent(), sealed())).rejects.toThrow()
    client.close()
    const other = connectClient()
    await expect(other.room('ETH:ETH')).rejects.toThrow()
    other.close()
    const third = connectClient()
    await expect(third.lastSigned('CB1:1')).rejects.toThrow()
    third.close()
  }
})

/** What kill -9 leaves: the file without its listener. */
async function leaveSocket() {
  const left = createServer().listen(path)
  await once(left, 'listening')
  const file = join(folder, 'moved.sock')
  linkSync(path, file)
  left.close()
  await once(left, 'close')
  linkSync(file, path)
}

test('of two signers that find a socket left behind at once one serves, and nobody takes its socket away', async () => {
  await leaveSocket()
  const { signer } = startSigner()
  const [first, second] = await Promise.allSettled(
    [1, 2].map(() => serveSigner({ path, signer, onError: () => {} })),
  )
  for (const one of [first, second]) if (one?.status === 'fulfilled') running.add(() => one.value.close())
  expect([first, second].map((one) => one?.status).sort()).toEqual(['fulfilled', 'rejected'])
  expect(await connectClient().addresses('evm', 'deposit', 0, 1)).toHaveLength(1)
})

test('a socket left behind is replaced; a live signer and any other file are not', async () => {
  await leaveSocket()
  const { signer } = startSigner()
  await serve(signer)
  expect(await connectClient().addresses('evm', 'deposit', 0, 1)).toHaveLength(1)
  await expect(serveSigner({ path, signer, onError: () => {} })).rejects.toThrow('another signer listens')
  expect(await connectClient().addresses('evm', 'deposit', 0, 1)).toHaveLength(1)

  const other = join(folder, 'notes.txt')
  writeFileSync(other, 'precious')
  await expect(serveSigner({ path: other, signer, onError: () => {} })).rejects.toThrow('is not a socket')
  expect(readFileSync(other, 'utf8')).toBe('precious')
})

test('what travels is exact JSON, one line a message', async () => {
  await serve()
  const request = { id: 1, protocol: PROTOCOL, method: 'sign', params: [evmIntent(), sealed()] }
  const [answer] = await talk(`${stringifyExact(request)}\n`, 1)
  assert(typeof answer === 'object' && answer !== null, 'there is an answer')
  expect(answer).toMatchObject({ id: 1, result: { ok: true } })
})
