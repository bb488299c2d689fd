import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { verifyWebhook } from '@cambist/sdk'
import { Webhook } from 'standardwebhooks'
import { afterEach, expect, test } from 'vitest'
import type { WebhookCall } from '../channel.ts'
import { limitConnecting, openRequest } from './open_request.ts'
import { signedHeaders } from './sign.ts'
import { certificate } from './testing/certificate.ts'
import { webhookChannel } from './webhook_channel.ts'

/**
 * What: what a receiver gets, and what each kind of receiver's answer means.
 * How: real servers on this machine; only how long an attempt may take is shortened, where its end is what is shown.
 */
const opened: (() => void)[] = []
const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const body = JSON.stringify({ type: 'order.status_changed', data: { destination_tag: 'Grüße 🦊' } })

afterEach(() => {
  for (const close of opened.splice(0)) close()
})

const call = (url: string): WebhookCall => ({
  url,
  id: 'evt_CB4821093377160542_2',
  body,
  secrets: [secret],
  atWallMs: Date.now(),
})

async function listening(server: Server): Promise<number> {
  opened.push(() => {
    server.closeAllConnections()
    server.close()
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return (server.address() as AddressInfo).port
}

/** Longer than any machine takes for what does come. */
const patient = { connectMs: 60_000, allMs: 60_000 }

/** Delivers once to a receiver that does as it is told. */
async function deliverTo(
  answer: (request: IncomingMessage, response: ServerResponse, text: string) => void,
  limits = patient,
) {
  const received: { headers: IncomingMessage['headers']; url: string; text: string }[] = []
  const port = await listening(
    createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const text = Buffer.concat(chunks).toString()
      received.push({ headers: request.headers, url: request.url ?? '', text })
      answer(request, response, text)
    }),
  )
  const channel = webhookChannel({ loopbackAllowed: true, limits })
  const told = await channel.deliver(call(`http://localhost:${port}/hooks/a%20b?c=d`))
  await channel.close()
  return { told, received }
}

test('the receiver gets the exact bytes, which the sdk and the reference library both verify', async () => {
  const { told, received } = await deliverTo((_request, response) => response.end('thanks'))
  expect(told).toEqual({ kind: 'answered', status: 200, head: 'thanks' })
  expect(received).toHaveLength(1)
  const [{ headers, url, text } = { headers: {}, url: '', text: '' }] = received
  expect(text).toBe(body)
  expect(url).toBe('/hooks/a%20b?c=d')
  expect(headers).toMatchObject({
    host: expect.stringMatching(/^localhost:\d+$/),
    'content-type': 'application/json',
    'webhook-id': 'evt_CB4821093377160542_2',
    connection: 'close',
  })
  expect(await verifyWebhook({ headers, body: text, secret })).toEqual(JSON.parse(body))
  expect(new Webhook(secret).verify(text, headers as Record<string, string>)).toEqual(JSON.parse(body))
})

test('signatures are those of the vectors', () => {
  const file = new URL('./webhook_vectors.json', import.meta.url)
  type Vector = { id: string; timestamp: string; body: string; secrets: string[]; signature: string }
  const vectors = JSON.parse(readFileSync(file, 'utf8')) as readonly Vector[]
  expect(vectors.length).toBeGreaterThan(3)
  for (const { timestamp, signature, ...message } of vectors) {
    expect(signedHeaders({ ...message, atWallMs: Number(timestamp) * 1_000 + 999 })).toEqual({
      'webhook-id': message.id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signature,
    })
  }
})

test.each([200, 201, 204, 299, 300, 304, 400, 401, 404, 410, 429, 500, 503])(
  'a status is told as it is: %i',
  async (status) => {
    const { told } = await deliverTo((_request, response) => response.writeHead(status).end())
    expect(told).toEqual({ kind: 'answered', status, head: '' })
  },
)

test.each([301, 302, 303, 307, 308])('a redirect is not followed: %i', async (status) => {
  let visits = 0
  const elsewhere = await listening(
    createServer((_request, response) => {
      visits += 1
      response.end()
    }),
  )
  const { told } = await deliverTo((_request, response) =>
    response.writeHead(status, { location: `http://127.0.0.1:${elsewhere}/` }).end('over there'),
  )
  expect(told).toEqual({ kind: 'answered', status, head: 'over there' })
  expect(visits).toBe(0)
})

test('a receiver that never answers, one that hangs up and one that is not there are failures', async () => {
  const { told: silence } = await deliverTo(() => {}, { ...patient, allMs: 200 })
  expect(silence).toEqual({ kind: 'failed', why: 'there was no answer in time' })
  const { told: reset } = await deliverTo((request) => (request.socket as Socket).resetAndDestroy())
  expect(reset).toEqual({ kind: 'failed', why: expect.stringContaining('ECONNRESET') })
  const { told: nonsense } = await deliverTo((request) => request.socket.end('220 smtp.example ESMTP\r\n'))
  expect(nonsense).toEqual({ kind: 'failed', why: expect.stringContaining('HPE_') })
  const channel = webhookChannel({ loopbackAllowed: true, limits: patient })
  expect(await channel.deliver(call('http://127.0.0.1:1/'))).toEqual({
    kind: 'failed',
    why: expect.stringContaining('ECONNREFUSED'),
  })
})

const REST = `${'x'.repeat(20)}\r\n`

test.each([
  ['204 with a body', 204, `HTTP/1.1 204 No Content\r\n\r\n${REST}`],
  [
    '204 with a body, and the end of it said',
    204,
    `HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n${REST}`,
  ],
  ['204 of HTTP/1.0 with a body', 204, `HTTP/1.0 204 No Content\r\n\r\n${REST}`],
  ['more than its length', 200, `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${REST}`],
  ['410 with more than its length', 410, `HTTP/1.1 410 Gone\r\nContent-Length: 2\r\n\r\n${REST}`],
  ['a bad chunk', 200, `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n${REST}`],
])('an answer counts whatever breaks behind its head: %s', async (_, status, bytes) => {
  const { told } = await deliverTo(({ socket }) => socket.end(bytes))
  expect(told).toMatchObject({ kind: 'answered', status })
})

test('an answer counts though the line is cut behind its head, with what was heard of it', async () => {
  const { told } = await deliverTo(({ socket }) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nso far', () =>
      setTimeout(() => (socket as Socket).resetAndDestroy(), 50),
    )
  })
  expect(told).toEqual({ kind: 'answered', status: 200, head: 'so far' })
})

test('an address where nobody answers is a failure, whatever the network says of it', async () => {
  const channel = webhookChannel({
    loopbackAllowed: false,
    limits: { connectMs: 100, allMs: 5_000 },
    resolve: async () => ['3fff:1000::1'],
  })
  const told = await channel.deliver(call('https://hooks.example.test/'))
  expect(told.kind).toBe('failed')
})

test('an answer that does not end counts by its status, and no more than 64 kB of it are read', async () => {
  const drip = async () => {
    const dripping = await deliverTo(
      (_request, response) => {
        response.writeHead(200)
        response.write('so far')
      },
      { ...patient, allMs: 1_000 },
    )
    return dripping.told
  }
  // On a busy machine the time may be over before anything was said.
  await expect.poll(drip).toEqual({ kind: 'answered', status: 200, head: 'so far' })
  let written = 0
  const flood = await deliverTo((_request, response) => {
    response.writeHead(500)
    const pour = () => {
      while (!response.destroyed && response.write(Buffer.alloc(16_384, 'a'))) written += 16_384
    }
    response.on('drain', pour)
    pour()
  })
  expect(flood.told).toEqual({ kind: 'answered', status: 500, head: 'a'.repeat(1_000) })
  // What lies in buffers on the way was written, and not read.
  expect(written).toBeLessThan(16_000_000)
})

test('what comes before an answer is no answer, and whoever says nothing else is not listened to', async () => {
  const interim = 'HTTP/1.1 103 Early Hints\r\nlink: </>\r\n\r\n'
  const { told: few } = await deliverTo((request, response) => {
    request.socket.write(interim.repeat(5))
    response.end('taken')
  })
  expect(few).toEqual({ kind: 'answered', status: 200, head: 'taken' })
  let written = 0
  const { told: flood } = await deliverTo(({ socket }) => {
    socket.on('error', () => {})
    const pour = () => {
      while (!socket.destroyed && socket.write(interim.repeat(400))) written += 400 * interim.length
    }
    socket.on('drain', pour)
    pour()
  })
  expect(flood).toEqual({ kind: 'failed', why: 'there were too many interim answers (1xx)' })
  // What lies in buffers on the way was written, and not read.
  expect(written).toBeLessThan(16_000_000)
})

test('an answer that is no text is told as far as it is one', async () => {
  const { told } = await deliverTo((_request, response) => response.end(Buffer.from([0x61, 0xff, 0x62])))
  expect(told).toEqual({ kind: 'answered', status: 200, head: 'a\ufffdb' })
})

test('closing ends what is under way, and nothing is sent afterwards', async () => {
  const port = await listening(createServer(() => {}))
  const channel = webhookChannel({ loopbackAllowed: true })
  const under = channel.deliver(call(`http://127.0.0.1:${port}/`))
  await channel.close()
  expect(await under).toEqual({ kind: 'failed', why: 'the service was stopped' })
  expect(await channel.deliver(call(`http://127.0.0.1:${port}/`))).toEqual({
    kind: 'failed',
    why: 'the service was stopped',
  })
})

/** What a TLS receiver sees of a request to its name that was sent to the address that was looked at. */
async function sendEncrypted(trusted: boolean, host: string = certificate.name) {
  const seen: { host: string | undefined; name: unknown }[] = []
  const names: string[] = []
  const port = await listening(
    createTlsServer(
      {
        ...certificate,
        SNICallback: (name, done) => {
          names.push(name)
          done(null)
        },
      },
      (request, response) => {
        seen.push({
          host: request.headers.host,
          name: (request.socket as unknown as { servername: unknown }).servername,
        })
        response.end()
      },
    ) as unknown as Server,
  )
  const known = getCACertificates('default')
  if (trusted) setDefaultCACertificates([...known, certificate.cert])
  try {
    const url = new URL(`https://${host}:${port}/`)
    const request = openRequest(call(url.href), url, ['127.0.0.1'])
    const outcome = await new Promise<string>((resolve) => {
      request.on('response', (response) => resolve(String(response.statusCode)))
      request.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? error.message))
      request.end(body)
    })
    request.destroy()
    return { outcome, seen, names, port }
  } finally {
    setDefaultCACertificates(known)
  }
}

test('the connection goes to the address that was looked at, with the name for SNI, certificate and Host', async () => {
  const { outcome, seen, names, port } = await sendEncrypted(true)
  expect(outcome).toBe('200')
  expect(names).toEqual([certificate.name])
  expect(seen).toEqual([{ host: `${certificate.name}:${port}`, name: certificate.name }])
})

test('a host that ends in a dot is called without it in TLS, and as it was written in Host', async () => {
  const { outcome, seen, names, port } = await sendEncrypted(true, `${certificate.name}.`)
  expect(outcome).toBe('200')
  expect(names).toEqual([certificate.name])
  expect(seen).toEqual([{ host: `${certificate.name}.:${port}`, name: certificate.name }])
})

test('an address is no name for SNI, and has to stand in the certificate', async () => {
  const { outcome, seen, names } = await sendEncrypted(true, '127.0.0.1')
  expect(outcome).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  expect({ seen, names }).toEqual({ seen: [], names: [] })
})

test('a certificate that nobody vouches for ends it before anything is sent', async () => {
  const { outcome, seen } = await sendEncrypted(false)
  expect(outcome).toBe('DEPTH_ZERO_SELF_SIGNED_CERT')
  expect(seen).toEqual([])
})

test('a receiver that takes the connection and never encrypts it is given up', async () => {
  const silent = createTcpServer((socket) => opened.push(() => socket.destroy()))
  opened.push(() => silent.close())
  await once(silent.listen(0, '127.0.0.1'), 'listening')
  const url = new URL(`https://${certificate.name}:${(silent.address() as AddressInfo).port}/`)
  const request = openRequest(call(url.href), url, ['127.0.0.1'])
  limitConnecting(request, 100)
  const [error] = await once(request.end(body), 'error')
  expect(error.message).toBe('there was no connection in time')
})
