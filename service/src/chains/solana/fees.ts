import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { solanaFee } from '../../domain/payouts/solana_fee.ts'
import type { DraftRejection } from '../chain.ts'
import { HOLDING_BYTES } from './accounts.ts'
import { integerIn, lamportsIn, listIn, objectIn } from './replies.ts'
import type { Rpc } from './rpc.ts'

/**
 * What a transaction of ours may use. A transfer of SOL takes 450 with what sets its budget; one of a token 6,200 and what
 * makes its account 25,000, more while an address is looked for that fits.
 */
export const TRANSFER_UNITS = 1_000
export const TOKEN_UNITS = 60_000

/**
 * What others paid of late for being preferred where the reserve is written: the upper quarter of what a node tells, which is for each slot the
 * least that was in it (https://github.com/solana-foundation/developer-content/issues/79), and mostly nothing. Anybody may write it, asks
 * for a single unit and names a price that costs them next to nothing: so it says what we would like to pay, and never
 * whether we can.
 */
export async function readUnitPrice(rpc: Rpc, writable: string): Promise<bigint> {
  const recent = listIn(await rpc.call('getRecentPrioritizationFees', [writable]), 'prioritization fees')
  const prices = recent
    .map((each) => priceIn(objectIn(each, 'prioritization fee').prioritizationFee))
    .sort((a, b) => a - b)
  return BigInt(prices[Math.floor((prices.length * 3) / 4)] ?? 0)
}

/** Prices have 64 bits: beyond 2^53 they are not exact here, and absurd. */
function priceIn(value: unknown): number {
  return integerIn(
    typeof value === 'number' && value > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : value,
    'prioritizationFee',
  )
}

/** Lamports that the cap leaves for priority. What pays too little is drafted again in a minute: the cap is bid, and not waited for. */
export function priorityWithin(capLamports: bigint, signatures: number): Outcome<bigint, DraftRejection> {
  const left = capLamports - solanaFee(signatures, 0, 0n)
  return left < 0n
    ? refuse({ code: 'fee_cap', message: `signatures alone cost more than ${capLamports} lamports` })
    : accept(left)
}

export type Rents = {
  /** What an account without data has to hold as long as it is there. */
  readonly account: bigint
  /** What an account for a token costs whoever makes it. */
  readonly holding: bigint
}

/** Asked once: only an upgrade of the network changes them, and a transaction that pays too little is refused before it is sent. */
export function rentsOf(rpc: Rpc): () => Promise<Rents> {
  let known: Rents | undefined
  const minimum = async (bytes: number) =>
    lamportsIn(await rpc.call('getMinimumBalanceForRentExemption', bytes), 'rent')
  return async () => {
    known ??= { account: await minimum(0), holding: await minimum(HOLDING_BYTES) }
    return known
  }
}

/** Quotes stand for a while, and fees move meanwhile. */
export function withRoom(fee: bigint): bigint {
  return fee * 2n
}
