import type { Chain, TxStatus } from '../../chains/chain.ts'
import { attemptsOf } from '../../db/attempts.ts'
import { postForHouse } from '../../db/books.ts'
import { type ClaimedOutflow, lockClaimed } from '../../db/claim_outflows.ts'
import { failOrphaned, findRejected } from '../../db/lost_outflows.ts'
import { endOutflow, liveStates, type StoredOutflow, setOutflowState } from '../../db/outflows.ts'
import { networkCostPaid, reversed } from '../../domain/ledger/postings.ts'
import { type Intent, paysSomebody } from '../../domain/payouts/intent.ts'
import { takeBackClosedOwed, wasToldPaid } from '../books/close_owed.ts'
import type { SigningWorld } from '../world.ts'
import { statusAsJudged } from './judge.ts'
import { foundAgainKey, owedAgain, tellAgain } from './orphan.ts'
import type { Progress } from './progress.ts'
import { settleCoins } from './take_back.ts'
import { whyWaitUntilDeep } from './wait_until_deep.ts'

/**
 * A filler may have the nonce of an outflow that had failed and lost its block, and one that has lost its own block leaves open again what
 * it stood in for. We never send that again, but others may have it: when it is mined after all, deep enough, it costs what it costs
 * there, and its filler has ended. Null: the filler goes its way.
 */
export async function followRejected(
  world: SigningWorld,
  chain: Chain,
  filler: ClaimedOutflow,
): Promise<Progress | null> {
  if (filler.kind !== 'filler') return null
  const rejected = await findRejected(world.db, filler)
  if (rejected === null) return null
  for (const { tx, intent } of await attemptsOf(world.db, rejected.payoutId)) {
    if (tx === null) continue
    const status = await chain.lookup(tx.txHash, intent)
    if (status.where !== 'block') continue
    const waits = await whyWaitUntilDeep(world, chain, status.block)
    if (waits !== null) return waits
    const judged = await statusAsJudged(world.db, rejected.payoutId, tx.txHash, status)
    await endRejected(world, filler, rejected, { txHash: tx.txHash, intent, status, judged })
    return { kind: 'done' }
  }
  return null
}

type InBlock = TxStatus & { readonly where: 'block' }

/** `judged`: null where its token moved otherwise than it was to, and nobody has said what that counts as. */
type Mined = {
  readonly txHash: string
  readonly intent: Intent
  readonly status: InBlock
  readonly judged: InBlock | null
}

/**
 * Should it have paid this time, its order may have been paid otherwise meanwhile: nothing is booked of that, so that books and chain differ
 * by it until a person has looked. Unless its order was told that it is paid, and it was owed since it had lost its block: then it has come
 * true again, and what an operator has closed of it is turned round. What moved otherwise has not, as long as nobody has said so: it has
 * ended, and waits for no word.
 */
async function endRejected(
  world: SigningWorld,
  filler: ClaimedOutflow,
  rejected: StoredOutflow,
  { txHash, intent, status: ended, judged }: Mined,
): Promise<void> {
  const { db, clock } = world
  const { payoutId } = rejected
  const isOwed = await wasToldPaid(db, rejected)
  const isSettled = isOwed && judged?.succeeded === true
  if (isSettled) await tellAgain(world, rejected, txHash, ended)
  const isFirst = await db.transaction(async (tx) => {
    if ((await lockClaimed(tx, filler)) === null) return false
    if (!(await failOrphaned(tx, filler.payoutId)))
      await setOutflowState(tx, filler.payoutId, liveStates, 'failed')
    await endOutflow(tx, payoutId, ['failed'], isSettled ? 'confirmed' : 'failed', ended)
    if (isSettled) await takeBackClosedOwed(tx, clock, rejected)
    // The filler's as well, which are free as far as this one does not spend them.
    await settleCoins(tx, filler, intent)
    await settleCoins(tx, rejected, intent)
    const paid = isSettled ? reversed(owedAgain(rejected)) : []
    const key = await foundAgainKey(tx, rejected, ended)
    await postForHouse(tx, key, [...paid, ...networkCostPaid(ended.cost)], clock.nowMs())
    return true
  })
  const { succeeded } = judged ?? ended
  if (isFirst) tellEnd(world, rejected, { isOwed, isSettled, succeeded })
}

type End = { readonly isOwed: boolean; readonly isSettled: boolean; readonly succeeded: boolean }

function tellEnd(
  { log }: SigningWorld,
  rejected: StoredOutflow,
  { isOwed, isSettled, succeeded }: End,
): void {
  const { payoutId: payout } = rejected
  // Somebody was told that it never can be mined and has to be paid by hand.
  if (isSettled)
    log.error(
      { payout },
      'an outflow that was given up and owed was mined after all: if it was paid by hand, it was paid twice',
    )
  else if (succeeded && isOwed)
    log.error(
      { payout },
      'an outflow that was owed was mined after all and moved something else: it does not count as paid, and may have paid somebody',
    )
  else if (succeeded && paysSomebody(rejected))
    log.error({ payout }, 'an outflow that had failed was mined again and paid: it may have been paid twice')
  else log.info({ payout }, 'an outflow that had failed was mined again: nobody was paid by it')
}
