import { systemClock } from '../../../src/clock.ts'
import { type CurrencyCode, currencyCodes } from '../../../src/domain/catalog/currencies.ts'
import type { ChainId } from '../../../src/domain/catalog/networks.ts'
import { defaultVenues } from '../../../src/prices/ccxt/testing/default_venues.ts'
import { startVenue, type VenueServer } from '../../../src/prices/ccxt/testing/venue_servers.ts'
import type { VenueId } from '../../../src/prices/ccxt/venues.ts'
import { priceSources } from '../../../src/prices/index.ts'
import { type PriceBook, priceBook } from '../../../src/prices/price_book.ts'
import { type Chance, chanceFrom, dealer } from '../../harness/chance.ts'
import {
  type DatabaseFault,
  type DatabaseLine,
  type DatabaseMeddling,
  databaseFaults,
  openDatabaseLine,
  type RequestKind,
} from '../../harness/database_line.ts'
import {
  type Call,
  type HttpFault,
  type HttpLine,
  httpFaults,
  openHttpLine,
  plainFaults,
  type Verdict,
} from '../../harness/http_line.ts'
import type { TestSandboxOptions } from '../../harness/test_sandbox.ts'

/** What the weather wants of a call to a node, before chance has its say. */
export type Intervention = (chain: ChainId, call: Call) => Verdict

/** Every line that the service has to the outside: to its nodes, its database and its venues. */
export type BadLines = {
  readonly chains: readonly ChainId[]
  readonly options: TestSandboxOptions
  readonly book: PriceBook
  intervene(with_: Intervention): void
  /** From now on every line fails now and then, in every way. */
  turnBad(): void
  /** From now on every line fails often, in the ways in which it has not failed yet. */
  failAsNeverBefore(): void
  turnGood(): void
  /** How many transactions were on their way to a node while its line was bad. */
  sends(chain: ChainId): number
  /** How often each fault happened on each line: `ETH trickle`, `database commit drop_reply`, `venue kraken html`. */
  happened(): ReadonlyMap<string, number>
  /** What should have happened by the end: every fault on every line. */
  readonly expected: readonly string[]
  stop(): Promise<void>
}

/** How long the service waits on a line, so that a proof of silence does not take as long as in earnest. */
const PATIENCE_MS = 2_000
const DATABASE_PATIENCE = 'query_timeout=4000&statement_timeout=3500&idle_in_transaction_session_timeout=5000'

/**
 * So many requests of a hundred fail. A look at a chain is hundreds of statements and calls, and one that fails ends it:
 * with many more, nothing would ever come to its end. Sends and commits, where it hurts, fail more often.
 */
const PERCENT = {
  call: 0.7,
  send: 20,
  venue: 40,
  statement: 0.03,
  commit: 2,
  connect: 4,
  left: 10,
  cut: 1,
} as const

/** By their method; where there is none, by the end of the path that is posted to. */
const SENDS = [
  ...['sendrawtransaction', 'eth_sendRawTransaction', 'submit', 'sendTransaction'],
  ...['transactions_async', 'broadcasthex', 'send_transaction2'],
]
/** Their nodes are asked by plain requests, whose answers carry no ids. */
const PLAIN: readonly ChainId[] = ['XLM', 'TRX', 'EOS']
/** A scan of all coins may take a quarter of an hour on mainnet; so long nobody waits here. */
const PATIENT = ['scantxoutset']
const silences: readonly HttpFault[] = ['drop_request', 'late', 'trickle']
/** Opening a connection is given ten seconds. */
const databaseSilences: readonly DatabaseFault[] = ['drop_request', 'stall', 'trickle', 'garbage']
const connectFaults = databaseFaults.filter((fault) => !databaseSilences.includes(fault))

/** Cents; as the sandbox's own prices, so that what is paid can be told from what is quoted wrongly. */
export const TRUE_CENTS: Readonly<Record<CurrencyCode, bigint>> = {
  BTC: 6_500_000n,
  ETH: 350_000n,
  BNB: 60_000n,
  USDT: 100n,
  USDC: 100n,
  XRP: 250n,
  XLM: 40n,
  TRX: 25n,
  EOS: 80n,
  SOL: 15_000n,
}
/** This one says a thousand times as much, all the time. */
const LIAR: VenueId = 'kucoin'

export async function openBadLines(seed: number, chains: readonly ChainId[]): Promise<BadLines> {
  const lines: Lines = {
    chance: chanceFrom(seed),
    chains,
    sends: new Map(),
    nodes: new Map(),
    venues: await openVenues(),
    database: null,
    book: null,
    intervention: () => null,
    total: new Map(),
  }
  return {
    chains,
    options: optionsOver(lines),
    get book() {
      if (lines.book === null) throw new Error('the service has not started')
      return lines.book
    },
    intervene: (next) => {
      lines.intervention = next
    },
    turnBad: () => turnBad(lines),
    failAsNeverBefore: () => failAsNeverBefore(lines),
    turnGood: () => turnGood(lines),
    sends: (chain) => lines.sends.get(chain) ?? 0,
    happened: () => {
      const now = new Map(lines.total)
      collect(lines, now)
      return now
    },
    expected: expectedOn(lines),
    stop: async () => {
      await Promise.all([...lines.nodes.values()].map((line) => line.stop()))
      await lines.database?.stop()
      await Promise.all(lines.venues.map(({ server, line }) => Promise.all([line.stop(), server.stop()])))
    },
  }
}

type Lines = {
  readonly chance: Chance
  readonly chains: readonly ChainId[]
  readonly sends: Map<ChainId, number>
  readonly nodes: Map<ChainId, HttpLine>
  readonly venues: readonly Venue[]
  database: DatabaseLine | null
  book: PriceBook | null
  intervention: Intervention
  /** What happened before the lines were told to behave otherwise, which makes them count anew. */
  readonly total: Map<string, number>
}

function optionsOver(lines: Lines): TestSandboxOptions {
  return {
    nodeTimeoutMs: PATIENCE_MS,
    reach: async (chain, rpcUrl) => {
      const line = await openHttpLine(rpcUrl)
      lines.nodes.set(chain, line)
      return line.url
    },
    reachDatabase: async (url) => {
      lines.database = await openDatabaseLine(url, lines.chance)
      return `${lines.database.url}?${DATABASE_PATIENCE}`
    },
    openPrices: (clock) => {
      const origins = lines.venues.map(({ server, line }) => [server.venue, line.url])
      const sources = priceSources.ccxt({
        venues: defaultVenues,
        currencies: currencyCodes,
        clock,
        timeoutMs: PATIENCE_MS,
        httpOverrides: Object.fromEntries(origins),
      })
      const rules = { refreshMs: 700, readTimeoutMs: PATIENCE_MS, ageMsMax: 6_000 }
      lines.book = priceBook({ sources, clock, rules, log: { info: () => {}, warn: () => {} } })
      return lines.book
    },
  }
}

function turnGood(lines: Lines): void {
  collect(lines)
  for (const [chain, line] of lines.nodes) line.meddle((call) => lines.intervention(chain, call))
  for (const line of lines.nodes.values()) line.hangUp()
  lines.database?.meddle(null)
  lines.database?.hangUp()
  for (const { line } of lines.venues) {
    line.meddle(null)
    line.hangUp()
  }
}

function turnBad(lines: Lines): void {
  const { chance, sends } = lines
  collect(lines)
  for (const [chain, line] of lines.nodes) {
    const send = failing(faultsOf(chain), PERCENT.send, chance)
    const usual = failing(faultsOf(chain), PERCENT.call, chance)
    line.meddle((call) => {
      if (isSend(call)) sends.set(chain, (sends.get(chain) ?? 0) + 1)
      return lines.intervention(chain, call) ?? (isSend(call) ? send() : bearable(call, usual()))
    })
  }
  lines.database?.meddle(
    byKind((kind) => failing(kind === 'connect' ? connectFaults : databaseFaults, PERCENT[kind], chance)),
  )
  for (const { line } of lines.venues) line.meddle(failing(plainFaults, PERCENT.venue, chance))
}

function failAsNeverBefore(lines: Lines): void {
  const { chance, total } = lines
  collect(lines)
  for (const [chain, line] of lines.nodes) {
    const next = missingOf(faultsOf(chain), chain, total, (fault) => line.happened().has(fault))
    line.meddle(({ method }) =>
      PATIENT.includes(method) || chance.happens(PERCENT.left / 100) ? next() : null,
    )
  }
  lines.database?.meddle(neverBefore(lines.database, lines))
  for (const { server, line } of lines.venues) {
    line.meddle(missingOf(plainFaults, `venue ${server.venue}`, total, (fault) => line.happened().has(fault)))
  }
}

/** A connection is opened only where one is missing, so that some are cut until opening them has failed in every way. */
function neverBefore(database: DatabaseLine, { chance, total }: Lines): DatabaseMeddling {
  const missing = (kind: RequestKind, faults: readonly DatabaseFault[]) =>
    missingOf(faults, `database ${kind}`, total, (fault) => database.happened().has(`${kind} ${fault}`))
  const connect = missing('connect', connectFaults)
  const commit = missing('commit', databaseFaults)
  const statement = missing('statement', databaseFaults)
  const cut = failing<DatabaseFault>(['reset'], PERCENT.cut, chance)
  return (kind) => {
    if (kind === 'connect') return connect()
    if (kind === 'commit') return commit()
    return statement() ?? (connect() === null ? null : cut())
  }
}

function collect({ nodes, database, venues, total }: Lines, sum = total): void {
  for (const [chain, line] of nodes) add(sum, chain, line.happened())
  if (database !== null) add(sum, 'database', database.happened())
  for (const { server, line } of venues) add(sum, `venue ${server.venue}`, line.happened())
}

function faultsOf(chain: ChainId): readonly HttpFault[] {
  return PLAIN.includes(chain) ? plainFaults : httpFaults
}

function isSend({ method, params }: Call): boolean {
  return SENDS.includes(method === 'POST' ? (String(params?.[0]).split('/').at(-1) ?? '') : method)
}

function expectedOn({ chains, venues }: Lines): readonly string[] {
  return [
    ...chains.flatMap((chain) => faultsOf(chain).map((fault) => `${chain} ${fault}`)),
    ...(['statement', 'commit'] as const).flatMap((kind) =>
      databaseFaults.map((fault) => `database ${kind} ${fault}`),
    ),
    ...connectFaults.map((fault) => `database connect ${fault}`),
    ...venues.flatMap(({ server: { venue } }) => plainFaults.map((fault) => `venue ${venue} ${fault}`)),
  ]
}

type Venue = { readonly server: VenueServer; readonly line: HttpLine }

function openVenues(): Promise<Venue[]> {
  const { wallMs } = systemClock()
  return Promise.all(
    defaultVenues.map(async (venue) => {
      const server = await startVenue(venue, wallMs, () => TRUE_CENTS)
      if (venue === LIAR) server.fault = 'off_1000x'
      return { server, line: await openHttpLine(server.origin) }
    }),
  )
}

/** One fault after the other, each as often as the others, at requests that chance picks. */
function failing<Fault>(faults: readonly Fault[], percent: number, chance: Chance): () => Fault | null {
  if (faults.length === 0) return () => null
  const next = dealer(faults, chance)
  return () => (chance.happens(percent / 100) ? next() : null)
}

/** What has never happened on this line, until it has. */
function missingOf<Fault extends string>(
  faults: readonly Fault[],
  line: string,
  before: ReadonlyMap<string, number>,
  hasHappened: (fault: Fault) => boolean,
): () => Fault | null {
  return () => faults.find((fault) => !before.has(`${line} ${fault}`) && !hasHappened(fault)) ?? null
}

function bearable({ method }: Call, fault: HttpFault | null): HttpFault | null {
  return PATIENT.includes(method) && fault !== null && silences.includes(fault) ? null : fault
}

function byKind(make: (kind: RequestKind) => () => DatabaseFault | null) {
  const faults = { connect: make('connect'), statement: make('statement'), commit: make('commit') }
  return (kind: RequestKind) => faults[kind]()
}

function add(total: Map<string, number>, line: string, happened: ReadonlyMap<string, number>): void {
  for (const [fault, times] of happened) {
    const name = `${line} ${fault}`
    total.set(name, (total.get(name) ?? 0) + times)
  }
}
