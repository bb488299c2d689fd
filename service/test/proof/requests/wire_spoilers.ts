import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import type { Chance } from '../../harness/chance.ts'
import type { Header, Sendable } from './sendable.ts'
import type { Spoilt } from './spoilers.ts'

/** Something done to a request whose parts have become target, headers and body; null where it does not apply. */
type WireSpoiler = (request: Sendable, chance: Chance) => Spoilt<Sendable> | null

function refused(what: string, spoilt: Sendable): Spoilt<Sendable> {
  return { what, spoilt, expected: 'refusal' }
}

function withBody(request: Sendable, body: Buffer | string): Sendable {
  return { ...request, body: Buffer.from(body) }
}

function withHeader(request: Sendable, name: string, value: string): Sendable {
  const others = request.headers.filter(([each]) => each.toLowerCase() !== name.toLowerCase())
  return { ...request, headers: [...others, [name, value]] }
}

/** A byte inserted, removed or changed somewhere. */
export function alterByte(bytes: Buffer, chance: Chance): Buffer {
  const at = chance.below(bytes.length)
  const [before, here, after] = [bytes.subarray(0, at), bytes.subarray(at, at + 1), bytes.subarray(at + 1)]
  const other = chance.bytes(1)
  return Buffer.concat(
    chance.pick([
      [before, other, here, after],
      [before, after],
      [before, other, after],
    ]),
  )
}

/** The service reads no more than this. */
const BODY_BYTES_MAX = 16_384

const bodySpoilers: readonly WireSpoiler[] = [
  (request, chance) =>
    refused('the body is random bytes', withBody(request, chance.bytes(1 + chance.below(300)))),
  (request, chance) => {
    const cut = 1 + chance.below(request.body.length - 1)
    return refused('the body breaks off', withBody(request, request.body.subarray(0, cut)))
  },
  (request, chance) => {
    const more = chance.pick(['{}', ',', 'null', '}', '/* more */', '\0', '\u00a0', '// more'])
    return refused('something follows the body', withBody(request, request.body.toString() + more))
  },
  (request, chance) => {
    const json = request.body.toString()
    const others = [
      ['has a byte order mark', `\ufeff${json}`],
      ['is in UTF-16', Buffer.from(json, 'utf16le')],
      [
        'has bytes that are no UTF-8',
        Buffer.concat([Buffer.from('{"from":"'), Buffer.from([0xc0, 0xaf, 0xff]), Buffer.from('"}')]),
      ],
      ['is in single quotes', json.replaceAll('"', "'")],
      ['is an array', `[${json}]`],
      ['is text', JSON.stringify(json)],
      ['is null', 'null'],
      ['is a form', 'from=BTC&to=USDT'],
      ['is a bomb of brackets', '['.repeat(BODY_BYTES_MAX)],
      ['is a bomb of names', '{"a":'.repeat(3_000)],
      ['has a comma too much', json.replace(/\}$/, ',}')],
    ] as const
    const [what, body] = chance.pick(others)
    if (body === json) return null
    return refused(`the body ${what}`, withBody(request, body))
  },
  (request) => {
    const padding = ' '.repeat(BODY_BYTES_MAX + 1 - request.body.length)
    return refused('the body is too large by a byte', withBody(request, request.body.toString() + padding))
  },
  (request) => {
    const padding = ' '.repeat(BODY_BYTES_MAX - request.body.length)
    return {
      what: 'the body is as large as may be',
      spoilt: withBody(request, request.body.toString() + padding),
      expected: 'success',
    }
  },
  (request, chance) => ({
    what: 'a byte of the body is another',
    spoilt: withBody(request, alterByte(request.body, chance)),
    expected: 'either',
  }),
  (request, chance) => {
    const types = [
      '',
      'text/plain',
      'application/xml',
      'application/json-patch+json',
      'multipart/form-data; boundary=x',
      ';;;',
      'application/json; charset=utf-16',
      'application/json; charset=latin1',
      'application/x-www-form-urlencoded',
      'application/json, text/plain',
      `application/${'j'.repeat(5_000)}`,
    ]
    return refused('the Content-Type is another', withHeader(request, 'Content-Type', chance.pick(types)))
  },
  (request, chance) => {
    const types = [
      'application/json;charset=UTF-8',
      'APPLICATION/JSON',
      'application/json; charset="utf-8"',
      'application/json ;  charset=utf-8',
    ]
    return {
      what: 'the Content-Type is written differently',
      spoilt: withHeader(request, 'Content-Type', chance.pick(types)),
      expected: 'success',
    }
  },
  (request, chance) => {
    const [encoding, body] = chance.pick([
      ['gzip', gzipSync(request.body)],
      ['br', brotliCompressSync(request.body)],
      ['deflate', deflateSync(request.body)],
      ['gzip', request.body],
      ['x-unknown', request.body],
      ['identity, gzip', request.body],
      ['', request.body],
    ] as const)
    return refused(
      `the body is encoded as ${encoding}`,
      withBody(withHeader(request, 'Content-Encoding', encoding), body),
    )
  },
  (request, chance) => ({
    what: 'the body comes in pieces',
    spoilt: {
      ...(chance.happens(0.3) ? withHeader(request, 'Expect', '100-continue') : request),
      framing: 'chunks',
    },
    expected: 'success',
  }),
]

const targetSpoilers: readonly WireSpoiler[] = [
  (request, chance) => {
    const [path, query] = splitTarget(request.target)
    const others = [
      path.toUpperCase(),
      `${path}/`,
      `/${path}`,
      path.replace('/', '/./'),
      path.replace('/', '/x/../'),
      path.replace('/', '/%2e%2e/'),
      path.slice(0, -1),
      path.replace(/\/(?=[^/]*$)/, '%2f'),
      path.replace(/\/(?=[^/]*$)/, '\\'),
      `${path}%00`,
      `${path}\xff\xfe`,
      `${path}${'/a'.repeat(400)}`,
      `${path}${'a'.repeat(400)}`,
      `${path}%zz`,
      `${path}%ff`,
      `${path};v=1`,
      '/',
      '*',
      '',
    ]
    const what = 'the path is another'
    const other = chance.pick(others)
    const spoilt = { ...request, target: other + query }
    // A shorter name of an EOS account is a name as well, and an address of Solana has no checksum.
    return /^\/sandbox\/balance\/(EOS|SOL)\//.test(path) && other === path.slice(0, -1)
      ? { what, spoilt, expected: 'either' }
      : refused(what, spoilt)
  },
  (request, chance) => {
    const mark = request.target.includes('?') ? '&' : '?'
    const odd = [
      '%zz=1',
      '%ff=1',
      'x=%',
      '\xff=\xff',
      '=1',
      'x[]=1',
      'x[a][b]=1',
      'a=1;b=2',
      '%00=%00',
      '&&x&&',
      `x=${'1'.repeat(9_000)}`,
      'x=\\',
      '?',
      '__proto__[a]=1',
      "'=1",
    ]
    return refused('the query has something odd', {
      ...request,
      target: request.target + mark + chance.pick(odd),
    })
  },
  (request, chance) => ({
    what: 'a byte of the target is another',
    spoilt: {
      ...request,
      target: alterByte(Buffer.from(request.target, 'latin1'), chance).toString('latin1'),
    },
    expected: 'either',
  }),
  (request, chance) => {
    const [path, query] = splitTarget(request.target)
    const others = [
      `http://elsewhere.test${path}${query}`,
      `${path}${query}#there`,
      `${path}${query}&`,
      path.replace('v1', '%761') + query,
    ]
    return {
      what: 'the target is written differently',
      spoilt: { ...request, target: chance.pick(others) },
      expected: 'either',
    }
  },
]

function splitTarget(target: string): readonly [path: string, query: string] {
  const mark = target.indexOf('?')
  return mark === -1 ? [target, ''] : [target.slice(0, mark), target.slice(mark)]
}

const HARMLESS: readonly Header[] = [
  ['Accept', 'application/xml;q=0.9, text/html'],
  ['Accept-Encoding', 'gzip, br'],
  ['Range', 'bytes=0-0'],
  ['X-Forwarded-For', "'; --, 1.2.3.4, [::1]"],
  ['Cookie', `session=${'c'.repeat(3_000)}`],
  ['Origin', 'null'],
  ['X-HTTP-Method-Override', 'DELETE'],
  ['X-Original-URL', '/metrics'],
  ['Forwarded', 'for="_mystery"'],
  ['Authorization', 'Basic Og=='],
  ['Expect', 'wonders'],
  ['TE', 'trailers'],
  ['Connection', 'close'],
  ['If-Modified-Since', 'yesterday'],
  ['X-Odd', '\xff\x80 odd \t bytes'],
]

const headerSpoilers: readonly WireSpoiler[] = [
  (request, chance) => {
    const header = chance.pick(HARMLESS)
    return {
      what: `${header[0]} is there as well`,
      spoilt: { ...request, headers: [...request.headers, header] },
      // An owner's browser says one origin, and it counts.
      expected: request.headers.some(([name]) => name === 'Origin' && header[0] === name)
        ? 'either'
        : 'success',
    }
  },
  (request, chance) => {
    const header = chance.pick<Header>([
      ['X-Long', 'a'.repeat(20_000)],
      ['X-Nul', 'a\0b'],
      ['X-Fold', 'a\r\n b'],
      ['X Space', '1'],
      ['', '1'],
      ['Content-Length', '1'],
      ['Content-Length', '-1'],
      ['Transfer-Encoding', 'gzip'],
    ])
    // The length is told a second time: whoever answers must not choose between the two.
    return refused(`the header ${header[0]} is impossible`, {
      ...request,
      framing: 'length',
      headers: [...request.headers, header],
    })
  },
  (request, chance) => {
    const many = Array.from({ length: 300 + chance.below(1_500) }, (_, at): Header => [`a${at % 7}`, '1'])
    return {
      what: 'there are very many headers',
      spoilt: { ...request, headers: [...request.headers, ...many] },
      expected: 'either',
    }
  },
  (request, chance) => {
    const headers: Header[] = [
      ['Upgrade', chance.pick(['websocket', 'h2c', 'TLS/1.0'])],
      ['Connection', 'Upgrade'],
    ]
    return {
      what: 'it asks for another protocol',
      spoilt: { ...request, headers: [...request.headers, ...headers] },
      expected: 'either',
    }
  },
]

const METHODS = [
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'QUERY',
  'PURGE',
  'get',
  'FOO',
  'CONNECT',
]

const methodSpoilers: readonly WireSpoiler[] = [
  (request, chance) => {
    const others = METHODS.filter((each) => each !== request.method)
    // Below it a path takes several methods, and no signature says which one was meant.
    const taken = request.target.startsWith('/account') ? ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'] : []
    const method = chance.pick(others.filter((each) => !taken.includes(each)))
    return refused(`the method is ${method}`, { ...request, method })
  },
  (request) =>
    request.method === 'GET'
      ? { what: 'the method is HEAD', spoilt: { ...request, method: 'HEAD' }, expected: 'success' }
      : null,
  (request, chance) =>
    refused('the version is another', {
      ...request,
      version: chance.pick(['HTTP/3.0', 'HTTP/9.9', 'HTTP/1.1 ', 'http/1.1', 'ICY']),
    }),
]

/** One wrong thing about a request as it goes over the wire. */
export function spoilWire(request: Sendable, chance: Chance): Spoilt<Sendable> | null {
  const bodies = request.body.length > 1 ? [bodySpoilers, bodySpoilers] : []
  const spoilers = chance.pick([...bodies, targetSpoilers, headerSpoilers, methodSpoilers])
  return chance.pick(spoilers)(request, chance)
}
