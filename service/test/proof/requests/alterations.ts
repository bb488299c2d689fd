import { createHmac } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { ToldSecret } from '../../../src/accounts/keys.ts'
import type { Chance } from '../../harness/chance.ts'
import type { Header, Sendable } from './sendable.ts'
import { alterByte } from './wire_spoilers.ts'

/** A request that was signed rightly, with what it was signed with, which no longer has to be true. */
export type SignedRequest = {
  readonly method: string
  readonly target: string
  readonly body: Buffer
  readonly keyId: string
  readonly timestamp: string
  readonly signature: string
  readonly headers: readonly Header[]
  /** Where these stand instead of the usual header once each. */
  readonly credentials?: readonly Header[]
}

export type Altered = { readonly what: string; readonly request: SignedRequest }

type Alteration = (request: SignedRequest, chance: Chance, ways: Ways) => Altered | null

/** What an attacker may have besides the request: other requests that were signed, and a key of their own. */
export type Ways = {
  readonly others: readonly SignedRequest[]
  readonly attacker: ToldSecret
  readonly owner: ToldSecret
}

export function signRequest(
  { secret, keyId }: ToldSecret,
  parts: Pick<SignedRequest, 'method' | 'target' | 'body'>,
  timestamp = String(Math.floor(Date.now() / 1_000)),
): SignedRequest {
  const signature = hmac(secret, `${timestamp}\n${parts.method}\n${parts.target}\n`, parts.body)
  const headers: Header[] = parts.body.length > 0 ? [['Content-Type', 'application/json']] : []
  return { ...parts, keyId, timestamp, signature, headers }
}

function hmac(secret: string, text: string, body: Buffer): string {
  return createHmac('sha256', secret).update(text, 'latin1').update(body).digest('hex')
}

export function toSendable(request: SignedRequest): Sendable {
  const { method, target, body, headers } = request
  const credentials = request.credentials ?? rightHeaders(request)
  return { method, target, body, headers: [...headers, ...credentials] }
}

/** One alteration by chance; what it leaves as it was, or as a server has to read it anyway, is none. */
export function alter(request: SignedRequest, chance: Chance, ways: Ways): Altered {
  for (;;) {
    const altered = chance.pick(chance.pick(alterations))(request, chance, ways)
    if (altered !== null && !isTheSame(request, altered.request)) return altered
  }
}

/**
 * Spaces and tabs around the value of a header are no part of it (RFC 9110 5.5), and a recipient may take more than one
 * space for the one before the target (RFC 9112 3), as Node does.
 */
function isTheSame(one: SignedRequest, other: SignedRequest): boolean {
  const shown = (request: SignedRequest) => {
    const { method, headers, body, ...rest } = toSendable(request)
    const target = rest.target.replace(/^ +/, '')
    const trimmed = headers.map(([name, value]) => `${name}:${value.replace(/^[ \t]+|[ \t]+$/g, '')}`)
    return JSON.stringify([method, target, trimmed, body.toString('latin1')])
  }
  return shown(one) === shown(other)
}

function altered(what: string, request: SignedRequest): Altered {
  return { what, request }
}

/** Ways to write the same path that some proxy or framework holds for the same. */
function lookAlikes(target: string, chance: Chance): readonly string[] {
  const at = 1 + chance.below(target.length - 1)
  const [before, here, after] = [target.slice(0, at), target.charAt(at), target.slice(at + 1)]
  const code = here.charCodeAt(0).toString(16)
  const swapCase = here === here.toLowerCase() ? here.toUpperCase() : here.toLowerCase()
  return [
    `${before}%${code}${after}`,
    `${before}%25${code}${after}`,
    `${before}%u00${code}${after}`,
    `${before}${swapCase}${after}`,
    `${before}${here}%00${after}`,
    `${before}${here}\t${after}`,
    `${before}${here}%09${after}`,
    `${before}${here}/./${after}`,
    target.replace('/', '//'),
    target.replace('/', '/./'),
    target.replace('/', '/x/../'),
    target.replace('/', '/%2e%2e/'),
    target.replace('/', '/%2e/'),
    target.replace('/', '/..;/'),
    target.replaceAll('/', '%2f').replace('%2f', '/'),
    target.replaceAll('/', '%2F').replace('%2F', '/'),
    target.replaceAll('/', '\\').replace('\\', '/'),
    `${target}/`,
    `${target}?`,
    `${target}#`,
    `${target}#top`,
    `${target}?#`,
    `${target}&`,
    `${target};a=b`,
    `${target}%20`,
    `${target}+`,
    `${target}.json`,
    `${target}%0d%0aX-API-KEY:%20x`,
    `http://cambist.test${target}`,
    `HTTP://CAMBIST.TEST:80${target}`,
    `//cambist.test${target}`,
    target.slice(1),
    target.includes('%20') ? target.replace('%20', '+') : target.replace('+', '%20'),
    target.replace(/\?(.*)&(.*)$/, '?$2&$1'),
    target.replace('?', '?&'),
    target.replace('&', '&&'),
    target.replace('&', ';'),
    `${target}${target.includes('?') ? '&' : '?'}a=1`,
    target.replace(/(CB\d{15})(\d)/, (_, most: string, last: string) => most + ((Number(last) + 1) % 10)),
    target.normalize('NFKD').replace('1', '\xef\xbc\x91'),
  ]
}

/** The same to whoever reads JSON, but not the same bytes; and not the same at all. */
function otherBodies(body: Buffer, chance: Chance): readonly (Buffer | string)[] {
  const text = body.toString()
  return [
    alterByte(body, chance),
    alterByte(alterByte(body, chance), chance),
    `${text} `,
    `${text}\n`,
    `\r\n${text}`,
    `\ufeff${text}`,
    text.replace('":', '" :'),
    text.replace(/"(\w)/, (_, one: string) => `"\\u00${one.charCodeAt(0).toString(16)}`),
    text.replace(/\d(?=[,}])/, (digit) => String((Number(digit) + 1) % 10)),
    text.replace(/(\d)(?=[,}])/, '$1.0'),
    text.replace(/(\d)(?=[,}])/, '$10'),
    text.replace('{', '{"refund_address":null,'),
    text.replace('}', ',"callback_url":"https://elsewhere.test/"}'),
    text.replace(/"0x\w+"/, '"0x52908400098527886E0F7030069857D2E4169EE7"'),
    text.replace('continue', 'refund'),
    text.toLowerCase(),
    JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).toReversed())),
    text + text,
    '',
    '{}',
    gzipSync(body),
    Buffer.from(text, 'utf16le'),
  ]
}

const inParts: readonly Alteration[] = [
  (request, chance) => {
    const methods = [
      'GET',
      'HEAD',
      'POST',
      'PUT',
      'PATCH',
      'DELETE',
      'OPTIONS',
      'get',
      'Post',
      'QUERY',
      'GET\t',
    ]
    const method = chance.pick(methods)
    return altered(`the method is ${JSON.stringify(method)}`, { ...request, method })
  },
  (request, chance) =>
    altered('the target is written differently', {
      ...request,
      target: chance.pick(lookAlikes(request.target, chance)),
    }),
  (request, chance) => {
    const target = alterByte(Buffer.from(request.target), chance).toString('latin1')
    return altered('a byte of the target is another', { ...request, target })
  },
  (request, chance) => {
    if (request.body.length === 0) return altered('it has a body', { ...request, body: Buffer.from('{}') })
    return altered('the body is another', {
      ...request,
      body: Buffer.from(chance.pick(otherBodies(request.body, chance))),
    })
  },
  (request, chance) => {
    if (request.body.length === 0) return null
    return altered('a byte of the body is another', { ...request, body: alterByte(request.body, chance) })
  },
]

const FULL_WIDTH_ZERO = 0xff10

/** Digits that are no ASCII, as their bytes in UTF-8. */
function fullWidth(text: string): string {
  const wide = text.replaceAll(/\d/g, (digit) => String.fromCodePoint(FULL_WIDTH_ZERO + Number(digit)))
  return Buffer.from(wide).toString('latin1')
}

const inCredentials: readonly Alteration[] = [
  (request, chance) => {
    const { timestamp } = request
    const others = [
      ...[1, -1, 2, -60, 299, -299, 301, -301, 86_400].map((by) => String(Number(timestamp) + by)),
      ...[
        `0${timestamp}`,
        `+${timestamp}`,
        `-${timestamp}`,
        `${timestamp}.0`,
        `${timestamp}e0`,
        `${timestamp}000`,
      ],
      ...[
        `0x${Number(timestamp).toString(16)}`,
        fullWidth(timestamp),
        `${timestamp}, ${timestamp}`,
        `${timestamp}\0`,
        '',
      ],
      ...[timestamp.slice(0, -1), timestamp.replace(/(\d)$/, ' $1'), 'NaN', 'now'],
    ]
    return altered('the timestamp is another', { ...request, timestamp: chance.pick(others) })
  },
  (request, chance, { attacker }) => {
    const { keyId } = request
    const others = [
      attacker.keyId,
      keyId.toUpperCase(),
      keyId.slice(0, -1),
      `${keyId}0`,
      `${keyId}\0`,
      `${keyId},${keyId}`,
      `"${keyId}"`,
      keyId.replace('_', '-'),
      keyId.replace('_', ' '),
      "ck_' OR '1'='1",
      '__proto__',
      'constructor',
      'undefined',
      '',
    ]
    return altered('the key is another', { ...request, keyId: chance.pick(others) })
  },
  (request, chance) =>
    altered('a byte of the key is another', { ...request, keyId: alterText(request.keyId, chance) }),
  (request, chance) =>
    altered('a byte of the timestamp is another', {
      ...request,
      timestamp: alterText(request.timestamp, chance),
    }),
  (request, chance) =>
    altered('a byte of the signature is another', {
      ...request,
      signature: alterText(request.signature, chance),
    }),
  (request, chance) => {
    const { signature } = request
    const at = chance.below(signature.length)
    const digit = ((Number.parseInt(signature.charAt(at), 16) + 1 + chance.below(15)) % 16).toString(16)
    const flipped = signature.slice(0, at) + digit + signature.slice(at + 1)
    return altered('a digit of the signature is another', { ...request, signature: flipped })
  },
  (request, chance) => {
    const { signature } = request
    const others = [
      signature.toUpperCase(),
      signature.replace(/[a-f]/, (letter) => letter.toUpperCase()),
      signature.slice(0, 63),
      signature.slice(0, 32),
      `${signature}0`,
      `0x${signature}`,
      `sha256=${signature}`,
      `v1,${signature}`,
      `"${signature}"`,
      `${signature.slice(0, 32)} ${signature.slice(32)}`,
      `${signature}\0`,
      `${signature},${signature}`,
      signature.match(/../g)?.join(':') ?? '',
      fullWidth(signature),
      Buffer.from(signature, 'hex').toString('base64'),
      Buffer.from(signature, 'hex')
        .toString('latin1')
        .replaceAll(/[\r\n\0]/g, 'x'),
      [...signature].toReversed().join(''),
      '0'.repeat(64),
      'f'.repeat(64),
      'null',
      '',
    ]
    return altered('the signature is written differently', { ...request, signature: chance.pick(others) })
  },
]

function alterText(text: string, chance: Chance): string {
  return alterByte(Buffer.from(text), chance)
    .toString('latin1')
    .replaceAll(/[\r\n]/g, 'x')
}

/** Signed, but not what is sent, not by whom it says, or not now. */
const inMeaning: readonly Alteration[] = [
  (request, chance, { others }) =>
    altered('the signature is that of another request', {
      ...request,
      signature: chance.pick(others).signature,
    }),
  (request, chance, { others }) => {
    const { signature, timestamp } = chance.pick(others)
    return altered('signature and timestamp are those of another request', {
      ...request,
      signature,
      timestamp,
    })
  },
  (request, _chance, { attacker, owner }) => {
    const { signature } = signRequest(
      { keyId: owner.keyId, secret: attacker.secret },
      request,
      request.timestamp,
    )
    return altered('it is signed with the secret of another key', { ...request, signature })
  },
  (request, chance, { owner }) => {
    const { timestamp, method, target, body } = request
    const texts = [
      `${timestamp}${method}${target}`,
      `${timestamp}\r\n${method}\r\n${target}\r\n`,
      `${timestamp}\n${method.toLowerCase()}\n${target}\n`,
      `${timestamp}\n${method}\n${target}`,
      `${method}\n${timestamp}\n${target}\n`,
      `${timestamp}\n${method}\n${target.split('?')[0]}\n`,
      `${timestamp}\n${method}\nhttp://cambist.test${target}\n`,
      `${timestamp}\n${method}\n${encodeURI(`${target}é`)}\n`,
    ]
    const signature = chance.happens(0.1)
      ? hmac(owner.secret, `${timestamp}\n${method}\n${target}\n`, Buffer.concat([body, Buffer.from('\n')]))
      : hmac(owner.secret, chance.pick(texts), body)
    return altered('something like the request is signed', { ...request, signature })
  },
  (request, chance, { owner }) => {
    // The service's clock may be seconds further by the time that it looks.
    const away = chance.pick([-301, 330]) * (1 + chance.below(chance.pick([1, 10, 10_000])))
    const timestamp = String(Math.floor(Date.now() / 1_000) + away)
    return altered('it is signed at another time', { ...request, ...signRequest(owner, request, timestamp) })
  },
  (request, chance, { owner }) => {
    const now = Math.floor(Date.now() / 1_000)
    const written = [
      `0${now}`,
      `${now}.0`,
      `+${now}`,
      `${now}000`,
      `0x${now.toString(16)}`,
      ` ${now}\u00a0`,
      `${now}e0`,
    ]
    const timestamp = chance.pick(written)
    return altered('it is signed with an odd timestamp', {
      ...request,
      ...signRequest(owner, request, timestamp),
    })
  },
]

const names = ['X-API-KEY', 'X-API-TIMESTAMP', 'X-API-SIGN'] as const

const inHeaders: readonly Alteration[] = [
  (request, chance) => {
    const right = rightHeaders(request)
    const at = chance.below(3)
    const [name, value] = right[at] ?? ['', '']
    const wrong = chance.pick([value, alterText(value, chance).trim() || 'x', '', 'x'])
    const twice: Header[] = chance.happens(0.5)
      ? [
          [name, value],
          [name.toLowerCase(), wrong],
        ]
      : [
          [name, wrong],
          [name, value],
        ]
    const credentials = [...right.filter((_, each) => each !== at), ...twice]
    return altered(`${name} is there twice`, { ...request, credentials })
  },
  (request, chance) => {
    const name = chance.pick(names)
    const credentials = rightHeaders(request).filter(([each]) => each !== name)
    return altered(`${name} is missing`, { ...request, credentials })
  },
  (request, chance) => {
    const misspelt = (name: string) =>
      chance.pick([
        name.replaceAll('-', '_'),
        `${name} `,
        name.slice(2),
        ` ${name}`,
        `${name}\0`,
        name.replace('K', '\xe2\x84\xaa'),
      ])
    const at = chance.below(3)
    const credentials = rightHeaders(request).map(
      ([name, value], each): Header => [each === at ? misspelt(name) : name, value],
    )
    return altered('the name of a header is misspelt', { ...request, credentials })
  },
]

function rightHeaders({ keyId, timestamp, signature }: SignedRequest): Header[] {
  return [
    ['X-API-KEY', keyId],
    ['X-API-TIMESTAMP', timestamp],
    ['X-API-SIGN', signature],
  ]
}

const alterations = [inParts, inParts, inCredentials, inMeaning, inHeaders]
