import { createSecretKey } from 'node:crypto'
import { connect } from 'node:net'
import { Writable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import pino from 'pino'
import { Registry } from 'prom-client'
import type { ApiKey } from '../../accounts/api_key.ts'
import { systemClock } from '../../clock.ts'
import { sign } from '../auth/signature.ts'
import { defaultLimits, type HttpLimits, type HttpParts } from '../parts.ts'
import { buildServer } from '../server.ts'
import type { Answer } from './answer.ts'
import { conformity } from './conformity.ts'
import { type FakeDesk, fakeDesk, quietFeed } from './fake_desk.ts'
import { fakeWebhooks } from './fake_webhooks.ts'
import { noAccounts } from './no_accounts.ts'

export const API_KEY = 'ck_test'
export const API_SECRET = 'secret_canary_0123456789abcdef'
const secret = createSecretKey(Buffer.from(API_SECRET))

export const fullKey: ApiKey = {
  keyId: API_KEY,
  accountId: 'account-1',
  scopes: ['read', 'trade'],
  ipAllow: [],
  secrets: [secret],
}

export type { Answer }

export type Harness = {
  readonly app: FastifyInstance
  readonly base: string
  readonly desk: FakeDesk
  /** Everything logged so far, as text; a request's line comes a moment after its answer. */
  readonly logText: () => string
  /** Every answer is checked against the served document. */
  request(method: string, target: string, options?: RequestOptions): Promise<Answer>
  /** Signed with the test's key, unless told otherwise. */
  signed(method: string, target: string, body?: string, options?: SignedOptions): Promise<Answer>
  /** Bytes to the socket, bytes from it until it closes. */
  talk(bytes: string | Buffer): Promise<string>
  close(): Promise<void>
}

type RequestOptions = {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}
type SignedOptions = {
  readonly headers?: Readonly<Record<string, string>>
  readonly timestamp?: string
  readonly key?: string
  readonly secret?: string
}

export type HarnessOptions = {
  readonly desk?: FakeDesk
  readonly keys?: readonly ApiKey[]
  readonly limits?: Partial<HttpLimits>
  readonly parts?: Partial<HttpParts>
}

/** Enough that no test meets a limit it does not ask for. */
const wideLimits = { unitsPerMinute: 1_000_000, burstPerSecond: 1_000_000 }

/** The real server on a real socket, over a fake desk. */
export async function startHttp(options: HarnessOptions = {}): Promise<Harness> {
  const desk = options.desk ?? fakeDesk()
  const { webhooks, endpoints } = fakeWebhooks()
  const keys = options.keys ?? [fullKey]
  const lines: string[] = []
  const logger = pino(
    new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk))
        done()
      },
    }),
  )
  let base = ''
  const app = buildServer({
    desk,
    unsubscribing: { tokenOf: () => '', read: () => null, unsubscribe: async () => {} },
    webhooks,
    endpoints,
    feed: quietFeed,
    apiKeys: { find: async (keyId) => keys.find((key) => key.keyId === keyId) ?? null, noteUse: () => {} },
    clock: systemClock(),
    owners: noAccounts,
    baseUrl: () => base,
    limits: { ...defaultLimits, ...wideLimits, ...options.limits },
    readiness: async () => ({ ready: true, checks: { database: { ok: true } } }),
    metrics: new Registry(),
    logger,
    ...options.parts,
  })
  base = await app.listen({ host: '127.0.0.1', port: 0 })
  const conforms = conformity(app.swagger() as unknown as Record<string, unknown>)
  const request = async (method: string, target: string, given: RequestOptions = {}) => {
    const answer = await fetchAnswer(base + target, method, given)
    conforms(method, target, answer)
    return answer
  }
  return {
    app,
    base,
    desk,
    logText: () => lines.join(''),
    request,
    signed: (method, target, body, given = {}) =>
      request(method, target, {
        ...(body !== undefined && { body }),
        headers: { ...signedHeaders(method, target, body ?? '', given), ...given.headers },
      }),
    talk: (bytes) => talk(Number.parseInt(new URL(base).port, 10), bytes),
    close: () => app.close(),
  }
}

async function fetchAnswer(url: string, method: string, { headers, body }: RequestOptions): Promise<Answer> {
  const response = await fetch(url, {
    method,
    ...(headers && { headers }),
    ...(body !== undefined && { body: body as NonNullable<RequestInit['body']> }),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const text = bytes.toString()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== ''
  return {
    status: response.status,
    headers: response.headers,
    bytes,
    text,
    json: isJson ? JSON.parse(text) : undefined,
  }
}

export function signedHeaders(
  method: string,
  target: string,
  body: string,
  options: SignedOptions = {},
): Record<string, string> {
  const timestamp = options.timestamp ?? String(Math.floor(systemClock().wallMs() / 1000))
  const key = options.secret === undefined ? secret : createSecretKey(Buffer.from(options.secret))
  return {
    'X-API-KEY': options.key ?? API_KEY,
    'X-API-SIGN': sign(key, { timestamp, method, target, body: Buffer.from(body) }),
    'X-API-TIMESTAMP': timestamp,
    ...(body !== '' && { 'Content-Type': 'application/json' }),
  }
}

function talk(port: number, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()))
    socket.on('error', (error) =>
      chunks.length > 0 ? resolve(Buffer.concat(chunks).toString()) : reject(error),
    )
  })
}
