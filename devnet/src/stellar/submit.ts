import { extractBaseAddress } from '@stellar/stellar-sdk/base'
import type { SimulatedChain } from '../simulated/chain.ts'
import { CutLine } from '../simulated/server.ts'
import { draftOn } from '../simulated/state.ts'
import { type Found, findTransaction, type Json, transactionJson } from './answers.ts'
import { decode, readTransaction, type StellarTransaction } from './decode_transaction.ts'
import type { StellarNode } from './node.ts'
import { Problem } from './problem.ts'
import { bumpCode } from './results.ts'
import { LEDGER_MS_MIN, type Stellar } from './rules.ts'
import { type Refusal, refuse, runTransaction } from './run_transaction.ts'

type Admission =
  | { readonly status: 'PENDING' | 'DUPLICATE' | 'TRY_AGAIN_LATER' }
  | { readonly status: 'ERROR'; readonly refused: Refusal }

const HTTP_STATUS = { PENDING: 201, DUPLICATE: 409, TRY_AGAIN_LATER: 503, ERROR: 400 } as const

/** Half a minute on the main network, where a ledger takes five seconds. */
const LEDGERS_TO_WAIT = 6
const WAIT_MS = 30_000

const BANNED_LEDGERS = 9

/** Answers at once: https://developers.stellar.org/docs/data/apis/horizon/api-reference/resources/submit-async-transaction */
export function submitAsync(node: StellarNode, body: string): { status: number; json: Json } {
  const { tx, admission, losesReply } = receive(node, read(node, body))
  if (losesReply) throw new CutLine()
  const { status } = admission
  const error = status === 'ERROR' && { error_result_xdr: admission.refused.xdr }
  return { status: HTTP_STATUS[status], json: { ...error, tx_status: status, hash: tx.id } }
}

/** Answers when it is in a ledger: https://developers.stellar.org/docs/data/apis/horizon/api-reference/resources/submit-a-transaction */
export async function submit(node: StellarNode, body: string, base: string): Promise<Json> {
  const given = read(node, body)
  const known = findTransaction(node.told(), given.id)
  if (known !== undefined) return answerOf(known, given.id, base)
  const { tx, admission, losesReply } = receive(node, given)
  if (losesReply) throw new CutLine()
  if (admission.status === 'ERROR') throw failed(tx, admission.refused)
  const found = await inLedger(node, tx.id)
  if (found !== undefined) return answerOf(found, tx.id, base)
  const detail =
    'Your request timed out before completing.  Please try your request again. If you are submitting a transaction make sure you are sending exactly the same transaction (with the same sequence number).'
  throw new Problem(504, 'timeout', 'Timeout', detail, { hash: tx.id, envelope_xdr: tx.envelope })
}

function receive(node: StellarNode, given: StellarTransaction) {
  const trouble = node.troubles.takeSubmit()
  if (trouble === 'lose request') throw new CutLine()
  const failWith = typeof trouble === 'object' ? trouble.failWith : undefined
  const isRefused = failWith?.startsWith('tx_') === true
  const tx = failWith === undefined || isRefused ? given : { ...given, failWith }
  const admission: Admission = isRefused ? { status: 'ERROR', refused: refuse(failWith) } : admit(node, tx)
  if (admission.status === 'PENDING' && trouble !== 'drop') node.chain.submit(tx)
  return { tx, admission, losesReply: trouble === 'lose reply' }
}

function read(node: StellarNode, body: string): StellarTransaction {
  const envelope = new URLSearchParams(body).get('tx') ?? ''
  try {
    return readTransaction(envelope, node.passphrase())
  } catch {
    const detail =
      'Horizon could not decode the transaction envelope in this request. A transaction should be an XDR TransactionEnvelope struct encoded using base64.  The envelope read from this request is echoed in the `extras.envelope_xdr` field of this response for your convenience.'
    throw new Problem(400, 'transaction_malformed', 'Transaction Malformed', detail, {
      envelope_xdr: envelope,
    })
  }
}

/** Whether stellar-core takes it into its queue, in which each account has one place. */
export function admit({ chain }: Pick<StellarNode, 'chain'>, tx: StellarTransaction): Admission {
  if (isBanned(chain, tx)) return { status: 'TRY_AGAIN_LATER' }
  const source = sourceOf(tx)
  const queued = chain.waiting.filter((waiting) => sourceOf(waiting) === source)
  if (queued.some(({ id }) => id === tx.id)) return { status: 'DUPLICATE' }
  const { head } = chain
  const place = { height: head.height + 1, timeMs: Math.max(Date.now(), head.timeMs + LEDGER_MS_MIN) }
  if (queued.length > 0) {
    const isOlder = queued.some((waiting) => sequenceOf(tx) < sequenceOf(waiting))
    return isOlder ? { status: 'ERROR', refused: refuse('tx_bad_seq') } : { status: 'TRY_AGAIN_LATER' }
  }
  // A closed ledger, not the queue: what others have submitted is not there yet.
  const outcome = runTransaction(tx, draftOn(chain.view().state), place)
  return 'refused' in outcome ? { status: 'ERROR', refused: outcome.refused } : { status: 'PENDING' }
}

/**
 * What a ledger has taken is told to come later, for nine ledgers, before anybody looks at it (stellar-core: `TransactionQueue::canAdd`
 * and `removeApplied`, `TRANSACTION_QUEUE_BAN_LEDGERS`).
 */
function isBanned(chain: SimulatedChain<Stellar>, { id }: StellarTransaction): boolean {
  const { head, find } = chain.view()
  const found = find(id)
  return found !== undefined && head.height - found.block.height < BANNED_LEDGERS
}

function sourceOf(tx: StellarTransaction): string {
  return extractBaseAddress(decode(tx).transaction.source)
}

function sequenceOf(tx: StellarTransaction): bigint {
  return BigInt(decode(tx).transaction.sequence)
}

/** undefined: it was waited for long enough. */
function inLedger(node: StellarNode, id: string): Promise<Found | undefined> {
  return new Promise((resolve) => {
    let closed = 0
    const end = (found: Found | undefined) => {
      clearTimeout(timer)
      forget()
      resolve(found)
    }
    const timer = setTimeout(() => end(undefined), WAIT_MS)
    timer.unref()
    const forget = node.chain.onBlock(() => {
      const found = findTransaction(node.told(), id)
      closed += 1
      if (found !== undefined || closed === LEDGERS_TO_WAIT) end(found)
    })
  })
}

function answerOf(found: Found, hash: string, base: string): Json {
  const { tx, result } = found.item
  if (!result.isSuccessful) throw failed(tx, result)
  return transactionJson(found, base, hash)
}

/** The same answer whether it is in a ledger and was charged, or will never be: only the ledger says which. */
function failed({ envelope }: StellarTransaction, { code, operations, xdr, isInner }: Refusal): Problem {
  const detail =
    'The transaction failed when submitted to the stellar network. The `extras.result_codes` field on this response contains further details.  Descriptions of each code can be found at: https://developers.stellar.org/docs/data/horizon/api-reference/errors/http-status-codes/horizon-specific/transaction-failed'
  const codes = operations.map((done) => done.code)
  const transactionCodes = isInner
    ? { transaction: bumpCode(code), inner_transaction: code }
    : { transaction: code }
  return new Problem(400, 'transaction_failed', 'Transaction Failed', detail, {
    envelope_xdr: envelope,
    result_codes: { ...transactionCodes, ...(codes.length > 0 && { operations: codes }) },
    result_xdr: xdr,
  })
}
