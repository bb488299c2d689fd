import type { KeyObject } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { ApiKey, ApiKeys, Scope } from '../../accounts/api_key.ts'
import type { Clock } from '../../clock.ts'
import type { Problem } from '../errors.ts'
import { type AddressSet, addressSet } from '../limits/address_set.ts'
import type { ClientAddress } from '../limits/client_address.ts'
import { type Guesses, tooManyGuesses } from '../limits/guesses.ts'
import { type Credentials, readCredentials } from './credentials.ts'
import { isSignedBy } from './signature.ts'

const TOLERANCE_SECONDS = 300
const noSecrets: readonly KeyObject[] = []
const noBody = Buffer.alloc(0)

export type Authenticated =
  | { readonly ok: true; readonly key: ApiKey; readonly signature: string }
  | { readonly ok: false; readonly rejection: Problem }

/**
 * Proves who sent the request, on its raw bytes, before anything of it is parsed. In this order: shape of the
 * headers, signature, timestamp, scope, address. Whoever cannot sign learns nothing about keys.
 */
export type Authenticate = (request: FastifyRequest, scope: Scope) => Promise<Authenticated>

export function authenticator(
  apiKeys: ApiKeys,
  clock: Pick<Clock, 'wallMs'>,
  addressOf: ClientAddress,
  guesses: Guesses,
): Authenticate {
  const allowLists = new WeakMap<ApiKey, AddressSet>()
  return async (request, scope) => {
    const credentials = readCredentials(request.raw)
    if (!credentials.ok) return credentials
    const { keyId } = credentials.value
    const key = await guesses.look(keyId, request.raw, () => apiKeys.find(keyId))
    // Also of a key that was not looked up: how long it takes tells nothing.
    const isProved = isGenuine(request, credentials.value, key === 'refused' ? null : key)
    if (key === 'refused') return { ok: false, rejection: tooManyGuesses }
    if (!isProved || key === null) {
      // As of an unknown key, or the difference would tell which keys there are.
      if (key !== null && !guesses.count(request.raw)) return { ok: false, rejection: tooManyGuesses }
      // The signature may be right: to call it wrong would have the client look for a fault that is ours.
      if (key?.unopened !== undefined) throw key.unopened
      return refused('INVALID_SIGNATURE', 'the API key is unknown or the signature is wrong')
    }
    request.exchange.keyId = key.keyId
    const serverSeconds = Math.floor(clock.wallMs() / 1000)
    const late = isLate(credentials.value.timestamp, serverSeconds)
    if (late) return { ok: false, rejection: expired(serverSeconds) }
    // Not before: whoever knows a key's id, or has an old request of it, could keep it looking used.
    apiKeys.noteUse(key)
    if (!key.scopes.includes(scope)) return refused('FORBIDDEN', `the API key has no scope ${scope}`)
    if (!isFromAllowedAddress(key, addressOf(request.raw), allowLists)) {
      return refused('FORBIDDEN', 'the API key may not be used from this address')
    }
    return { ok: true, key, signature: credentials.value.signature }
  }
}

function isGenuine(request: FastifyRequest, credentials: Credentials, key: ApiKey | null): boolean {
  // The body of a GET is not read, so nobody can say that it was signed.
  if (!Buffer.isBuffer(request.body) && hasBody(request.raw)) return false
  const signed = {
    timestamp: credentials.timestamp,
    method: request.raw.method ?? '',
    target: request.raw.url ?? '',
    body: bodyOf(request),
  }
  return isSignedBy(key?.secrets ?? noSecrets, signed, credentials.signature)
}

function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  return encoding !== undefined || Number.parseInt(length, 10) > 0
}

/** The raw bytes: the server parses no body before its signature is checked. */
export function bodyOf(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : noBody
}

function isLate(timestamp: string, serverSeconds: number): boolean {
  return Math.abs(Number.parseInt(timestamp, 10) - serverSeconds) > TOLERANCE_SECONDS
}

function expired(serverSeconds: number): Problem {
  return {
    code: 'TIMESTAMP_EXPIRED',
    message: `X-API-TIMESTAMP must be within ${TOLERANCE_SECONDS} s of our clock; see server_time`,
    server_time: serverSeconds,
  }
}

function isFromAllowedAddress(
  key: ApiKey,
  address: string,
  allowLists: WeakMap<ApiKey, AddressSet>,
): boolean {
  if (key.ipAllow.length === 0) return true
  let allowed = allowLists.get(key)
  if (allowed === undefined) {
    allowed = addressSet(key.ipAllow)
    allowLists.set(key, allowed)
  }
  return allowed.has(address)
}

function refused(
  code: 'INVALID_SIGNATURE' | 'FORBIDDEN',
  message: string,
): { readonly ok: false; readonly rejection: Problem } {
  return { ok: false, rejection: { code, message } }
}
