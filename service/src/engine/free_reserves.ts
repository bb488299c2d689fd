import type { Reserve } from '../db/reserves.ts'
import { type AssetId, assetIdsOn, assetOf, nativeAsset } from '../domain/catalog/assets.ts'
import type { Amount } from '../domain/money/amount.ts'
import { larger } from '../domain/money/larger.ts'
import type { OrderId } from '../domain/orders/identifiers.ts'

/** So many of the dearest payouts on a chain its native coin is kept for: whoever sells all of it has no gas for the rest. */
const PAYOUTS_KEPT_FOR = 20n
/** A token is quoted while the coin is there for so many payouts of it, fewer than are kept, because fees rise. */
const PAYOUTS_NEEDED = 5n

export type FreeReserve = Reserve & {
  /** What of it new orders are quoted from; what was accepted may use all that is spendable, whatever gas costs by then. */
  readonly quotable: bigint
}

/** What was read last: the figures, and the last number of one that was drawn. */
export type ReserveFigures = { readonly reserves: readonly Reserve[]; readonly lastDrawn: number }

type SetAside = {
  readonly orderId: OrderId
  readonly amount: Amount
  hasEnded: boolean
  /** The last figure's number that was drawn, as read at some moment after this settlement had ended; null until one was read. */
  drawnBy: number | null
}

/**
 * What of each reserve is free: the figures that were read last, less what this process is settling or has settled since
 * they were taken. The figures are some seconds old: without that, each of many orders that are settled meanwhile would see the whole
 * reserve. What came of a settlement is not looked at, so one that failed holds its amount for a few seconds longer. An order has at most
 * one outflow that may pay: however often it is settled meanwhile, its amount is held once, and not against the order itself.
 */
export function openFreeReserves() {
  let figures: ReadonlyMap<AssetId, Reserve> = new Map()
  let free = new Map<AssetId, FreeReserve>()
  let setAsides: SetAside[] = []

  const freeOf = (figure: Reserve): FreeReserve => {
    const spendable = spendableOf(figure, setAsides)
    return sameOr(free.get(figure.asset), {
      ...figure,
      spendable,
      quotable: quotableOf(figure, spendable, figures),
    })
  }

  return {
    get: (asset: AssetId): FreeReserve | undefined => free.get(asset),
    /** What of it this order may be paid from: what it holds itself is not taken off. Nothing as long as nobody has looked. */
    spendableBy: (orderId: OrderId, asset: AssetId): bigint => {
      const figure = figures.get(asset)
      const others = setAsides.filter((one) => one.orderId !== orderId)
      return figure === undefined ? 0n : spendableOf(figure, others)
    },
    /** Takes what `read` tells, which begins now. */
    refresh: async (read: () => Promise<ReserveFigures>): Promise<void> => {
      const ended = setAsides.filter(({ hasEnded }) => hasEnded)
      const { reserves, lastDrawn } = await read()
      for (const setAside of ended) setAside.drawnBy ??= lastDrawn
      figures = new Map(reserves.map((figure) => [figure.asset, figure]))
      // A figure that was begun after a settlement had ended has its outflow in it.
      setAsides = setAsides.filter(({ amount, drawnBy }) => {
        return drawnBy === null || drawnBy >= (figures.get(amount.asset)?.figure ?? 0)
      })
      free = new Map(reserves.map((figure) => [figure.asset, freeOf(figure)]))
    },
    /**
     * Begins at once: no other order sees the amount any more that looks before the first thing is awaited. Of what an order is settled
     * by at most one counts, however often it is tried: the largest amount of those tries is held.
     */
    setAside: async <Result>(
      orderId: OrderId,
      amount: Amount,
      work: () => Promise<Result>,
      isUndone: (result: Result) => boolean = () => false,
    ): Promise<Result> => {
      const begun: SetAside = { orderId, amount, hasEnded: false, drawnBy: null }
      setAsides.push(begun)
      const tell = () => {
        const figure = figures.get(amount.asset)
        if (figure !== undefined) free.set(amount.asset, freeOf(figure))
      }
      tell()
      try {
        const result = await work()
        if (isUndone(result)) {
          setAsides = setAsides.filter((each) => each !== begun)
          tell()
        }
        return result
      } finally {
        begun.hasEnded = true
      }
    },
  }
}

function quotableOf(
  { asset, payoutCost, isUnpayable }: Reserve,
  spendable: bigint,
  figures: ReadonlyMap<AssetId, Reserve>,
): bigint {
  // It would wait until the fee falls or the account has more, and its customer with it.
  if (isUnpayable) return 0n
  const { isNative, chain } = assetOf(asset)
  if (!isNative) {
    const gas = figures.get(nativeAsset(chain).id)?.spendable ?? 0n
    return gas >= PAYOUTS_NEEDED * payoutCost ? spendable : 0n
  }
  const costs = assetIdsOn(chain).map((id) => figures.get(id)?.payoutCost ?? 0n)
  const dearest = costs.reduce(larger, 0n)
  return larger(spendable - PAYOUTS_KEPT_FOR * dearest, 0n)
}

function spendableOf({ asset, spendable }: Reserve, setAsides: readonly SetAside[]): bigint {
  return larger(spendable - heldOf(asset, setAsides), 0n)
}

function heldOf(asset: AssetId, setAsides: readonly SetAside[]): bigint {
  const held = new Map<string, bigint>()
  for (const { orderId, amount } of setAsides.filter((one) => one.amount.asset === asset))
    held.set(orderId, larger(held.get(orderId) ?? 0n, amount.units))
  return [...held.values()].reduce((sum, units) => sum + units, 0n)
}

/** The reserve that was known, as long as it is the same: so that what was made of it stands. */
function sameOr(known: FreeReserve | undefined, read: FreeReserve): FreeReserve {
  const isSame =
    known?.spendable === read.spendable &&
    known.quotable === read.quotable &&
    known.payoutCost === read.payoutCost
  return isSame ? known : read
}
