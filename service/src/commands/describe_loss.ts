import { show } from '../engine/books/audit_order.ts'
import type { Loss } from '../engine/books/write_off.ts'

/** What keeps an operator from paying by hand what an order is owed; null where all that it was paid for is there. */
export function describeLoss({ missing, writtenOff }: Loss): string | null {
  if (missing.units > 0n) {
    const lost = show(missing.asset, missing.units)
    return `Its own deposit is gone: ${lost} is missing. Pay nothing unless that is back.`
  }
  if (writtenOff.units === 0n) return null
  const lost = show(writtenOff.asset, writtenOff.units)
  return `Its own deposit is gone: ${lost} of it was written off. Pay nothing unless other money of its payer makes up for that.`
}
