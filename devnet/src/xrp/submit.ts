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
import { runTransaction } from './run_transaction.ts'

/**
 * https://xrpl.org/docs/references/http-websocket-apis/public-api-methods/transaction-methods/submit. What it answers is
 * what the open ledger says of it, and not final: only a validated ledger is.
 */
export function submit(node: XrpNode, params: Params): Answer {
  const given = read(params)
  const trouble = node.troubles.takeSubmit()
  if (trouble === 'lose request') throw new CutLine()
  const failWith = typeof trouble === 'object' ? trouble.failWith : undefined
  if (failWith !== undefined && !failWith.startsWith('tec')) return reply(node, given, failWith, false)
  const tx = failWith === undefined ? given : { ...given, failWith }
  const code = codeOf(node.chain, tx, node.networkId())
  const isKept = params.fail_hard === true ? code === 'tesSUCCESS' : /^(tes|tec|ter)/.test(code)
  if (isKept && trouble !== 'drop') node.chain.submit(tx)
  if (trouble === 'lose reply') throw new CutLine()
  return reply(node, tx, code, isKept)
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
    applied: /^te[sc]/.test(code) && isKept,
    broadcast: isKept,
    kept: isKept,
    queued: false,
    account_sequence_available: next,
    account_sequence_next: next,
    open_ledger_cost: String(BASE_FEE),
    validated_ledger_index: node.told().head.height,
    tx_blob: tx.blob,
    tx_json: { ...fieldsJson(tx.fields, 1), hash: tx.id },
  }
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
