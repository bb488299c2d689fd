import { type Asset, type AssetId, assetOf, assets } from '../../domain/catalog/assets.ts'
import type { CurrencyCode } from '../../domain/catalog/currencies.ts'
import { type NetworkId, networkChains } from '../../domain/catalog/networks.ts'
import { type Amount, parseAmount, showAmount } from '../../domain/money/amount.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { type Market, type Quote, quote, type RateType } from '../../domain/quotes/quote.ts'
import { type MarketBoard, whyUnavailable } from '../market.ts'
import { aboutBoth, aboutField } from './about_field.ts'
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
const nativeAliases: Readonly<Partial<Record<CurrencyCode, NetworkId>>> = {
  BNB: 'BEP20',
  ETH: 'ERC20',
  TRX: 'TRC20',
}

/** What is exchanged of each currency that is exchanged at all, in the order of the catalogue. */
export function assetsByCurrency(
  configured: ReadonlySet<AssetId>,
): ReadonlyMap<CurrencyCode, readonly Asset[]> {
  const own = assets.filter(({ id }) => configured.has(id))
  return Map.groupBy(own, ({ currency }) => currency)
}

export type FindPair = (request: PairRequest) => DeskOutcome<Pair>

/**
 * Finds the pair that a request names among what is configured, which does not change: all that follows from it is worked
 * out here, once. Pair first, then networks (docs/api.md, Envelope: the order of checks).
 */
export function pairFinder(configured: ReadonlySet<AssetId>): FindPair {
  const byCurrency = assetsByCurrency(configured)
  const codes = [...byCurrency.keys()].join(', ')
  /** Every way to name an asset on a request: its currency, and then its network, or null for the native one. */
  const byName: ReadonlyMap<string, Named> = new Map([...byCurrency].map(nameAssets))
  return ({ from, to, fromNetwork, toNetwork }) => {
    const fromNamed = byName.get(from)
    if (fromNamed === undefined) return refuse(unknownCurrency(from, codes))
    const toNamed = byName.get(to)
    if (toNamed === undefined) return refuse(unknownCurrency(to, codes))
    const fromAsset = fromNamed.assets.get(fromNetwork)
    const toAsset = toNamed.assets.get(toNetwork)
    const wrongTo = () => notOnNetwork(toNamed, toNetwork, 'to_network')
    if (fromAsset === undefined) {
      const wrongFrom = notOnNetwork(fromNamed, fromNetwork, 'from_network')
      return refuse(toAsset === undefined ? aboutBoth(wrongFrom, wrongTo()) : wrongFrom)
    }
    if (toAsset === undefined) return refuse(wrongTo())
    if (fromAsset === toAsset) {
      return refuse({
        code: 'INVALID_PAIR',
        message: `${from} cannot be exchanged to itself on the same network`,
      })
    }
    return accept({ from: fromAsset, to: toAsset })
  }
}

/** A currency, and its assets by each name of their networks. */
type Named = {
  readonly currency: CurrencyCode
  /** The networks, as a refusal lists them. */
  readonly choices: string
  readonly assets: ReadonlyMap<string | null, Asset>
}

function nameAssets([currency, own]: readonly [CurrencyCode, readonly Asset[]]): [string, Named] {
  const byName = new Map<string | null, Asset>(own.map((asset) => [asset.network, asset]))
  // A coin may be that of several chains: what names no network, or the tokens of one, is paid on that chain and on no other.
  const native = own.find(({ isNative, chain }) => isNative && chain === currency)
  if (native !== undefined) {
    for (const name of [null, 'native']) byName.set(name, native)
    const alias = nativeAliases[currency]
    if (alias !== undefined && networkChains[alias] === native.chain) byName.set(alias, native)
  }
  return [currency, { currency, choices: own.map(({ network }) => network).join(', '), assets: byName }]
}

function unknownCurrency(code: string, choices: string): DeskRejection {
  return {
    code: 'INVALID_PAIR',
    message: `${code.slice(0, 20)} is not a currency we exchange; choose from ${choices}`,
  }
}

function notOnNetwork(
  { currency, choices }: Named,
  network: string | null,
  field: 'from_network' | 'to_network',
): DeskRejection {
  if (network === null) {
    return aboutField('INVALID_PARAMETER', field, `is required for ${currency}: one of ${choices}`)
  }
  const message = `${currency} is not exchanged on ${network.slice(0, 20)}; choose from ${choices}`
  return { code: 'NETWORK_MISMATCH', message }
}

/** The market of a pair for what is new, if both of it are offered and both its prices are believed. */
export function readMarket(board: MarketBoard, pair: Pair, rateType: RateType): DeskOutcome<Market> {
  const rejection = whyUnavailable(board.isOffered, pair.from, pair.to)
  return rejection === null ? board.read(pair.from, pair.to, rateType) : refuse(rejection)
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
