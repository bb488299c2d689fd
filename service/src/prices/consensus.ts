import { assert } from '../domain/assert.ts'
import type { InstantMs } from '../domain/time.ts'
import type { UsdPrice } from './price_source.ts'

/** What one source says a currency costs in dollars. */
export type Vote = {
  readonly source: string
  readonly usd: UsdPrice
  /** When it was true at the source, and when we read it: it is as old as the older of the two. */
  readonly atMs: InstantMs
  readonly readAtMs: InstantMs
  /** The refresh that read it. */
  readonly round: number
}

export type AgreementRules = {
  /** So many accepted votes, and never fewer than 3, make a price. */
  readonly quorum: number
  readonly ageMsMax: number
  /** A vote further than this from the median of all votes is not counted. */
  readonly bandPercentMax: number
}

export type Verdict = 'accepted' | 'too_old' | 'from_the_future' | 'outlier'

export type Agreement = {
  /** Null when not enough sources agree. */
  readonly usd: UsdPrice | null
  readonly because: 'agreed' | 'no_quorum' | 'no_majority'
  readonly accepted: readonly Vote[]
  readonly verdicts: ReadonlyMap<Vote, Verdict>
}

/** The last moment at which the vote counts. */
export function expiryMs(vote: Vote, ageMsMax: number): InstantMs {
  return Math.min(vote.atMs, vote.readAtMs) + ageMsMax
}

/** Whether `price` is at most so many percent of `reference` away from it; exact to 0.01 %. */
export function isWithin(price: UsdPrice, reference: UsdPrice, percent: number): boolean {
  const distance = price > reference ? price - reference : reference - price
  return distance * 10_000n <= reference * BigInt(Math.round(percent * 100))
}

/** The middle one; of an even number, the mean of the middle two. The order they come in does not matter. */
export function medianOf(prices: readonly UsdPrice[]): UsdPrice {
  const sorted = prices.toSorted((left, right) => (left < right ? -1 : left > right ? 1 : 0))
  const low = sorted[(sorted.length - 1) >> 1]
  const high = sorted[sorted.length >> 1]
  assert(low !== undefined && high !== undefined, 'a median is of something')
  return (low + high) / 2n
}

/**
 * The median of the votes that are young enough and lie in a band around the median of all young votes.
 *
 * The band is there so that a venue that is far off has no weight at all: left among an even number it would
 * move the median by a place. Fewer liars than honest sources cannot move the first median out of the honest
 * range, so as long as honest sources agree to within the band they all stay, and keep the majority that holds
 * the second median in their range. When less than half of the sources agree, nobody knows the price.
 */
export function agree(votes: readonly Vote[], rules: AgreementRules, nowMs: InstantMs): Agreement {
  const verdicts = new Map<Vote, Verdict>()
  const young: Vote[] = []
  for (const vote of votes) {
    if (nowMs > expiryMs(vote, rules.ageMsMax)) verdicts.set(vote, 'too_old')
    else if (vote.atMs > nowMs + rules.ageMsMax) verdicts.set(vote, 'from_the_future')
    else young.push(vote)
  }
  if (young.length === 0) return { usd: null, because: 'no_quorum', accepted: [], verdicts }
  const middle = medianOf(young.map(({ usd }) => usd))
  const accepted = young.filter(({ usd }) => isWithin(usd, middle, rules.bandPercentMax))
  for (const vote of young) verdicts.set(vote, accepted.includes(vote) ? 'accepted' : 'outlier')
  if (accepted.length < rules.quorum) return { usd: null, because: 'no_quorum', accepted, verdicts }
  if (accepted.length * 2 <= young.length) return { usd: null, because: 'no_majority', accepted, verdicts }
  return { usd: medianOf(accepted.map(({ usd }) => usd)), because: 'agreed', accepted, verdicts }
}
