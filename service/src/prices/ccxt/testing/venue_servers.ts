import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type VenueId, venues } from '../venues.ts'
import { type WireTicker, wireFormats } from './wire_formats.ts'

/** For tests: venues on 127.0.0.1. A fault makes one of them misbehave in the ways real ones do. */
export type Fault =
  | 'none'
  | 'off_1000x'
  | 'stale'
  | 'cached' // as old, by a cache that sets the date anew and tells the age beside it
  | 'silent' // takes the request and never answers
  | 'stalled' // begins an answer and never ends it
  | 'http_500'
  | 'html'
  | 'wrong_json'
  | 'truncated'
  | 'wide_spread'

export type VenueServer = {
  readonly venue: VenueId
  readonly origin: string
  readonly requests: string[]
  fault: Fault
  /** Refuses connections until `comeBack`, on the same port. */
  goDown(): Promise<void>
  comeBack(): Promise<void>
  /** Ends every open connection, and with it every answer that would never end. */
  hangUp(): void
  stop(): Promise<void>
}

/** Dollars (USDT at venues that trade against it) for a unit, as whole cents of the middle price. */
export type CentPrices = Readonly<Record<string, bigint>>

const LONG_AGO = 'Fri, 13 Feb 2026 00:00:00 GMT'

export async function startVenue(
  venue: VenueId,
  nowMs: () => number,
  pricesNow: () => CentPrices,
): Promise<VenueServer> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    requests.push(path)
    answer(started, path, response, nowMs(), pricesNow())
  })
  const port = await listen(server, 0)
  const started: VenueServer = {
    venue,
    origin: `http://127.0.0.1:${port}`,
    requests,
    fault: 'none',
    goDown: () => close(server),
    comeBack: async () => {
      await listen(server, port)
    },
    hangUp: () => server.closeAllConnections(),
    stop: () => (server.listening ? close(server) : Promise.resolve()),
  }
  return started
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error === undefined ? resolve() : reject(error)))
    server.closeAllConnections()
  })
}

function answer(
  { venue, fault }: VenueServer,
  path: string,
  response: ServerResponse,
  nowMs: number,
  prices: CentPrices,
): void {
  if (fault === 'silent') return
  const isStale = fault === 'stale' || fault === 'cached'
  if (fault === 'stale') response.setHeader('Date', LONG_AGO)
  if (fault === 'cached') response.setHeader('Age', ['600', '3'])
  const atMs = isStale ? Date.parse(LONG_AGO) : nowMs
  const body = JSON.stringify(wireFormats[venue](path, tickersOf(venue, prices, fault), atMs))
  response.setHeader('Content-Type', 'application/json')
  switch (fault) {
    case 'stalled':
      response.write(body.slice(0, 10))
      return
    case 'http_500':
      response.writeHead(500).end('{"message":"internal error"}')
      return
    case 'html':
      response.setHeader('Content-Type', 'text/html')
      response.end('<!doctype html><html><body>We are down for maintenance</body></html>')
      return
    case 'wrong_json':
      response.end('{"unexpected":[1,null,{"price":"NaN"}]}')
      return
    case 'truncated':
      response.end(body.slice(0, body.length / 2))
      return
    default:
      if (body === 'null') response.writeHead(404).end('{"message":"no such path"}')
      else response.end(body)
  }
}

function tickersOf(venue: VenueId, prices: CentPrices, fault: Fault): readonly WireTicker[] {
  const [quote] = venues[venue].quotes
  return Object.entries(prices).flatMap(([base, cents]) => {
    if (base === quote) return []
    const mid = fault === 'off_1000x' ? cents * 1000n : cents
    const half = fault === 'wide_spread' ? mid / 10n : 0n
    // Half a cent either way is a spread that every market of ours can have.
    const [bid, ask] = [mid * 1000n - half * 1000n - 5n, mid * 1000n + half * 1000n + 5n]
    return [{ base, quote, bid: text(bid, 5), ask: text(ask, 5), mid: text(mid, 2) }]
  })
}

function text(units: bigint, decimals: number): string {
  const digits = units.toString().padStart(decimals + 1, '0')
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}
