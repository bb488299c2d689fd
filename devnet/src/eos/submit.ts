import type { SimulatedChain } from '../simulated/chain.ts'
import { CutLine } from '../simulated/server.ts'
import { draftOn } from '../simulated/state.ts'
import { transactionTraceJson } from './answers.ts'
import { checkAuthorization } from './authority.ts'
import { type Eos, slotTimeMs } from './blocks.ts'
import { type EosNode, OtherStatus, type Params } from './command.ts'
import { decodeTransaction, type EosTransaction, type Packed } from './decode_transaction.ts'
import { exceptionJson, Refusal, refusalNamed } from './refusal.ts'
import { BLOCK_STEP_MS } from './rules.ts'
import { type ActionTrace, checkExpiration, checkHeader, runTransaction } from './run_transaction.ts'

/** `push_transaction` and `send_transaction`: a transaction that fails is an error. */
export function sendTransaction(node: EosNode, params: Params): object {
  return submit(node, params, false)
}

/** What fails while it runs is told inside an answer, when that is asked for; it is not in the queue all the same. */
export function sendTransaction2(node: EosNode, params: Params): object {
  const isTraceWanted = params.return_failure_trace !== false
  return submit(node, (params.transaction ?? {}) as Params, isTraceWanted)
}

function submit(node: EosNode, packed: Packed, isTraceWanted: boolean): object {
  const trouble = node.troubles.takeSubmit()
  if (trouble === 'lose request') throw new CutLine()
  const given = decodeTransaction(packed, node.chainId())
  const failWith = typeof trouble === 'object' ? trouble.failWith : undefined
  const tx: EosTransaction = failWith === 'hard_fail' ? { ...given, failsHard: true } : given
  checkQueue(node.chain, tx)
  let traces: ActionTrace[]
  try {
    if (failWith !== undefined && failWith !== 'hard_fail') throw refusalNamed(failWith)
    traces = tryOut(node.chain, tx)
  } catch (error) {
    if (!(error instanceof Refusal) || !isTraceWanted || error.refusal === 'tx_duplicate') throw error
    throw new OtherStatus(202, reply(node, tx, [], error))
  }
  if (trouble !== 'drop') node.chain.submit(delayed(node.chain, tx))
  if (trouble === 'lose reply') throw new CutLine()
  return reply(node, tx, traces)
}

/** What the faucet sends has no troubles. */
export function accept(chain: SimulatedChain<Eos>, tx: EosTransaction): void {
  checkQueue(chain, tx)
  tryOut(chain, tx)
  chain.submit(tx)
}

function checkQueue(chain: SimulatedChain<Eos>, tx: EosTransaction): void {
  checkExpiration(tx, nextTimeMs(chain))
  const isKnown = chain.view().find(tx.id) !== undefined || chain.waiting.some(({ id }) => id === tx.id)
  if (isKnown) throw new Refusal('tx_duplicate', `duplicate transaction ${tx.id}`)
}

/** What it would do after everything that waits. A delayed transaction is not run before its time: only signed. */
function tryOut(chain: SimulatedChain<Eos>, tx: EosTransaction): ActionTrace[] {
  const timeMs = nextTimeMs(chain)
  const draft = draftOn(chain.open())
  checkHeader(tx, draft, timeMs)
  if (tx.delaySeconds === 0 && !tx.failsHard) return runTransaction(tx, draft, timeMs)
  checkAuthorization(tx, draft)
  return []
}

function delayed(chain: SimulatedChain<Eos>, tx: EosTransaction): EosTransaction {
  if (tx.delaySeconds === 0) return tx
  return { ...tx, notBeforeMs: nextTimeMs(chain) + tx.delaySeconds * 1000 }
}

export function nextTimeMs({ head }: SimulatedChain<Eos>): number {
  return slotTimeMs(Math.max(Date.now(), head.timeMs + BLOCK_STEP_MS))
}

function reply(node: EosNode, tx: EosTransaction, traces: readonly ActionTrace[], failure?: Refusal): object {
  const place = { height: node.chain.head.height + 1, timeMs: nextTimeMs(node.chain) }
  const status = tx.delaySeconds > 0 ? 'delayed' : 'executed'
  return {
    transaction_id: tx.id,
    processed: {
      ...transactionTraceJson(tx, traces, failure === undefined ? status : null, place),
      except: failure === undefined ? null : exceptionJson(failure),
      error_code: null,
    },
  }
}
