import type { SignedRequest } from './alterations.ts'

/** Requests that were rightly signed, and never arrived. */
export type Captured = { readonly create: SignedRequest; readonly look: SignedRequest }

export type Told = {
  readonly what: string
  /** One character is one byte. */
  bytes(captured: Captured): string
}

type Changes = {
  readonly start?: string
  /** Instead of the length of the body. */
  readonly framing?: readonly string[]
  readonly body?: string
  readonly change?: (lines: readonly string[]) => readonly string[]
  readonly newLine?: string
}

function write(request: SignedRequest, changes: Changes = {}): string {
  const { method, target, keyId, timestamp, signature } = request
  const body = changes.body ?? request.body.toString('latin1')
  const newLine = changes.newLine ?? '\r\n'
  const lines = [
    'Host: cambist.test',
    'Content-Type: application/json',
    `X-API-KEY: ${keyId}`,
    `X-API-TIMESTAMP: ${timestamp}`,
    `X-API-SIGN: ${signature}`,
    ...(changes.framing ?? [`Content-Length: ${body.length}`]),
  ]
  const changed = changes.change?.(lines) ?? lines
  return [changes.start ?? `${method} ${target} HTTP/1.1`, ...changed, '', body].join(newLine)
}

function more(...lines: readonly string[]): Changes {
  return { change: (usual) => [...usual, ...lines] }
}

function without(name: string): (lines: readonly string[]) => readonly string[] {
  return (lines) => lines.filter((line) => !line.startsWith(`${name}:`))
}

/** The line of this header becomes these. */
function instead(name: string, ...others: readonly string[]): Changes {
  return { change: (lines) => lines.flatMap((line) => (line.startsWith(`${name}:`) ? others : [line])) }
}

function chunk(text: string, size = text.length.toString(16)): string {
  return `${size}\r\n${text}\r\n`
}

const LAST_CHUNK = '0\r\n\r\n'
const CHUNKED = 'Transfer-Encoding: chunked'

/** The create with its body in chunks, framed in this way. */
function chunkedAs(framing: readonly string[], frame = (body: string) => chunk(body) + LAST_CHUNK) {
  return ({ create }: Captured) => write(create, { framing, body: frame(bodyOf(create)) })
}

function bodyOf({ body }: SignedRequest): string {
  return body.toString('latin1')
}

function ofCreate(changes: (create: SignedRequest) => Changes) {
  return ({ create }: Captured) => write(create, changes(create))
}

/** A request without credentials, whose body is the captured request as a whole. */
function carrier(start: string, { look }: Captured, framing?: readonly string[]): string {
  const inner = write(look, { framing: [], body: '' })
  const lines = [
    start,
    'Host: x',
    'Content-Type: application/json',
    ...(framing ?? [`Content-Length: ${inner.length}`]),
  ]
  return `${[...lines, '', ''].join('\r\n')}${inner}`
}

function table(rows: Readonly<Record<string, (captured: Captured) => string>>): readonly Told[] {
  return Object.entries(rows).map(([what, bytes]) => ({ what, bytes }))
}

const lengths = table({
  'a length, then chunks': (sent) =>
    chunkedAs([`Content-Length: ${bodyOf(sent.create).length}`, CHUNKED])(sent),
  'chunks, then a length': (sent) =>
    chunkedAs([CHUNKED, `Content-Length: ${bodyOf(sent.create).length}`])(sent),
  'chunks, and the length of a shorter body': chunkedAs([CHUNKED, 'Content-Length: 4']),
  'an encoding that is no chunked': chunkedAs(['Transfer-Encoding: xchunked']),
  'chunked in quotes': chunkedAs(['Transfer-Encoding: "chunked"']),
  'chunked and identity': chunkedAs(['Transfer-Encoding: chunked, identity']),
  'chunked and gzip': chunkedAs(['Transfer-Encoding: chunked, gzip']),
  'chunked on two lines, then identity': chunkedAs([CHUNKED, 'Transfer-Encoding: identity']),
  'a space before the colon of the encoding': chunkedAs(['Transfer-Encoding : chunked']),
  'the encoding on a folded line': chunkedAs(['Transfer-Encoding:\r\n chunked']),
  'a vertical tab before the encoding': chunkedAs(['Transfer-Encoding: \vchunked']),
  'the encoding under a misspelt name, and a length': (sent) =>
    chunkedAs(['Transfer_Encoding: chunked', `Content-Length: ${bodyOf(sent.create).length}`])(sent),
  'identity, and a length': ofCreate((create) => ({
    framing: ['Transfer-Encoding: identity', `Content-Length: ${bodyOf(create).length}`],
  })),
  'the same length twice': ofCreate((create) => more(`Content-Length: ${bodyOf(create).length}`)),
  'a list of lengths': ofCreate((create) => ({
    framing: [`Content-Length: ${bodyOf(create).length}, ${bodyOf(create).length}`],
  })),
  'a signed length': ofCreate((create) => ({ framing: [`Content-Length: +${bodyOf(create).length}`] })),
  'a hexadecimal length': ofCreate((create) => ({
    framing: [`Content-Length: 0x${bodyOf(create).length.toString(16)}`],
  })),
  'a length with a space inside': ofCreate(() => ({ framing: ['Content-Length: 1 0'] })),
  'a length in other digits': ofCreate(() => ({ framing: ['Content-Length: \xef\xbc\x91'] })),
  'a length of 2^64': ofCreate(() => ({ framing: ['Content-Length: 18446744073709551616'] })),
  'a length that is a byte short': ofCreate((create) => ({
    framing: [`Content-Length: ${bodyOf(create).length - 1}`],
  })),
  'a length that is five bytes long': ofCreate((create) => ({
    framing: [`Content-Length: ${bodyOf(create).length + 5}`],
  })),
  'no length at all': ofCreate(() => ({ framing: [] })),
})

const chunks = table({
  'a chunk whose size has a sign': chunkedAs(
    [CHUNKED],
    (body) => chunk(body, `+${body.length.toString(16)}`) + LAST_CHUNK,
  ),
  'a chunk whose size has 0x': chunkedAs(
    [CHUNKED],
    (body) => chunk(body, `0x${body.length.toString(16)}`) + LAST_CHUNK,
  ),
  'a chunk of 2^64': chunkedAs([CHUNKED], (body) => chunk(body, '10000000000000000') + LAST_CHUNK),
  'a chunk longer than it says': chunkedAs([CHUNKED], (body) => chunk(body, '4') + LAST_CHUNK),
  'a chunk without its line break': chunkedAs(
    [CHUNKED],
    (body) => `${body.length.toString(16)}\r\n${body}${LAST_CHUNK}`,
  ),
  'chunks with bare line feeds': chunkedAs(
    [CHUNKED],
    (body) => `${body.length.toString(16)}\n${body}\n0\n\n`,
  ),
  'a line feed in a chunk extension': chunkedAs(
    [CHUNKED],
    (body) => chunk(body, `${body.length.toString(16)};a\nb`) + LAST_CHUNK,
  ),
  'a NUL in a chunk size': chunkedAs(
    [CHUNKED],
    (body) => chunk(body, `${body.length.toString(16)}\0`) + LAST_CHUNK,
  ),
  'twenty thousand bytes of chunk extensions': chunkedAs(
    [CHUNKED],
    (body) => chunk(body, `${body.length.toString(16)};${'a'.repeat(20_000)}`) + LAST_CHUNK,
  ),
  'a chunk too many': chunkedAs([CHUNKED], (body) => chunk(body) + chunk(' ') + LAST_CHUNK),
  'the credentials in the trailer': ({ create }) => {
    const { keyId, timestamp, signature } = create
    const trailer = `X-API-KEY: ${keyId}\r\nX-API-TIMESTAMP: ${timestamp}\r\nX-API-SIGN: ${signature}\r\n`
    const start = `POST ${create.target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${CHUNKED}\r\n`
    return `${start}\r\n${chunk(bodyOf(create))}0\r\n${trailer}\r\n`
  },
  'the signature in the trailer': ({ create }) =>
    write(create, {
      framing: [CHUNKED],
      change: without('X-API-SIGN'),
      body: `${chunk(bodyOf(create))}0\r\nX-API-SIGN: ${create.signature}\r\n\r\n`,
    }),
})

const headers = table({
  'the key twice': ofCreate(({ keyId }) => more(`x-api-key: ${keyId}`)),
  'the signature twice': ofCreate(({ signature }) => more(`X-Api-Sign: ${signature}`)),
  'the timestamp twice': ofCreate(({ timestamp }) => more(`X-API-Timestamp: ${timestamp}`)),
  'a wrong signature, then the right one': ofCreate(({ signature }) =>
    instead('X-API-SIGN', `X-API-SIGN: ${'0'.repeat(64)}`, `X-API-SIGN: ${signature}`),
  ),
  'the signature in a list': ofCreate(({ signature }) =>
    instead('X-API-SIGN', `X-API-SIGN: ${signature}, ${signature}`),
  ),
  'an empty signature, then the right one': ofCreate(({ signature }) =>
    instead('X-API-SIGN', 'X-API-SIGN:', `X-API-SIGN: ${signature}`),
  ),
  'the signature on a folded line': ofCreate(({ signature }) =>
    instead('X-API-SIGN', 'X-API-SIGN:', ` ${signature}`),
  ),
  'half the signature on a folded line': ofCreate(({ signature }) =>
    instead('X-API-SIGN', `X-API-SIGN: ${signature.slice(0, 32)}`, `\t${signature.slice(32)}`),
  ),
  'a NUL behind the signature': ofCreate(({ signature }) =>
    instead('X-API-SIGN', `X-API-SIGN: ${signature}\0`),
  ),
  'a carriage return behind the signature': ofCreate(({ signature }) =>
    instead('X-API-SIGN', `X-API-SIGN: ${signature}\rX-A: b`),
  ),
  'a no-break space behind the signature': ofCreate(({ signature }) =>
    instead('X-API-SIGN', `X-API-SIGN: ${signature}\xa0`),
  ),
  'a form feed behind the key': ofCreate(({ keyId }) => instead('X-API-KEY', `X-API-KEY: ${keyId}\f`)),
  'a space before the colon': ofCreate(({ keyId }) => instead('X-API-KEY', `X-API-KEY : ${keyId}`)),
  'underscores in the name': ofCreate(({ keyId }) => instead('X-API-KEY', `X_API_KEY: ${keyId}`)),
  'the Kelvin sign in the name': ofCreate(({ keyId }) =>
    instead('X-API-KEY', `X-API-\xe2\x84\xaaEY: ${keyId}`),
  ),
  'a signature with twenty thousand bytes': ofCreate(({ signature }) =>
    instead('X-API-SIGN', `X-API-SIGN: ${signature}${'0'.repeat(20_000)}`),
  ),
  'two thousand headers before the credentials': ofCreate(() => ({
    change: (lines) => [...Array.from({ length: 2_100 }, () => 'a: 1'), ...lines],
  })),
  'bare line feeds': ofCreate(() => ({ newLine: '\n' })),
  'bare carriage returns': ofCreate(() => ({ newLine: '\r' })),
  'a line without a colon': ofCreate(() => more('X-Nothing')),
  'the credentials in the query': ({ look: { method, target, keyId, signature, timestamp } }) =>
    `${method} ${target}?X-API-KEY=${keyId}&X-API-SIGN=${signature}&X-API-TIMESTAMP=${timestamp} HTTP/1.1\r\nHost: x\r\n\r\n`,
})

const startLines = table({
  'a tab after the method': ofCreate(({ target }) => ({ start: `POST\t${target} HTTP/1.1` })),
  'a tab before the version': ofCreate(({ target }) => ({ start: `POST ${target}\tHTTP/1.1` })),
  'a space in the target': ofCreate(({ target }) => ({ start: `POST ${target} HTTP/1.1 HTTP/1.1` })),
  'a NUL in the target': ofCreate(({ target }) => ({ start: `POST ${target}\0 HTTP/1.1` })),
  'a NUL in the method': ofCreate(({ target }) => ({ start: `POST\0 ${target} HTTP/1.1` })),
  'the preface of HTTP/2': ({ create }) => `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${write(create)}`,
  'a whole URL': ofCreate(({ target }) => ({ start: `POST http://cambist.test${target} HTTP/1.1` })),
  'another method, and an override': ofCreate(({ target }) => ({
    start: `PUT ${target} HTTP/1.1`,
    ...more('X-HTTP-Method-Override: POST', 'X-Method-Override: POST'),
  })),
  'another path, and an override': ofCreate(({ target }) => ({
    start: 'POST /v1/currencies HTTP/1.1',
    ...more(`X-Original-URL: ${target}`, `X-Rewrite-URL: ${target}`),
  })),
})

const connections = table({
  'a signed request inside the body of one without credentials': (sent) =>
    carrier('POST /v1/order/create HTTP/1.1', sent),
  'a signed request inside the body of one that is not expected': (sent) =>
    carrier('PUT /v1/order/create HTTP/1.1', sent),
  'a signed request inside the body of one for nothing': (sent) => carrier('POST /v1/nothing HTTP/1.1', sent),
  'a signed request inside the body of a GET': (sent) => carrier('GET /v1/nothing HTTP/1.1', sent),
  'a signed request inside the body of a HEAD for nothing': (sent) =>
    carrier('DELETE /v1/nothing HTTP/1.1', sent),
  'a signed request inside a body that is too large': (sent) => {
    const padded = carrier('POST /v1/order/create HTTP/1.1', sent, ['Content-Length: 20000'])
    const head = padded.indexOf('\r\n\r\n') + 4
    return padded.slice(0, head) + padded.slice(head).padEnd(20_000)
  },
  'a signed request inside a body that asks to go on': (sent) =>
    carrier('POST /v1/order/create HTTP/1.1', sent).replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n'),
  'a signed request behind an Upgrade': (sent) =>
    carrier('POST /v1/nothing HTTP/1.1', sent).replace(
      '\r\n\r\n',
      '\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n',
    ),
  'a signed request behind a CONNECT': ({ look }) =>
    `CONNECT elsewhere.test:443 HTTP/1.1\r\nHost: x\r\n\r\n${write(look, { framing: [], body: '' })}`,
  'a signed request behind a malformed one': ({ look }) =>
    `GET / HTTP/1.1\r\nHost: x\r\nA B: c\r\n\r\n${write(look, { framing: [], body: '' })}`,
  'an altered request behind a good one': ({ create }) =>
    `GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n${write(create, { body: bodyOf(create).replace('1234.5', '2234.5') })}`,
  'a body that belongs to the request before': ({ create }) =>
    `POST /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\nGET /a ${write(create, { body: ' ' })}`,
  'a signed body under the head of another': ({ create, look }) =>
    write(look, { body: bodyOf(create) }).replace('GET', 'POST'),
})

/** None of these may be taken for a signed request. */
export const smuggled: readonly Told[] = [...lengths, ...chunks, ...headers, ...startLines, ...connections]

/** These say what was signed, in other words that HTTP has for it, and are taken for it once. */
export const onlyWrittenDifferently: readonly Told[] = table({
  'just as it was signed': ({ look }) => write(look, { framing: [], body: '' }),
  'empty lines before it': ({ look }) => `\r\n\r\n${write(look, { framing: [], body: '' })}`,
  'two spaces after the method': ({ look }) =>
    write(look, { framing: [], body: '', start: `GET  ${look.target} HTTP/1.1` }),
  'names in small letters': ({ look }) =>
    write(look, {
      framing: [],
      body: '',
      change: (lines) => lines.map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase())),
    }),
  'spaces and tabs around the values': ({ look }) =>
    write(look, {
      framing: [],
      body: '',
      change: (lines) => lines.map((line) => line.replace(': ', ':\t  ').concat(' \t')),
    }),
  'no version': ({ look }) => write(look, { framing: [], body: '', start: `GET ${look.target}` }),
  'HTTP/1.0': ({ look }) => write(look, { framing: [], body: '', start: `GET ${look.target} HTTP/1.0` }),
  'a body in chunks with extensions and a trailer': chunkedAs(
    [CHUNKED],
    (body) => `${chunk(body.slice(0, 5), '5;a=b;c="d"')}${chunk(body.slice(5))}0\r\nX-Trailer: 1\r\n\r\n`,
  ),
  'headers that some proxies obey': ({ look }) =>
    write(look, {
      framing: [],
      body: '',
      ...more('X-Original-URL: /metrics', 'X-HTTP-Method-Override: DELETE', 'X-Forwarded-Host: evil'),
    }),
})
