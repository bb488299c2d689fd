import { type Asset, assetOf, findAsset, networksOf } from '../domain/catalog/assets.ts'
import { type CurrencyCode, currencyCodes, isCurrencyCode } from '../domain/catalog/currencies.ts'
import { chainFacts, isNetworkId, type NetworkId, networkChains } from '../domain/catalog/networks.ts'
import { type Amount, parseAmount, showAmount } from '../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import { type Market, type Quote, quote, type RateType } from '../domain/quotes/quote.ts'
import type { DeskRejection } from './desk.ts'
import type { MarketBoard } from './market.ts'

/** The two sides of a request as the client named them. */
export type PairRequest = {
  readonly from: string
  readonly to: string
  readonly fromNetwork: string | null
  readonly toNetwork: string | null
}

export type Pair = { readonly from: Asset; readonly to: Asset }

type Refused<Value> = Outcome<Value, DeskRejection>

/** Pair first, then networks (DESIGN 3, Errors: the order of checks). */
export function findPair(request: PairRequest): Refused<Pair> {
  const { from, to } = request
  if (!isCurrencyCode(from)) return refuse(unknownCurrency(from))
  if (!isCurrencyCode(to)) return refuse(unknownCurrency(to))
  const fromAsset = findOnNetwork(from, request.fromNetwork, 'from_network')
  if (!fromAsset.ok) return fromAsset
  const toAsset = findOnNetwork(to, request.toNetwork, 'to_network')
  if (!toAsset.ok) return toAsset
  if (fromAsset.value.id === toAsset.value.id) {
    return refuse({
      code: 'INVALID_PAIR',
      message: `${from} cannot be exchanged to itself on the same network`,
    })
  }
  return accept({ from: fromAsset.value, to: toAsset.value })
}

function unknownCurrency(code: string): DeskRejection {
  return {
    code: 'INVALID_PAIR',
    message: `${code.slice(0, 20)} is not a currency we exchange; choose from ${currencyCodes.join(', ')}`,
  }
}

/** On a request a native currency may name its network in these ways (DESIGN 3, Quote). */
const NATIVE_ALIASES: Readonly<Record<string, CurrencyCode>> = {
  BEP20: 'BNB',
  ERC20: 'ETH',
  TRC20: 'TRX' as CurrencyCode,
}

function findOnNetwork(
  currency: CurrencyCode,
  network: string | null,
  field: 'from_network' | 'to_network',
): Refused<Asset> {
  const choices = networksOf(currency)
  const native = choices.find((choice) => isNative(currency, choice))
  const asked = normalizeNetwork(currency, network, native)
  if (asked === null) {
    const message = `${field} is required for ${currency}: one of ${choices.join(', ')}`
    return refuse({ code: 'INVALID_PARAMETER', message, details: [{ field, message }] })
  }
  const asset = isNetworkId(asked) ? findAsset(currency, asked) : undefined
  if (asset === undefined) {
    const message = `${currency} does not travel on ${asked.slice(0, 20)}; choose from ${choices.join(', ')}`
    return refuse({ code: 'NETWORK_MISMATCH', message })
  }
  return accept(asset)
}

function normalizeNetwork(currency: CurrencyCode, network: string | null, native: NetworkId | undefined) {
  if (native === undefined) return network
  const meansNative = network === null || network === 'native' || NATIVE_ALIASES[network] === currency
  return meansNative ? native : network
}

function isNative(currency: CurrencyCode, network: NetworkId): boolean {
  const chain = networkChains[network]
  return chain === network && chainFacts[chain].native === currency
}

/** The market of a pair, if both its chains can be used and both its prices are believed. */
export function readMarket(board: MarketBoard, pair: Pair, rateType: RateType): Refused<Market> {
  return board.read(pair.from, pair.to, rateType)
}

/** The amount in the asset that the direction says, with a rejection that names the field. */
export function readAmount(asset: Asset, text: string): Refused<Amount> {
  const amount = parseAmount(asset, text)
  if (amount.ok && amount.value.units > 0n) return amount
  const message = amount.ok
    ? 'amount must be greater than zero'
    : `amount ${amount.rejection.message} (${asset.currency} has ${asset.precision})`
  return refuse({ code: 'INVALID_PARAMETER', message, details: [{ field: 'amount', message }] })
}

export function makeQuote(market: Market, direction: 'from' | 'to', amount: Amount): Refused<Quote> {
  const quoted = quote(market, direction, amount)
  if (quoted.ok) return quoted
  const { min, max } = quoted.rejection.range
  const { currency } = assetOf(amount.asset)
  const least = showAmount(min, 'up')
  const most = showAmount(max.units < min.units ? { ...max, units: 0n } : max, 'down')
  const message =
    max.units < min.units
      ? `no ${currency} amount can be exchanged on this pair at the moment: reserves are low`
      : `amount must be from ${least} to ${most} ${currency}`
  return refuse({ code: 'AMOUNT_OUT_OF_RANGE', message, min_amount: least, max_amount: most, currency })
}
