import type { CurrencyCode } from '../domain/catalog/currencies.ts'
import type { Agreement, Verdict } from './consensus.ts'
import type { PriceQuote } from './price_source.ts'

export type PriceReason = Agreement['because'] | 'jump'

/** Who said what, and what became of it. Prices are decimal text. */
export type PriceExplanation = {
  readonly currency: CurrencyCode
  readonly usd: string | null
  readonly because: PriceReason
  readonly lastBelievedUsd: string | null
  readonly jump: { readonly usd: string; readonly agreements: number } | null
  readonly sources: readonly SourceExplanation[]
}

type SourceExplanation = {
  readonly source: string
  /** `silent`: it said nothing about this currency; `quote_unknown`: it is in USDT and USDT has no price. */
  readonly verdict: Verdict | 'silent' | 'quote_unknown'
  readonly price: string | null
  readonly quote: PriceQuote | null
  readonly ageMs: number | null
}

/** One line for operators. Why a source is silent, the log has said. */
export function inWords({ because, lastBelievedUsd, jump, sources }: PriceExplanation): string {
  const way =
    jump === null
      ? ''
      : ` from ${lastBelievedUsd} to ${jump.usd}, refreshes that agree on it ${jump.agreements}`
  return `${spaced(because)}${way}: ${sources.map(wordsOf).join(', ')}`
}

function wordsOf({ source, verdict, price, quote, ageMs }: SourceExplanation): string {
  const said = price === null || ageMs === null ? '' : ` ${price} ${quote} ${Math.round(ageMs / 1_000)} s old`
  return `${source}${said} ${spaced(verdict)}`
}

function spaced(word: string): string {
  return word.replaceAll('_', ' ')
}
