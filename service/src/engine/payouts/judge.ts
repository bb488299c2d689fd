import type { TxStatus } from '../../chains/chain.ts'
import type { Clock } from '../../clock.ts'
import { appendAudit, type By, houseChain } from '../../db/audit_log.ts'
import type { Database, Sql } from '../../db/database.ts'
import { endedStates, findOutflow, type OtherMove, type StoredOutflow } from '../../db/outflows.ts'
import {
  findVerdict,
  insertVerdict,
  lockUnjudged,
  makeOutflowDue,
  readVerdicts,
  type ToldVerdict,
} from '../../db/verdicts.ts'
import { isOrderId, readPayoutId } from '../../domain/orders/identifiers.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { type PayoutId, paysSomebody } from '../../domain/payouts/intent.ts'
import { whoWhenAndWhy } from '../books/operator_word.ts'
import { type Loss, readLoss } from '../books/write_off.ts'

export type JudgePlace = { readonly db: Database; readonly clock: Pick<Clock, 'wallMs'>; readonly by: By }

/** An operator's word: whether what a payout's token moved instead has paid, and why it counts as that. */
export type Judgement = { readonly payoutId: PayoutId; readonly isPaid: boolean; readonly because: string }

export type Judged = Judgement &
  OtherMove & {
    /** It was final before and its order has ended: nobody is asked any more. */
    readonly isOrderEnded: boolean
    /** Of what its order was paid for: who pays by hand although that is gone has lost both. */
    readonly loss: Loss
    /** Where the audit log has it. */
    readonly auditChain: string
  }

type InBlock = TxStatus & { readonly where: 'block' }

/**
 * Writes down an operator's word about a payout whose token moved in another way than it was to (docs/decisions/0050), which the engine
 * goes by at its next look. Refuses one about anything else, and a second one about the same move.
 */
export async function judgeOutflow({ db, clock, by }: JudgePlace, word: Judgement): Promise<Outcome<Judged>> {
  const { payoutId, isPaid, because } = word
  return db.transaction(async (tx) => {
    const move = isName(payoutId) ? await lockUnjudged(tx, payoutId) : null
    const outflow = await findLive(tx, payoutId)
    if (!outflow.ok) return outflow
    if (move === null) return refuse(nothingToJudge(payoutId))
    const before = (await readVerdicts(tx, [payoutId])).find((one) => isAbout(one, move))
    if (before !== undefined) return refuse(judgedBefore(before))
    await insertVerdict(tx, payoutId, move, isPaid, clock.wallMs())
    await makeOutflowDue(tx, payoutId)
    const auditChain = houseChain(payoutId)
    await appendAudit(tx, {
      chain: auditChain,
      atMs: clock.wallMs(),
      act: 'payout_judged',
      by,
      subject: payoutId,
      detail: { verdict: verdictText(isPaid), because, tx_hash: move.txHash, moved: move.moved },
    })
    const { state, orderId } = outflow.value
    const loss = await readLoss(tx, orderId)
    return accept({ ...word, ...move, isOrderEnded: state === 'orphaned', loss, auditChain })
  })
}

/** The only ones that lie elsewhere than in the bucket of an order are those of the house. */
function isName(text: string): boolean {
  return !text.startsWith('CB') || isOrderId(readPayoutId(text).orderId)
}

async function findLive(tx: Sql, payoutId: PayoutId): Promise<Outcome<StoredOutflow>> {
  const outflow = isName(payoutId) ? await findOutflow(tx, payoutId) : null
  if (outflow === null) {
    const message = `There is no outflow ${payoutId}; \`cambist order list --trouble\` names those that wait for you, under OUTFLOW.`
    return refuse({ code: 'unknown', message })
  }
  if (!paysSomebody(outflow)) {
    return refuse({ code: 'pays_nobody', message: `${payoutId} is a ${outflow.kind}: it pays nobody.` })
  }
  if (endedStates.includes(outflow.state)) {
    const verdicts = (await readVerdicts(tx, [payoutId])).map((one) => ` It was ${judgedAs(one)}.`)
    const message = `${payoutId} has ended (${outflow.state}): there is nothing to judge.${verdicts.join('')}`
    return refuse({ code: 'ended', message })
  }
  return accept(outflow)
}

function nothingToJudge(payoutId: PayoutId) {
  const message =
    `No transaction of ${payoutId} is known that is final and moved something else than it was to. ` +
    'An engine notes that when it finds it; `cambist order list --trouble` says what is in the way.'
  return { code: 'not_in_doubt', message }
}

function isAbout({ tx_hash, moved }: ToldVerdict, move: OtherMove): boolean {
  return tx_hash === move.txHash && moved === move.moved
}

function judgedBefore(verdict: ToldVerdict) {
  const message = `${verdict.payout_id} was ${judgedAs(verdict)}. That stands: an engine goes by it.`
  return { code: 'judged_before', message }
}

/** With whose word it was, when and why: two operators may give the same reason. */
function judgedAs(verdict: ToldVerdict): string {
  return `judged ${verdictText(verdict.is_paid)} with ${verdict.tx_hash} ${whoWhenAndWhy(verdict)}`
}

/** In the words of the audit log. */
export function verdictText(isPaid: boolean): 'paid' | 'not paid' {
  return isPaid ? 'paid' : 'not paid'
}

/**
 * What became of a transaction, as far as it says so itself or an operator has said so of what it moved instead: one that is judged not to
 * have paid has failed, and not because of who was to be paid. Null: nobody has.
 */
export async function statusAsJudged(
  sql: Sql,
  payoutId: PayoutId,
  txHash: string,
  status: InBlock,
): Promise<InBlock | null> {
  const { movedOtherwise: moved, ...told } = status
  if (moved === undefined) return status
  const isPaid = await findVerdict(sql, payoutId, { txHash, moved })
  if (isPaid === null) return null
  return isPaid ? told : { ...told, succeeded: false, fault: 'ours' }
}
