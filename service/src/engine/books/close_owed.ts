import type { Clock } from '../../clock.ts'
import type { Sql } from '../../db/database.ts'
import { lockEnded } from '../../db/lost_outflows.ts'
import { tallyWords } from '../../db/operator_words.ts'
import { findOrder } from '../../db/orders.ts'
import type { StoredOutflow } from '../../db/outflows.ts'
import { isOrderId, readPayoutId } from '../../domain/orders/identifiers.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { type PayoutId, paysSomebody } from '../../domain/payouts/intent.ts'
import { bookWord, type Said, sayWord, type WordPlace, whoseWord } from './operator_word.ts'
import { type Loss, readLoss } from './write_off.ts'

export type ClosedOwed = Said & {
  /** Of the block that the payout is in, where it did not pay and may have moved something else; null: it is in none. */
  readonly minedHeight: number | null
  /** One reorganisation may take the payout and what it was paid for: who pays by hand then has lost both. */
  readonly loss: Loss
}

/**
 * Closes what is owed of a payout that was final, lost its block and can never be mined again, all of it, because it is paid by hand: it is
 * capital from here on (docs/decisions/0051). Refuses as long as it may be mined, and answers what it was paid for that is gone as well.
 */
export function closeOwed(
  { db, ...place }: WordPlace,
  payoutId: PayoutId,
  because: string,
): Promise<Outcome<ClosedOwed>> {
  return db.transaction(async (tx) => {
    // Whoever ends an outflow, or finds it mined, changes its row: until this is said nobody does.
    const found = isOfOrder(payoutId) ? await lockEnded(tx, payoutId) : null
    if (found === null || !paysSomebody(found.outflow)) return refuse(unknown(payoutId))
    const { outflow, mayBeMined, minedHeight } = found
    const { units: closed, last, next: number } = await tallyWords(tx, 'closed_owed', payoutId)
    if (closed !== 0n && last !== undefined) {
      return refuse({ code: 'closed', message: `${payoutId} was closed ${await whoseWord(tx, last)}` })
    }
    if (outflow.state === 'orphaned') {
      const message = `${payoutId} has lost its block and is sent again: it may be mined yet.`
      return refuse({ code: 'may_be_mined', message })
    }
    if (outflow.state !== 'failed' || !(await wasToldPaid(tx, outflow))) {
      const message = `Nothing is owed of ${payoutId} that was final and lost its block: it is ${outflow.state}.`
      return refuse({ code: 'nothing_owed', message })
    }
    if (mayBeMined) {
      const message = `${payoutId} may be mined yet: what stands in its way is not final.`
      return refuse({ code: 'may_be_mined', message })
    }
    const { orderId: owner, asset, units } = outflow
    const word = { act: 'closed_owed', owner, about: payoutId, number, asset, units, because } as const
    // Not locked: whoever applies a fact locks the order first, and the outflow after it.
    const loss = await readLoss(tx, owner)
    return accept({ ...(await sayWord(tx, place, word)), minedHeight, loss })
  })
}

/** Turns round what was closed of a payout that is mined after all; in the transaction that ends it anew. Nobody has said it. */
export async function takeBackClosedOwed(tx: Sql, clock: Clock, outflow: StoredOutflow): Promise<void> {
  const { orderId: owner, payoutId: about, asset } = outflow
  const { units: closed, next: number } = await tallyWords(tx, 'closed_owed', about)
  if (closed === 0n) return
  const because = 'what was closed as owed was mined after all'
  await bookWord(tx, clock, { act: 'closed_owed', owner, about, number, asset, units: -closed, because })
}

/** Whether its order was told that this paid it, and not that it failed: that it was never mined again is a matter of the books. */
export async function wasToldPaid(sql: Sql, outflow: StoredOutflow): Promise<boolean> {
  if (!paysSomebody(outflow)) return false
  const state = (await findOrder(sql, outflow.orderId))?.state
  const isEnded = state?.status === 'DONE' || state?.status === 'REFUNDED'
  return isEnded && state.payoutId === outflow.payoutId
}

function isOfOrder(payoutId: string): boolean {
  return isOrderId(readPayoutId(payoutId).orderId)
}

function unknown(payoutId: string) {
  const message = `There is no payout or refund ${payoutId}: \`cambist order show\` has those of an order under OUTFLOW.`
  return { code: 'unknown', message }
}
