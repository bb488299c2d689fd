import { DEFAULT_DEFINITIONS } from 'ripple-binary-codec'
import type { SimulatedChain } from '../simulated/chain.ts'
import { CutLine } from '../simulated/server.ts'
import { draftOn } from '../simulated/state.ts'
import { fieldsJson } from './answers.ts'
import { type Answer, CommandError, type Params, type XrpNode } from './command.ts'
import { decodeTransaction, type XrpTransaction } from './decode_transaction.ts'
import { readAccount } from './entries.ts'
import { BASE_FEE } from './reserves.ts'
import type { Xrp } from './rules.ts'
import { mayGetIn, runTransaction } from './run_transaction.ts'

/**
 * https://xrpl.org/docs/references/http-websocket-apis/public-api-methods/transaction-methods/submit. What it answers is
 * what the open ledger says of it, and not final: only a validated ledger is.
 */
export function submit(node: XrpNode, params: Params): Answer {
  const given = read(params)
  const trouble = node.troubles.takeSubmit()
  if (trouble === 'lose request') throw new CutLine()
  const failWith = typeof trouble === 'object' ? trouble.failWith : undefined
  const isCharged = failWith?.startsWith('tec') === true
  const tx = isCharged ? { ...given, failWith } : given
  const code = failWith === undefined || isCharged ? codeOf(node.chain, tx, node.networkId()) : failWith
  const isKept = params.fail_hard !== true || code === 'tesSUCCESS'
  // A server of another network keeps it there.
  const isHere = !node.troubles.now.isStranger
  if (isKept && isHere && trouble !== 'drop') keep(node.chain, tx, code, failWith !== undefined)
  if (trouble === 'lose reply') throw new CutLine()
  return reply(node, tx, code, isKept)
}

/**
 * `LocalTxs::holdLedgers` of rippled, and one: when the last of them is validated, the ledger after it is open, and has been tried.
 */
const HELD_LEDGERS = 6

/**
 * A server keeps what it was handed, also what it refused: it tries that again with each of the next ledgers (rippled: `LocalTxs`, and
 * `NetworkOPs::apply`, which adds to them whatever the result is). What waits for another sequence it tries as soon as that is there.
 */
function keep(chain: SimulatedChain<Xrp>, tx: XrpTransaction, code: string, isAsked: boolean): void {
  const isTaken = isApplied(code)
  if (!isTaken && !mayGetIn(code)) return
  const open = chain.head.height + 1
  const isTriedAtOnce = isTaken || (code.startsWith('ter') && !isAsked)
  // Handed over again it is held for as long again, and tried no later than it would have been.
  const before = chain.waiting.find(({ id }) => id === tx.id)
  if (before !== undefined) chain.withdraw(tx.id)
  chain.submit({
    ...tx,
    held: {
      from: isTriedAtOnce ? open : Math.min(open + 1, before?.held?.from ?? open + 1),
      until: open + HELD_LEDGERS,
      ...(code === 'terQUEUED' && { isQueued: true }),
    },
  })
}

/** What would become of a transaction in the open ledger. */
export function codeOf(chain: SimulatedChain<Xrp>, tx: XrpTransaction, networkId: number): string {
  const place = { height: chain.head.height + 1, index: 0 }
  const { code } = runTransaction(tx, draftOn(chain.open()), place, networkId)
  const isWaiting = code === 'tefPAST_SEQ' && chain.waiting.some(({ id }) => id === tx.id)
  return isWaiting ? 'tefALREADY' : code
}

function read({ tx_blob }: Params): XrpTransaction {
  if (typeof tx_blob !== 'string') throw new CommandError('invalidParams', 31, "Missing field 'tx_blob'.")
  try {
    return decodeTransaction(tx_blob)
  } catch (error) {
    throw new CommandError('invalidTransaction', -1, (error as Error).message)
  }
}

function reply(node: XrpNode, tx: XrpTransaction, code: string, isKept: boolean): Answer {
  const next = readAccount(node.chain.open(), tx.fields.Account)?.Sequence ?? 0
  return {
    ...resultJson(code),
    accepted: isKept,
    applied: isApplied(code) && isKept,
    broadcast: (isApplied(code) || code === 'terQUEUED') && isKept,
    kept: isKept,
    queued: code === 'terQUEUED' && isKept,
    account_sequence_available: next,
    account_sequence_next: next,
    open_ledger_cost: String(BASE_FEE),
    validated_ledger_index: node.told().head.height,
    tx_blob: tx.blob,
    tx_json: { ...fieldsJson(tx.fields, 1), hash: tx.id },
  }
}

function isApplied(code: string): boolean {
  return /^te[sc]/.test(code)
}

export function resultJson(code: string) {
  return {
    engine_result: code,
    engine_result_code: DEFAULT_DEFINITIONS.transactionResult.from(code).ordinal,
    engine_result_message:
      code === 'tesSUCCESS'
        ? 'The transaction was applied. Only final in a validated ledger.'
        : `The transaction failed: ${code}.`,
  }
}
