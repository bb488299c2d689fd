import { CutLine } from '../simulated/server.ts'
import { draftOn } from '../simulated/state.ts'
import { accountAnswer } from './answers.ts'
import {
  CommandError,
  inContext,
  optionsIn,
  readable,
  type SolanaNode,
  textIn,
  textsIn,
  viewOf,
} from './command.ts'
import { hasGoodSignatures, type SolanaTransaction, transactionOf } from './decode_transaction.ts'
import { readAccount } from './entries.ts'
import { Refused, runTransaction } from './run_transaction.ts'

/** Those are refused before anything runs; all others are what becomes of a transaction in its block. */
const REFUSALS = ['BlockhashNotFound', 'AlreadyProcessed', 'AccountNotFound', 'InsufficientFundsForFee']

/** https://solana.com/docs/rpc/http/sendtransaction. Without a preflight a node takes what it can read, and says nothing. */
export function sendTransaction(node: SolanaNode, [text, given]: readonly unknown[]): string {
  const options = optionsIn(given)
  const wire = wireIn(text, options.encoding)
  const trouble = node.troubles.takeSubmit()
  if (trouble === 'lose request') throw new CutLine()
  const failWith = typeof trouble === 'object' ? trouble.failWith : undefined
  if (failWith === 'NodeUnhealthy') throw new CommandError(-32005, 'Node is unhealthy')
  if (failWith !== undefined && REFUSALS.includes(failWith)) throw preflightFailure(failWith, failWith, [])
  const tx = readable(() => transactionOf(wire, failWith))
  if (!hasGoodSignatures(wire)) throw new CommandError(-32003, 'Transaction signature verification failure')
  if (node.troubles.now.isStranger) throw preflightFailure('BlockhashNotFound', 'Blockhash not found', [])
  if (options.skipPreflight !== true) preflight(node, tx)
  if (trouble !== 'drop' && node.chain.view().find(tx.id) === undefined) node.chain.submit(tx)
  if (trouble === 'lose reply') throw new CutLine()
  return tx.id
}

export function simulateTransaction(node: SolanaNode, [text, given]: readonly unknown[]) {
  const options = optionsIn(given)
  const view = viewOf(node, options)
  const tx = readable(() => transactionOf(wireIn(text, options.encoding)))
  const draft = draftOn(view.state)
  const asked = textsIn(optionsIn(options.accounts).addresses ?? [], 'accounts', 100)
  const tell = (err: unknown, logs: readonly string[], unitsConsumed: number) =>
    inContext(view, {
      err,
      logs,
      unitsConsumed,
      accounts: asked.length === 0 ? null : asked.map((each) => accountAnswer(readAccount(draft, each))),
      returnData: null,
    })
  try {
    const { err, logs, unitsConsumed } = runTransaction(tx, draft, view.head.height + 1, node.vm)
    return tell(err, logs, unitsConsumed)
  } catch (error) {
    if (error instanceof Refused) return tell(error.err, [], 0)
    throw error
  }
}

function preflight({ chain, vm }: SolanaNode, { id, wire }: SolanaTransaction): void {
  try {
    const draft = draftOn(chain.view().state)
    const { err, logs } = runTransaction({ id, wire }, draft, chain.head.height + 1, vm)
    if (err !== null) throw preflightFailure(err, JSON.stringify(err), logs)
  } catch (error) {
    if (error instanceof Refused) throw preflightFailure(error.err, error.message, [])
    throw error
  }
}

function preflightFailure(err: unknown, reason: string, logs: readonly string[]): CommandError {
  const data = { accounts: null, err, logs, returnData: null, unitsConsumed: 0 }
  return new CommandError(-32002, `Transaction simulation failed: ${reason}`, data)
}

function wireIn(text: unknown, encoding: unknown): string {
  if (encoding !== 'base64') throw new CommandError(-32602, 'only base64 is simulated')
  return textIn(text, 'transaction')
}
