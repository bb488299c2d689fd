import type { AssetId } from '../../src/domain/catalog/assets.ts'
import { type CurrencyCode, currencyCodes } from '../../src/domain/catalog/currencies.ts'
import type { SandboxPrices } from '../../src/prices/index.ts'
import { TRX_FEE } from './chains/read_dated_tx.ts'
import type { SimulatedNodes } from './chains/simulated_chains.ts'

/** From `atMs` on. */
export type Tariff = {
  readonly atMs: number
  /** 10^-12 dollars for one whole unit. */
  readonly usd: ReadonlyMap<CurrencyCode, bigint | null>
  /** What sending an asset out is said to cost, in the smallest units of its chain's coin. */
  readonly costs: ReadonlyMap<AssetId, bigint>
}

/** What was asked at each moment, by whoever made prices and fees. */
export class Tariffs {
  readonly #prices: SandboxPrices
  readonly #nodes: () => SimulatedNodes
  readonly #nowMs: () => number
  readonly #all: Tariff[] = []
  #last = ''

  constructor(prices: SandboxPrices, nodes: () => SimulatedNodes, nowMs: () => number) {
    this.#prices = prices
    this.#nodes = nodes
    this.#nowMs = nowMs
  }

  /** Notes what prices and fees are, where they have changed. */
  look(): void {
    const usd = new Map(currencyCodes.map((code) => [code, this.#prices.usd(code)]))
    const costs = usualCosts(this.#nodes())
    const now = [...usd.values(), ...costs.values()].join()
    if (now === this.#last) return
    this.#last = now
    this.#all.push({ atMs: this.#nowMs(), usd, costs })
  }

  /** Also what changed at the first moment: which came before which nobody can tell. */
  during(fromMs: number, untilMs: number): readonly Tariff[] {
    return this.#all.filter(({ atMs }, index) => {
      const next = this.#all[index + 1]
      return atMs <= untilMs && (next === undefined || next.atMs >= fromMs)
    })
  }

  /** A figure of before stands until its chain and the market board are looked at again, however long that takes. */
  costsUntil(asset: AssetId, untilMs: number): readonly bigint[] {
    const costs = this.during(0, untilMs).map(({ costs }) => costs.get(asset) ?? 0n)
    return [...new Set(costs)]
  }
}

const COIN_GAS = 21_000n
const TOKEN_GAS = 90_000n
/** Of the payout that a quote charges for. */
export const TYPICAL_VBYTES = 289n
const LAMPORTS_A_SIGNATURE = 5_000n

/** What a quote charges for, told anew: a usual payout, with room for fees that rise where they do so quickly. */
function usualCosts({ BTC, ETH, XRP, XLM, SOL }: SimulatedNodes): ReadonlyMap<AssetId, bigint> {
  const milliSatoshi = TYPICAL_VBYTES * BTC.askedMilliSatPerVb()
  const weiPerGas = 2n * ETH.baseWei + ETH.tipWei
  return new Map<AssetId, bigint>([
    ['BTC:BTC', (milliSatoshi + 999n) / 1_000n],
    ['ETH:ETH', COIN_GAS * weiPerGas],
    ['USDT:ERC20', TOKEN_GAS * weiPerGas],
    ['XRP:XRP', 2n * XRP.fee],
    ['XLM:XLM', 2n * XLM.fee],
    ['TRX:TRX', TRX_FEE],
    ['EOS:EOS', 0n],
    ['SOL:SOL', 2n * (LAMPORTS_A_SIGNATURE + SOL.fee)],
  ])
}
