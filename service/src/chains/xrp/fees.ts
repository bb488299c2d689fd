import { fromChainUnits } from '../../domain/money/amount.ts'
import { larger } from '../../domain/money/larger.ts'
import type { Outcome } from '../../domain/outcome.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import type { DraftRejection, PayoutEstimate } from '../chain.ts'
import { dropsIn, integerIn, objectIn } from './replies.ts'
import { NoAnswer, type Rpc } from './rpc.ts'

export type AskedFee = {
  /** What gets a transaction into the next ledger. */
  readonly feeDrops: bigint
  /** The ledger that is open now. */
  readonly ledger: number
}

export async function askedFee(rpc: Rpc): Promise<AskedFee> {
  const result = await rpc.call('fee')
  const drops = objectIn(result.drops, 'fee drops')
  const [base, open] = [
    dropsIn(drops.base_fee, 'fee base_fee'),
    dropsIn(drops.open_ledger_fee, 'fee open_ledger_fee'),
  ]
  return {
    feeDrops: larger(base, open),
    ledger: integerIn(result.ledger_current_index, 'fee ledger_current_index'),
  }
}

/** A little more than is asked now, within the cap; refused when even today's fee is above it. */
export function feeWithin(capDrops: bigint, { feeDrops }: AskedFee): Outcome<bigint, DraftRejection> {
  if (feeDrops > capDrops) {
    const message = `the ledger asks ${feeDrops} drops and the cap is ${capDrops}`
    return refuse({ code: 'fee_cap', message })
  }
  const roomy = withRoom(feeDrops)
  return accept(roomy < capDrops ? roomy : capDrops)
}

export function estimateAt(capDrops: bigint, asked: AskedFee): PayoutEstimate {
  return {
    cost: fromChainUnits('XRP:XRP', withRoom(asked.feeDrops)),
    isAboveFeeCap: !feeWithin(capDrops, asked).ok,
  }
}

/** Half as much again: between a quote and its payout the ledger may fill up. */
function withRoom(feeDrops: bigint): bigint {
  return (feeDrops * 3n + 1n) / 2n
}

/** In drops: https://xrpl.org/docs/concepts/accounts/reserves */
export type Reserves = {
  /** What an account must keep, and what makes an account that is not there yet. */
  readonly base: bigint
  /** What it must keep besides for each object that it owns: an offer, a trust line, a ticket. */
  readonly perObject: bigint
}

export async function readReserves(rpc: Rpc): Promise<Reserves> {
  const { state } = await rpc.call('server_state')
  const { validated_ledger: told } = objectIn(state, 'server_state state')
  if (told === undefined) throw new NoAnswer('server_state', 'the node has no validated ledger')
  const ledger = objectIn(told, 'server_state validated_ledger')
  return {
    base: dropsIn(ledger.reserve_base, 'server_state reserve_base'),
    perObject: dropsIn(ledger.reserve_inc, 'server_state reserve_inc'),
  }
}
