import { fromChainUnits } from '../../domain/money/amount.ts'
import { larger } from '../../domain/money/larger.ts'
import type { Outcome } from '../../domain/outcome.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import type { DraftRejection, PayoutEstimate } from '../chain.ts'
import { type Horizon, NoAnswer } from './horizon.ts'
import { bigintIn, objectIn } from './replies.ts'

/**
 * What the latest ledgers took for one operation, in stroops. Payments of a ledger all pay the same, while every call of a contract pays for
 * the resources it uses: these are in Horizon's figures too, so that a percentile may be theirs, and only what is most frequent is not.
 */
export async function askedFee(horizon: Horizon): Promise<bigint> {
  const stats = await horizon.get('/fee_stats')
  if (stats === null) throw new NoAnswer('fee_stats', 'there are none')
  const base = bigintIn(stats.last_ledger_base_fee, 'last_ledger_base_fee')
  const charged = bigintIn(objectIn(stats.fee_charged, 'fee_charged').mode, 'fee_charged mode')
  return larger(charged, base)
}

/** More than is asked now, within the cap; refused when even today's fee is above it. The ledger takes what it asks. */
export function feeWithin(capStroops: bigint, asked: bigint): Outcome<bigint, DraftRejection> {
  if (asked > capStroops) {
    const message = `the ledger asks ${asked} stroops and the cap is ${capStroops}`
    return refuse({ code: 'fee_cap', message })
  }
  const roomy = withRoom(asked)
  return accept(roomy < capStroops ? roomy : capStroops)
}

export function estimateAt(capStroops: bigint, asked: bigint): PayoutEstimate {
  return { cost: fromChainUnits('XLM:XLM', withRoom(asked)), isAboveFeeCap: !feeWithin(capStroops, asked).ok }
}

/** Twice as much: between a quote and its payout ledgers may fill up. */
function withRoom(stroops: bigint): bigint {
  return stroops * 2n
}
