import type { Clock } from '../clock.ts'
import { assert } from '../domain/assert.ts'
import { type CurrencyCode, currencyCodes, isCurrencyCode } from '../domain/catalog/currencies.ts'
import { formatDecimal, powerOfTen } from '../domain/money/decimal.ts'
import type { InstantMs } from '../domain/time.ts'
import { type Agreement, type AgreementRules, agree, expiryMs, isWithin, type Vote } from './consensus.ts'
import { inWords, type PriceExplanation, type PriceReason } from './price_explanation.ts'
import {
  type PriceObservation,
  type PriceSource,
  type Prices,
  USD_PRICE_DECIMALS,
  type UsdPrice,
} from './price_source.ts'

export type PriceRules = AgreementRules & {
  /** A price further than this from the last believed one is believed only after `jumpAgreements`. */
  readonly jumpPercentMax: number
  /** So many refreshes in a row, each with a freshly read quorum near the one before, make a jump true. */
  readonly jumpAgreements: number
  readonly refreshMs: number
  /** A source that has not answered by then is left out of this refresh. */
  readonly readTimeoutMs: number
}

export const defaultPriceRules: PriceRules = {
  quorum: 3,
  ageMsMax: 45_000,
  bandPercentMax: 2,
  jumpPercentMax: 10,
  jumpAgreements: 3,
  refreshMs: 10_000,
  readTimeoutMs: 8_000,
}

/** The part of the service's logger that is needed here. */
export type PriceLog = {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export type PriceBookOptions = {
  readonly sources: readonly PriceSource[]
  readonly clock: Clock
  readonly rules?: Partial<PriceRules>
  /**
   * Of which the log says that a price comes or goes; all unless told. The others are priced as well: what a payout cost on a network
   * that only another process has a node of is told in these here.
   */
  readonly tells?: ReadonlySet<CurrencyCode>
  readonly log: PriceLog
}

export type PriceBook = Prices & {
  /** Refreshes now and every `refreshMs`. */
  start(): void
  stop(): Promise<void>
  /** Resolves when every source has answered, failed or run out of time. Never rejects. */
  refresh(): Promise<void>
  explain(currency: CurrencyCode): PriceExplanation
  why(currency: CurrencyCode): string
  /** How old the oldest vote is that the believed price rests on; null without a price. */
  ageMs(currency: CurrencyCode): number | null
}

type Said = PriceObservation & { readonly readAtMs: InstantMs; readonly round: number }
type Feed = { readonly source: PriceSource; said: ReadonlyMap<CurrencyCode, Said>; error: string | null }
type Belief = {
  readonly usd: UsdPrice | null
  readonly because: PriceReason
  readonly agreement: Agreement
  /** Until then nothing changes by itself; afterwards it is thought through again. */
  readonly validUntilMs: InstantMs
}

/** What quotes rest on: what a quorum of sources agrees on now. Reading it never throws and never waits. */
export function priceBook(options: PriceBookOptions): PriceBook {
  return new Book(options)
}

/** USDT first: the others may be priced in it. */
const inOrder: readonly CurrencyCode[] = ['USDT', ...currencyCodes.filter((code) => code !== 'USDT')]

class Book implements PriceBook {
  readonly #clock: Clock
  readonly #log: PriceLog
  readonly #rules: PriceRules
  readonly #tells: ReadonlySet<CurrencyCode>
  readonly #feeds: readonly Feed[]
  readonly #beliefs = new Map<CurrencyCode, Belief>()
  readonly #lastBelieved = new Map<CurrencyCode, UsdPrice>()
  readonly #jumps = new Map<CurrencyCode, { readonly usd: UsdPrice; readonly agreements: number }>()
  readonly #reported = new Map<CurrencyCode, PriceReason>()
  #round = 0
  #refreshing: Promise<void> | null = null
  #stopping: AbortController | null = null
  #ended: Promise<void> = Promise.resolve()

  constructor({ sources, clock, rules, tells, log }: PriceBookOptions) {
    this.#clock = clock
    this.#log = log
    this.#tells = tells ?? new Set(currencyCodes)
    this.#rules = { ...defaultPriceRules, ...rules }
    this.#feeds = sources.map((source) => ({ source, said: new Map(), error: null }))
    assert(this.#rules.quorum >= 3, 'one or two sources do not make a quorum')
    assert(sources.length >= this.#rules.quorum, 'there are as many sources as the quorum asks for')
    assert(new Set(sources.map(({ name }) => name)).size === sources.length, 'a source has one voice')
    assert(this.#rules.ageMsMax > this.#rules.refreshMs, 'prices are renewed before they are too old')
    assert(this.#rules.jumpPercentMax < 100, 'a fall to nothing is a jump')
    assert(this.#rules.jumpAgreements >= 1, 'a jump is agreed on by at least one refresh')
  }

  usd(currency: CurrencyCode): UsdPrice | null {
    const belief = this.#beliefs.get(currency)
    if (belief === undefined) return null
    const nowMs = this.#clock.nowMs()
    return nowMs <= belief.validUntilMs ? belief.usd : this.#think(currency, nowMs).usd
  }

  ageMs(currency: CurrencyCode): number | null {
    if (this.usd(currency) === null) return null
    const accepted = this.#beliefs.get(currency)?.agreement.accepted ?? []
    return this.#clock.nowMs() - Math.min(...accepted.map(({ atMs, readAtMs }) => Math.min(atMs, readAtMs)))
  }

  start(): void {
    assert(this.#stopping === null, 'the price book is started once')
    this.#stopping = new AbortController()
    this.#ended = this.#run(this.#stopping.signal)
  }

  async stop(): Promise<void> {
    this.#stopping?.abort()
    await this.#ended
    this.#stopping = null
  }

  refresh(): Promise<void> {
    this.#refreshing ??= this.#refreshAll().finally(() => {
      this.#refreshing = null
    })
    return this.#refreshing
  }

  explain(currency: CurrencyCode): PriceExplanation {
    const nowMs = this.#clock.nowMs()
    const { usd, because, agreement } = this.#think(currency, nowMs)
    const verdicts = new Map([...agreement.verdicts].map(([{ source }, verdict]) => [source, verdict]))
    const jump = this.#jumps.get(currency)
    return {
      currency,
      usd: show(usd),
      because,
      lastBelievedUsd: show(this.#lastBelieved.get(currency) ?? null),
      jump:
        jump === undefined
          ? null
          : { usd: formatDecimal(jump.usd, USD_PRICE_DECIMALS), agreements: jump.agreements },
      sources: this.#feeds.map(({ source: { name }, said }) => {
        const heard = said.get(currency)
        if (heard === undefined) {
          return { source: name, verdict: 'silent', price: null, quote: null, ageMs: null }
        }
        return {
          source: name,
          verdict: verdicts.get(name) ?? 'quote_unknown',
          price: show(heard.price),
          quote: heard.quote,
          ageMs: nowMs - Math.min(heard.atMs, heard.readAtMs),
        }
      }),
    }
  }

  why(currency: CurrencyCode): string {
    return inWords(this.explain(currency))
  }

  /** A refresh every `refreshMs`, however long the slowest source takes within its time. */
  async #run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      await Promise.all([this.refresh(), this.#clock.sleep(this.#rules.refreshMs, stopping)])
    }
  }

  async #refreshAll(): Promise<void> {
    this.#round += 1
    await Promise.all(this.#feeds.map((feed) => this.#read(feed, this.#round)))
    const nowMs = this.#clock.nowMs()
    for (const currency of inOrder) {
      this.#weighJump(currency, nowMs)
      if (this.#stopping?.signal.aborted !== true) this.#report(currency)
    }
  }

  /** What a source says counts as soon as it has said it: a slow one does not hold up the others. */
  async #read(feed: Feed, round: number): Promise<void> {
    const timeout = AbortSignal.timeout(this.#rules.readTimeoutMs)
    const stopping = this.#stopping?.signal
    const signal = stopping === undefined ? timeout : AbortSignal.any([timeout, stopping])
    try {
      const observations = await untilAborted(signal, feed.source.read(signal))
      const readAtMs = this.#clock.nowMs()
      feed.said = heardFrom(observations, readAtMs, round)
      if (feed.error !== null) this.#log.info({ source: feed.source.name }, 'price source answers again')
      feed.error = null
    } catch (error) {
      // What it said before still counts until it is too old.
      const isNew = feed.error === null
      // A venue's error page can be long.
      feed.error = (error instanceof Error ? error.message : String(error)).slice(0, 300)
      if (isNew && stopping?.aborted !== true) {
        this.#log.warn({ source: feed.source.name, error: feed.error }, 'price source does not answer')
      }
      return
    }
    const nowMs = this.#clock.nowMs()
    for (const currency of inOrder) this.#think(currency, nowMs)
  }

  /** Forms the belief anew from what the sources said last, and remembers it. */
  #think(currency: CurrencyCode, nowMs: InstantMs): Belief {
    const { votes, validUntilMs } = this.#votes(currency)
    const agreement = agree(votes, this.#rules, nowMs)
    const last = this.#lastBelieved.get(currency)
    const isJump =
      agreement.usd !== null &&
      last !== undefined &&
      !isWithin(agreement.usd, last, this.#rules.jumpPercentMax)
    const expiries = agreement.accepted.map((vote) => expiryMs(vote, this.#rules.ageMsMax))
    const belief: Belief = {
      usd: isJump ? null : agreement.usd,
      because: isJump ? 'jump' : agreement.because,
      agreement,
      validUntilMs: Math.min(validUntilMs, ...expiries),
    }
    if (belief.usd !== null) this.#lastBelieved.set(currency, belief.usd)
    this.#beliefs.set(currency, belief)
    return belief
  }

  #votes(currency: CurrencyCode): { readonly votes: readonly Vote[]; readonly validUntilMs: InstantMs } {
    // A dollar coin is priced in dollars: in itself it would always be worth one.
    const quoteUsd = currency === 'USDT' ? null : this.usd('USDT')
    let validUntilMs = Number.POSITIVE_INFINITY
    const votes: Vote[] = []
    for (const { source, said } of this.#feeds) {
      const heard = said.get(currency)
      if (heard === undefined) continue
      const { price, quote, atMs, readAtMs, round } = heard
      if (quote === 'USD') votes.push({ source: source.name, usd: price, atMs, readAtMs, round })
      else if (quoteUsd !== null) {
        const usd = (price * quoteUsd) / powerOfTen(USD_PRICE_DECIMALS)
        votes.push({ source: source.name, usd, atMs, readAtMs, round })
        validUntilMs = this.#beliefs.get('USDT')?.validUntilMs ?? validUntilMs
      }
    }
    return { votes, validUntilMs }
  }

  /**
   * A large move may be a fault that many venues share, or the truth. Quoting stops while it is unclear: the old
   * price is certainly wrong. It is believed once `jumpAgreements` refreshes in a row have each read it afresh
   * from a quorum, so an honest crash costs seconds of quoting and a passing fault costs nothing.
   */
  #weighJump(currency: CurrencyCode, nowMs: InstantMs): void {
    const { because, agreement } = this.#think(currency, nowMs)
    const fresh = agreement.accepted.filter(({ round }) => round === this.#round)
    const { usd } = agreement
    if (because !== 'jump' || usd === null || fresh.length < this.#rules.quorum) {
      this.#jumps.delete(currency)
      return
    }
    const before = this.#jumps.get(currency)
    const isSame = before !== undefined && isWithin(usd, before.usd, this.#rules.jumpPercentMax)
    const agreements = isSame ? before.agreements + 1 : 1
    if (agreements < this.#rules.jumpAgreements) {
      this.#jumps.set(currency, { usd, agreements })
      return
    }
    this.#jumps.delete(currency)
    this.#lastBelieved.set(currency, usd)
    this.#think(currency, nowMs)
  }

  /** One line when a price comes or goes; what is only so between two answers of a refresh is not news. */
  #report(currency: CurrencyCode): void {
    if (!this.#tells.has(currency)) return
    const belief = this.#beliefs.get(currency)
    if (belief === undefined || this.#reported.get(currency) === belief.because) return
    this.#reported.set(currency, belief.because)
    const fields = { currency, because: belief.because, usd: show(belief.agreement.usd) }
    if (belief.usd === null) this.#log.warn(fields, 'price is not believed: no quotes')
    else this.#log.info(fields, 'price is believed')
  }
}

/** Only what can be a price is heard, and once for a currency: a source has one vote. */
function heardFrom(
  observations: readonly PriceObservation[],
  readAtMs: InstantMs,
  round: number,
): ReadonlyMap<CurrencyCode, Said> {
  const said = new Map<CurrencyCode, Said>()
  for (const observation of observations) {
    const { currency, price, atMs } = observation
    if (!isCurrencyCode(currency) || said.has(currency) || price <= 0n || !Number.isFinite(atMs)) continue
    said.set(currency, { ...observation, readAtMs, round })
  }
  return said
}

function show(price: bigint | null): string | null {
  return price === null ? null : formatDecimal(price, USD_PRICE_DECIMALS)
}

/** Rejects when `signal` aborts, whether or not the work notices. */
function untilAborted<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
