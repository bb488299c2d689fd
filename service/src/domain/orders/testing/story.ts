import { assert } from '../../assert.ts'
import { type AssetId, assetOf, nativeAsset } from '../../catalog/assets.ts'
import type { LedgerAccount } from '../../ledger/accounts.ts'
import type { Posting } from '../../ledger/postings.ts'
import { type Amount, amountOf, parseAmount, toPrecision } from '../../money/amount.ts'
import { type Market, midRate, type Quote, quote, quoteReceived, type RateType } from '../../quotes/quote.ts'
import { decide } from '../decide.ts'
import type { Decision, Effect } from '../decision.ts'
import type { Fact } from '../facts.ts'
import { nothingFailed, type Order, type OrderTerms, type Refund, received } from '../order.ts'

/**
 * An order together with what the world around it knows: the books as they were posted, the outflows as they were
 * planned, and, told apart from both, what really happened on the chains.
 */
export type Story = {
  readonly order: Order
  readonly books: Books
  readonly chain: ChainTruth
  readonly outflows: readonly StoryOutflow[]
}

/** Debits less credits by asset and account. */
export type Books = Readonly<Record<string, bigint>>

export type ChainTruth = {
  /** By key: what each deposit moved when it was last mined. */
  readonly mined: Readonly<Record<string, Amount>>
  readonly confirmed: Readonly<Record<string, Amount>>
  /** What left for good: payouts, refunds and network costs. */
  readonly spent: readonly Amount[]
}

export type StoryOutflow = {
  readonly payoutId: string
  readonly state: 'planned' | 'committed' | 'cancelled' | 'failed' | 'confirmed'
}

export const START_MS = 1_800_000_000_000
export const EXPIRES_MS = START_MS + 15 * 60_000

export type Pair = { readonly from: AssetId; readonly to: AssetId; readonly asks: string }

export const ETH_TO_USDT: Pair = { from: 'ETH:ETH', to: 'USDT:ERC20', asks: '0.5' }

/** US dollars in 10^-8, as a price book would give them. */
const PRICES: Readonly<Record<string, bigint>> = {
  BTC: 6_543_210_000_000n,
  ETH: 312_345_000_000n,
  USDT: 100_020_000n,
  USDC: 99_990_000n,
  BNB: 58_765_000_000n,
}

export function marketOf(
  { from, to }: Pick<Pair, 'from' | 'to'>,
  market: { readonly fee?: bigint; readonly networkFee?: bigint; readonly changeBps?: bigint } = {},
): Market {
  const { fee = 100n, networkFee = 0n, changeBps = 0n } = market
  const [fromAsset, toAsset] = [assetOf(from), assetOf(to)]
  const [fromPrice, toPrice] = [PRICES[fromAsset.currency], PRICES[toAsset.currency]]
  assert(fromPrice !== undefined && toPrice !== undefined, 'the test has a price')
  return {
    from: fromAsset,
    to: toAsset,
    mid: midRate(fromAsset, toAsset, fromPrice * (10_000n + changeBps), toPrice * 10_000n),
    fee,
    networkFee: amountOf(to, networkFee),
    reserve: amountOf(to, 10n ** BigInt(toAsset.decimals + 12)),
  }
}

export function exactly(asset: AssetId, text: string): Amount {
  const parsed = parseAmount(assetOf(asset), text)
  assert(parsed.ok, `${text} is an amount of ${asset}`)
  return parsed.value
}

export type Setting = {
  readonly pair?: Pair
  readonly rateType?: RateType
  readonly toleranceBps?: bigint
  readonly slippageBps?: bigint
}

export function newOrder(setting: Setting = {}): Order {
  const { pair = ETH_TO_USDT, rateType = 'fixed', toleranceBps = 0n, slippageBps = 200n } = setting
  const market = marketOf(pair)
  const asks = exactly(pair.from, pair.asks)
  const quoted = quote(market, 'from', asks)
  assert(quoted.ok, 'the test asks for something in range')
  const { to, rate, fee, networkFee } = quoted.value
  const terms: OrderTerms = {
    id: 'CB1234567890123456',
    accountId: 'account',
    createdAtMs: START_MS,
    expiresAtMs: EXPIRES_MS,
    rateType,
    from: pair.from,
    to: pair.to,
    asks,
    promises: to,
    rate,
    fee,
    feeShare: market.fee,
    networkFee,
    destination: 'destination',
    destinationTag: null,
    callbackUrl: null,
    depositAddress: 'deposit address',
    depositTag: null,
    requiredConfirmations: 12,
    tolerance: amountOf(pair.from, (asks.units * toleranceBps) / 10_000n),
    slippage: slippageBps,
  }
  return {
    terms,
    refundAddress: null,
    deposits: [],
    state: { status: 'NEW' },
    sequence: 1,
    updatedAtMs: START_MS,
    outflowCount: 0,
    isOutflowCommitted: false,
    failedCosts: nothingFailed(terms),
    firstEmergencyAtMs: null,
  }
}

export function startStory(setting: Setting = {}): Story {
  return {
    order: newOrder(setting),
    books: {},
    chain: { mined: {}, confirmed: {}, spent: [] },
    outflows: [],
  }
}

/** Tells the order a fact. The world changes by it whatever the order makes of it; the books only as it decides. */
export function tell(story: Story, fact: Fact, nowMs: number): { story: Story; decision: Decision } {
  const decision = decide(story.order, fact, nowMs)
  const chain = happened(story, fact)
  const outflows = endedBy(story.outflows, fact)
  if (decision.kind !== 'changed') return { story: { ...story, chain, outflows }, decision }
  const next = {
    order: decision.order,
    books: post(story.books, decision.postings),
    chain,
    outflows: decision.effects.reduce(carryOut, outflows),
  }
  return { story: next, decision }
}

function carryOut(outflows: readonly StoryOutflow[], effect: Effect): readonly StoryOutflow[] {
  switch (effect.kind) {
    case 'PlanPayout':
      return planned(outflows, effect.payoutId)
    case 'CancelPayout':
      return outflows.map((one) => (one.payoutId === effect.payoutId ? cancelled(one) : one))
  }
}

/** The engine writes down an exact transaction of the live outflow: from now on it may pay. */
export function commit(story: Story): Story {
  return {
    ...story,
    order: { ...story.order, isOutflowCommitted: true },
    outflows: story.outflows.map((one) => (one.state === 'planned' ? { ...one, state: 'committed' } : one)),
  }
}

export function liveOutflow({ outflows }: Story): StoryOutflow | undefined {
  return outflows.find(isLive)
}

function isLive({ state }: StoryOutflow): boolean {
  return state === 'planned' || state === 'committed'
}

function planned(known: readonly StoryOutflow[], payoutId: string): readonly StoryOutflow[] {
  assert(
    known.every(({ state }) => state === 'cancelled' || state === 'failed'),
    'an outflow is planned only when every earlier one is provably dead',
  )
  assert(
    known.every((one) => one.payoutId !== payoutId),
    'every outflow has its own id',
  )
  return [...known, { payoutId, state: 'planned' }]
}

function cancelled(outflow: StoryOutflow): StoryOutflow {
  if (outflow.state === 'failed') return outflow
  assert(outflow.state === 'planned', 'only an outflow that was never written down is cancelled')
  return { ...outflow, state: 'cancelled' }
}

function endedBy(outflows: readonly StoryOutflow[], fact: Fact): readonly StoryOutflow[] {
  if (fact.kind !== 'PayoutFailed' && fact.kind !== 'PayoutConfirmed') return outflows
  const state = fact.kind === 'PayoutFailed' ? 'failed' : 'confirmed'
  return outflows.map((one) => (one.payoutId === fact.payoutId && isLive(one) ? { ...one, state } : one))
}

function post(books: Books, postings: readonly Posting[]): Books {
  const next: Record<string, bigint> = { ...books }
  for (const { debit, credit, amount } of postings) {
    assert(amount.units > 0n && debit !== credit, 'the database would take this posting')
    next[`${amount.asset} ${debit}`] = (next[`${amount.asset} ${debit}`] ?? 0n) + amount.units
    next[`${amount.asset} ${credit}`] = (next[`${amount.asset} ${credit}`] ?? 0n) - amount.units
  }
  return next
}

/** What an account holds by debit. */
export function debitOf({ books }: Story, asset: AssetId, account: LedgerAccount): bigint {
  return books[`${asset} ${account}`] ?? 0n
}

function happened({ chain, outflows, order }: Story, fact: Fact): ChainTruth {
  switch (fact.kind) {
    case 'DepositSeen': {
      const isNews = fact.block !== null && chain.confirmed[fact.key] === undefined
      return isNews ? { ...chain, mined: { ...chain.mined, [fact.key]: fact.amount } } : chain
    }
    case 'DepositConfirmed': {
      const amount = chain.mined[fact.key]
      return amount === undefined
        ? chain
        : { ...chain, confirmed: { ...chain.confirmed, [fact.key]: amount } }
    }
    case 'DepositUnmined': {
      const { [fact.key]: _mined, ...mined } = chain.mined
      const { [fact.key]: _confirmed, ...confirmed } = chain.confirmed
      return { ...chain, mined, confirmed }
    }
    case 'PayoutConfirmed':
    case 'PayoutFailed': {
      const isSent = outflows.some((one) => one.payoutId === fact.payoutId && one.state === 'committed')
      if (!isSent || fact.cost === null) return chain
      const paid = fact.kind === 'PayoutConfirmed' ? [amountPaid(order)] : []
      return { ...chain, spent: [...chain.spent, fact.cost, ...paid] }
    }
    default:
      return chain
  }
}

function amountPaid({ state }: Order): Amount {
  if ('refund' in state) return state.refund.amount
  assert('settlement' in state && state.settlement !== null, 'an outflow of nothing')
  return state.settlement.paid
}

/** What the market gives for what the order has received. */
export function priceNow({ order }: Story, changeBps = 0n): Quote | null {
  return quoteReceived(marketOf(order.terms, { changeBps }), received(order))
}

/** The refund as the desk would offer it: what was received less a cost, to the precision. */
export function refundNow({ order }: Story, costUnits: bigint): Refund | null {
  const total = received(order)
  if (total.units <= costUnits) return null
  const amount = toPrecision(amountOf(total.asset, total.units - costUnits), 'down')
  const networkFee = amountOf(total.asset, total.units - amount.units)
  return amount.units === 0n ? null : { amount, networkFee, address: 'refund address' }
}

/** What waits has waited for too long: the exchange that is due, or its payout. */
export function stalledNow({ order: { state, sequence } }: Story): Fact {
  return 'payoutId' in state
    ? { kind: 'ExchangeStalled', payoutId: state.payoutId }
    : { kind: 'ExchangeStalled', payoutId: null, sequence }
}

/** A rest that is dust, */
export function dustLeft({ terms }: Order): bigint {
  return (assetOf(terms.from).minCredit * 9n) / 10n
}

/** and the most that needs it to be what was asked. */
export function allButDust(order: Order): bigint {
  const { asks, tolerance } = order.terms
  return asks.units - tolerance.units - dustLeft(order)
}

/** What a transaction on the chain of `asset` costs. */
export function costOn(asset: AssetId, units: bigint): Amount {
  return amountOf(nativeAsset(assetOf(asset).chain).id, units)
}
