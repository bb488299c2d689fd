import { type Asset, assetOf, assets } from '../../domain/catalog/assets.ts'
import { type CurrencyCode, currencyCodes } from '../../domain/catalog/currencies.ts'
import { type Amount, parseAmount, showAmount } from '../../domain/money/amount.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { type Market, type Quote, quote, type RateType } from '../../domain/quotes/quote.ts'
import type { MarketBoard } from '../market.ts'
import { aboutField } from './about_field.ts'
import type { DeskOutcome, DeskRejection } from './desk.ts'

/** The two sides of a request as the client named them. */
export type PairRequest = {
  readonly from: string
  readonly to: string
  readonly fromNetwork: string | null
  readonly toNetwork: string | null
}

export type Pair = { readonly from: Asset; readonly to: Asset }

/** On a request a native currency may name its network in these ways (docs/api.md, Networks). */
const NATIVE_ALIASES = { BNB: 'BEP20', ETH: 'ERC20', TRX: 'TRC20' } as Readonly<Record<string, string>>

/** Every way to name an asset on a request: its currency, and then its network, or null for the native one. */
const assetsByName: ReadonlyMap<string, ReadonlyMap<string | null, Asset>> = new Map(
  currencyCodes.map((currency) => [currency, nameNetworks(currency)]),
)

function nameNetworks(currency: CurrencyCode): ReadonlyMap<string | null, Asset> {
  const byName = new Map<string | null, Asset>()
  for (const asset of assets.filter((each) => each.currency === currency)) byName.set(asset.network, asset)
  const native = assets.find((asset) => asset.currency === currency && asset.isNative)
  if (native === undefined) return byName
  const alias = NATIVE_ALIASES[currency]
  for (const name of [null, 'native', ...(alias === undefined ? [] : [alias])]) byName.set(name, native)
  return byName
}

/** Pair first, then networks (docs/api.md, Envelope: the order of checks). */
export function findPair({ from, to, fromNetwork, toNetwork }: PairRequest): DeskOutcome<Pair> {
  const fromAssets = assetsByName.get(from)
  if (fromAssets === undefined) return refuse(unknownCurrency(from))
  const toAssets = assetsByName.get(to)
  if (toAssets === undefined) return refuse(unknownCurrency(to))
  const fromAsset = fromAssets.get(fromNetwork)
  if (fromAsset === undefined) return refuse(notOnNetwork(from, fromNetwork, 'from_network'))
  const toAsset = toAssets.get(toNetwork)
  if (toAsset === undefined) return refuse(notOnNetwork(to, toNetwork, 'to_network'))
  if (fromAsset === toAsset) {
    return refuse({
      code: 'INVALID_PAIR',
      message: `${from} cannot be exchanged to itself on the same network`,
    })
  }
  return accept({ from: fromAsset, to: toAsset })
}

function unknownCurrency(code: string): DeskRejection {
  return {
    code: 'INVALID_PAIR',
    message: `${code.slice(0, 20)} is not a currency we exchange; choose from ${currencyCodes.join(', ')}`,
  }
}

function notOnNetwork(
  currency: string,
  network: string | null,
  field: 'from_network' | 'to_network',
): DeskRejection {
  const own = assets.filter((asset) => asset.currency === currency)
  const choices = own.map((asset) => asset.network).join(', ')
  if (network === null) {
    return aboutField('INVALID_PARAMETER', field, `is required for ${currency}: one of ${choices}`)
  }
  const message = `${currency} does not travel on ${network.slice(0, 20)}; choose from ${choices}`
  return { code: 'NETWORK_MISMATCH', message }
}

/** The market of a pair, if both its chains can be used and both its prices are believed. */
export function readMarket(board: MarketBoard, pair: Pair, rateType: RateType): DeskOutcome<Market> {
  return board.read(pair.from, pair.to, rateType)
}

/** The amount in the asset that the direction says, with a rejection that names the field. */
export function readAmount(asset: Asset, text: string): DeskOutcome<Amount> {
  const amount = parseAmount(asset, text)
  if (amount.ok && amount.value.units > 0n) return amount
  const why = amount.ok
    ? 'must be greater than zero'
    : `${amount.rejection.message} (${asset.currency} has ${asset.precision})`
  return refuse(aboutField('INVALID_PARAMETER', 'amount', why))
}

export function makeQuote(market: Market, direction: 'from' | 'to', amount: Amount): DeskOutcome<Quote> {
  const quoted = quote(market, direction, amount)
  if (quoted.ok) return quoted
  const { min, max } = quoted.rejection.range
  const { currency } = assetOf(amount.asset)
  const least = showAmount(min, 'up')
  const most = showAmount(max.units < min.units ? { ...max, units: 0n } : max, 'down')
  const message =
    max.units < min.units
      ? `no ${currency} amount can be exchanged on this pair at the moment: reserves are low or network fees high`
      : `amount must be from ${least} to ${most} ${currency}`
  return refuse({ code: 'AMOUNT_OUT_OF_RANGE', message, min_amount: least, max_amount: most, currency })
}
