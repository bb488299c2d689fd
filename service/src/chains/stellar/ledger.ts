import type { BlockRef } from '../chain.ts'
import type { Fields } from '../replies.ts'
import { type Horizon, NoAnswer } from './horizon.ts'
import { bigintIn, hashIn, integerIn, recordsIn, secondsIn } from './replies.ts'

export type Ledger = BlockRef & {
  readonly parentHash: string
  readonly closedAtS: number
  /** What an account must keep for each of its entries; two of them for itself. */
  readonly baseReserve: bigint
  readonly baseFee: bigint
}

export async function head(horizon: Horizon): Promise<Ledger> {
  const page = await horizon.get('/ledgers?order=desc&limit=1')
  const [newest] = page === null ? [] : recordsIn(page, 'ledgers')
  if (newest === undefined) throw new NoAnswer('ledgers', 'there is none yet')
  return decode(newest)
}

/** Heights are numbers of 31 bits, and Horizon does not understand larger ones. */
const HEIGHT_MAX = 2 ** 31 - 1

/**
 * A closed ledger, or null when it is yet to come. Ledgers are never replaced, so a Horizon that lacks an old one does not
 * keep enough history and cannot tell: it rejects.
 */
export async function readLedger(horizon: Horizon, height: number): Promise<Ledger | null> {
  const found = height > HEIGHT_MAX ? null : await horizon.get(`/ledgers/${height}`)
  if (found !== null) {
    const ledger = decode(found)
    if (ledger.height !== height) throw new NoAnswer('ledger', `it is ledger ${ledger.height}, not ${height}`)
    return ledger
  }
  const newest = await head(horizon)
  if (height > newest.height) return null
  throw new NoAnswer('ledger', `Horizon has ledger ${newest.height} and not ${height}: give it more history`)
}

function decode(ledger: Fields): Ledger {
  return {
    height: integerIn(ledger.sequence, 'ledger sequence'),
    hash: hashIn(ledger.hash, 'ledger hash'),
    parentHash: hashIn(ledger.prev_hash, 'ledger prev_hash'),
    closedAtS: secondsIn(ledger.closed_at, 'ledger closed_at'),
    baseReserve: bigintIn(ledger.base_reserve_in_stroops, 'ledger base_reserve_in_stroops'),
    baseFee: bigintIn(ledger.base_fee_in_stroops, 'ledger base_fee_in_stroops'),
  }
}

/** SEP-35: the number of an operation has its ledger in the upper 32 bits. */
export function ledgerOf(operationId: bigint): number {
  return Number.parseInt(String(operationId >> 32n), 10)
}

/** Behind everything that a ledger holds. */
export function endOf(height: number): bigint {
  return (BigInt(height + 1) << 32n) - 1n
}
