import type { Clock } from '../clock.ts'
import type { Reserve } from '../db/reserves.ts'
import type { AssetId } from '../domain/catalog/assets.ts'
import type { Amount } from '../domain/money/amount.ts'
import type { InstantMs } from '../domain/time.ts'

type SetAside = { readonly amount: Amount; endedAtMs: InstantMs | null }

/**
 * What of each reserve is free: the figures that were read last, less what this process is settling or has settled since
 * they were taken. They are some seconds old, and each of many orders that are settled meanwhile would see the whole of
 * them. What came of a settlement is not asked: one that failed holds its amount for a few seconds longer.
 */
export function openFreeReserves(clock: Clock) {
  let figures: ReadonlyMap<AssetId, Reserve> = new Map()
  let free = new Map<AssetId, Reserve>()
  let setAsides: SetAside[] = []

  const freeOf = (figure: Reserve): Reserve => {
    const held = setAsides.filter(({ amount }) => amount.asset === figure.asset)
    const spendable = held.reduce((left, { amount }) => left - amount.units, figure.spendable)
    return sameOr(free.get(figure.asset), { ...figure, spendable: spendable < 0n ? 0n : spendable })
  }

  return {
    get: (asset: AssetId): Reserve | undefined => free.get(asset),
    takeFigures: (read: readonly Reserve[]): void => {
      figures = new Map(read.map((figure) => [figure.asset, figure]))
      // A figure that was begun after a settlement had ended has its outflow in it.
      setAsides = setAsides.filter(({ amount, endedAtMs }) => {
        return endedAtMs === null || endedAtMs >= (figures.get(amount.asset)?.atMs ?? 0)
      })
      free = new Map(read.map((figure) => [figure.asset, freeOf(figure)]))
    },
    /** Begins at once: nobody sees the amount any more who looks before the first thing is awaited. */
    setAside: async <Result>(amount: Amount, work: () => Promise<Result>): Promise<Result> => {
      const begun: SetAside = { amount, endedAtMs: null }
      setAsides.push(begun)
      const figure = figures.get(amount.asset)
      if (figure !== undefined) free.set(amount.asset, freeOf(figure))
      try {
        return await work()
      } finally {
        begun.endedAtMs = clock.nowMs()
      }
    },
  }
}

/** The reserve that was known, as long as it is the same: so that what was made of it stands. */
function sameOr(known: Reserve | undefined, read: Reserve): Reserve {
  const isSame = known?.spendable === read.spendable && known.payoutCost === read.payoutCost
  return isSame ? known : read
}
