import type { Chain } from '../../chains/chain.ts'
import type { ClaimedOutflow } from '../../db/claim_outflows.ts'
import type { Sql } from '../../db/database.ts'
import { isAccountBeingMade } from '../../db/leaving_outflows.ts'
import type { Progress } from './progress.ts'

const LOOK_AGAIN_MS = 500

/**
 * The account comes with a ledger, or what was to make it fails. Nobody is in trouble meanwhile: of two that wait, the one that is drafted
 * is given up where it does not get through, and the other goes on.
 */
export const untilThereIsAnAccount: Progress = { kind: 'again', inMs: LOOK_AGAIN_MS, atHeight: 'next' }

/**
 * Whether who is paid has no account yet, and another outflow of ours is about to make it. On Stellar that is an operation of its own:
 * a second one fails in the ledger, at the cost of who is to be paid, and a payment that cannot make accounts has nowhere to go until then.
 *
 * `lookedHeight`: how far the chain had been looked at before the node was asked about the payee; so the node knows of all that is mined
 * up to there.
 */
export async function isAccountOnItsWay(
  sql: Sql,
  { id, family, accountOf }: Chain,
  { kind, address }: ClaimedOutflow,
  lookedHeight: number,
): Promise<boolean> {
  if (family !== 'stellar' || kind === 'filler') return false
  return isAccountBeingMade(sql, id, accountOf?.(address) ?? address, lookedHeight)
}
