import { createHmac } from 'node:crypto'
import { connect } from 'node:net'
import { CambistError, type Client, type ClientOptions, createClient } from '@cambist/sdk'
import { createAccount } from '../../src/accounts/accounts.ts'
import type { KeysPlace, NewKey, ToldSecret } from '../../src/accounts/keys.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { createSecretBox } from '../../src/accounts/secret_box.ts'
import { sandboxKey } from '../../src/config/sandbox_secrets.ts'
import { operator } from '../../src/db/audit_log.ts'
import type { Answer } from '../../src/http/testing/harness.ts'
import { conformingFetch, readAnswer, readDocument } from './conforming_fetch.ts'
import { impatient } from './impatient.ts'
import { PATIENCE_MS } from './patience.ts'
import type { TestSandbox } from './test_sandbox.ts'

export type { Answer }

export type Given = {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export type SignedGiven = {
  readonly as?: ToldSecret
  readonly headers?: Readonly<Record<string, string>>
  /** Epoch seconds; unless told, now. */
  readonly timestamp?: string
}

/** The interface itself, where the client would not say such things; every JSON answer is held against /openapi.json. */
export type Wire = {
  readonly document: Readonly<Record<string, unknown>>
  /** The published client as the demo account. */
  readonly client: Client
  clientOf(key: ToldSecret, more?: Partial<ClientOptions>): Client
  request(method: string, target: string, given?: Given): Promise<Answer>
  /** Signed as docs/api.md says, by an implementation of the test's own. */
  signed(method: string, target: string, body?: string | Uint8Array, given?: SignedGiven): Promise<Answer>
  headersFor(
    method: string,
    target: string,
    body: string | Uint8Array,
    given?: SignedGiven,
  ): Record<string, string>
  /** Bytes to the socket, bytes from it until it closes. */
  talk(bytes: string | Buffer): Promise<string>
  /** How many answers were held against the document. */
  answersChecked(): number
}

type Place = Pick<TestSandbox, 'baseUrl' | 'account'>

export async function openWire({ baseUrl, account }: Place): Promise<Wire> {
  const document = await readDocument(baseUrl)
  const conforming = conformingFetch(baseUrl)
  const demo: ToldSecret = { keyId: account.api_key, secret: account.api_secret }
  const clientOf: Wire['clientOf'] = ({ keyId, secret }, more) =>
    createClient({
      baseUrl,
      apiKey: keyId,
      apiSecret: secret,
      fetch: conforming.fetch,
      ...impatient,
      ...more,
    })
  const request: Wire['request'] = async (method, target, { headers, body } = {}) => {
    const init = { method, ...(headers && { headers }), ...(body !== undefined && { body: bodyOf(body) }) }
    return readAnswer(await conforming.fetch(baseUrl + target, init))
  }
  const headersFor: Wire['headersFor'] = (method, target, body, { as = demo, headers, timestamp } = {}) => {
    const at = timestamp ?? String(Math.floor(Date.now() / 1_000))
    const mac = createHmac('sha256', as.secret).update(`${at}\n${method}\n${target}\n`).update(body)
    return {
      'X-API-KEY': as.keyId,
      'X-API-SIGN': mac.digest('hex'),
      'X-API-TIMESTAMP': at,
      'Content-Type': 'application/json',
      ...headers,
    }
  }
  return {
    document,
    client: clientOf(demo),
    clientOf,
    request,
    headersFor,
    signed: (method, target, body, given) =>
      request(method, target, {
        headers: headersFor(method, target, body ?? '', given),
        ...(body !== undefined && { body }),
      }),
    talk: (bytes) => talk(Number(new URL(baseUrl).port), bytes),
    answersChecked: conforming.checked,
  }
}

/** Why a call failed; a call that succeeds fails the test. */
export async function failureOf(call: Promise<unknown>): Promise<CambistError> {
  const outcome = await call.then(
    (value) => value,
    (error: unknown) => error,
  )
  if (outcome instanceof CambistError) return outcome
  throw new Error(`expected a refusal, got ${JSON.stringify(outcome)}`, { cause: outcome })
}

/** The accounts of the sandbox's database, to be changed as `cambist keys` does. */
export function keysPlaceOf({ service }: TestSandbox): KeysPlace {
  return {
    db: service.world.db,
    box: createSecretBox([sandboxKey('account')]),
    wallMs: () => Date.now(),
  }
}

/** A key of a new account, unless `accountId` names one. */
export async function makeKey(sandbox: TestSandbox, wanted: Partial<NewKey> = {}): Promise<ToldSecret> {
  const place = keysPlaceOf(sandbox)
  const accountId = wanted.accountId ?? (await makeAccount(place))
  const key = await createKey(place, operator, {
    label: 'test',
    scopes: ['read', 'trade'],
    ipAllow: [],
    ...wanted,
    accountId,
  })
  if (!key.ok) throw new Error(key.rejection.message)
  sandbox.addSecret(key.value.secret)
  return key.value
}

async function makeAccount(place: KeysPlace): Promise<string> {
  const account = await createAccount(place, operator, { name: 'another', email: null })
  if (!account.ok) throw new Error(account.rejection.message)
  return account.value.accountId
}

function bodyOf(body: string | Uint8Array): NonNullable<RequestInit['body']> {
  return body as NonNullable<RequestInit['body']>
}

function talk(port: number, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const told = () => Buffer.concat(chunks).toString()
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error(`no end after: ${told()}`)))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('close', () => resolve(told()))
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' && chunks.length > 0 ? resolve(told()) : reject(error),
    )
  })
}
