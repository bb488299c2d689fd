import { assert } from '../../domain/assert.ts'
import { type CurrencyCode, currencyCodes, isCurrencyCode } from '../../domain/catalog/currencies.ts'
import { divide, formatDecimal, parseDecimal, powerOfTen } from '../../domain/money/decimal.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { type Prices, USD_PRICE_DECIMALS, type UsdPrice } from '../price_source.ts'

/** Dollars for one whole unit; a new currency does not compile without one. */
const startingPrices = {
  BTC: '65000',
  ETH: '3500',
  USDT: '1',
  USDC: '1',
  BNB: '600',
  XRP: '2.5',
  XLM: '0.4',
  TRX: '0.25',
  EOS: '0.8',
  SOL: '150',
} as const satisfies Record<CurrencyCode, string>

/** Beyond a quadrillion dollars a typing mistake is likelier than a price. */
const USD_MAX = powerOfTen(15 + USD_PRICE_DECIMALS)

export type SandboxPrices = Prices & {
  usd(currency: CurrencyCode): UsdPrice
  /** Dollars for one whole unit as a plain decimal: `65000`, `0.1`. */
  set(currency: CurrencyCode, usdText: string): Outcome<UsdPrice>
  /** By so many percent of what it is now: `-10`, `2.5`. Exact to 10^-12 dollars, then rounded down. */
  change(currency: CurrencyCode, percentText: string): Outcome<UsdPrice>
  /** Every price as decimal text: what `load` takes. */
  all(): Readonly<Record<CurrencyCode, string>>
  /** Takes all saved prices or, when one is wrong, none. Currencies that are no longer listed are passed over. */
  load(saved: Readonly<Record<string, string>>): Outcome<null>
}

/** Prices that hold still until someone moves them. They need no quorum and never grow old. */
export function sandboxPrices(): SandboxPrices {
  const table = new Map<CurrencyCode, UsdPrice>()
  const usd = (currency: CurrencyCode) => {
    const price = table.get(currency)
    assert(price !== undefined, `the sandbox has a price of ${currency}`)
    return price
  }
  const put = (currency: CurrencyCode, price: Outcome<UsdPrice>) => {
    if (price.ok) table.set(currency, price.value)
    return price
  }
  const load = (saved: Readonly<Record<string, string>>): Outcome<null> => {
    const read = Object.entries(saved).filter(([code]) => isCurrencyCode(code))
    const parsed = read.map(([code, text]) => [code as CurrencyCode, parsePrice(text)] as const)
    const wrong = parsed.map(([, price]) => price).find((price) => !price.ok)
    if (wrong !== undefined && !wrong.ok) return wrong
    for (const [code, price] of parsed) put(code, price)
    return accept(null)
  }
  assert(load(startingPrices).ok, 'the starting prices are prices')
  return {
    usd,
    set: (currency, usdText) => put(currency, parsePrice(usdText)),
    change: (currency, percentText) => put(currency, changePrice(usd(currency), percentText)),
    all: () =>
      Object.fromEntries(
        currencyCodes.map((code) => [code, formatDecimal(usd(code), USD_PRICE_DECIMALS)]),
      ) as Record<CurrencyCode, string>,
    load,
  }
}

function parsePrice(text: string): Outcome<UsdPrice> {
  const parsed = parseDecimal(text, USD_PRICE_DECIMALS)
  return parsed.ok ? checkRange(parsed.value) : parsed
}

function changePrice(price: UsdPrice, percentText: string): Outcome<UsdPrice> {
  const isDown = percentText.startsWith('-')
  const percent = parseDecimal(isDown ? percentText.slice(1) : percentText, USD_PRICE_DECIMALS)
  if (!percent.ok) return percent
  const whole = 100n * powerOfTen(USD_PRICE_DECIMALS)
  const changed = isDown ? whole - percent.value : whole + percent.value
  if (changed <= 0n) {
    return refuse({ code: 'price_out_of_range', message: 'must leave a price above zero' })
  }
  return checkRange(divide(price * changed, whole, 'down'))
}

function checkRange(price: UsdPrice): Outcome<UsdPrice> {
  return price > 0n && price <= USD_MAX
    ? accept(price)
    : refuse({ code: 'price_out_of_range', message: 'must be above zero and at most a quadrillion dollars' })
}
