import type { Fields } from '../../replies.ts'
import { NodeRefusal, type Rpc } from '../rpc.ts'

export type Script = Readonly<Record<string, (parameters: Fields) => unknown>>

/** A node that answers by a script; what it throws is how it fails. */
export function scriptedRpc(script: Script): Rpc {
  return {
    call: async (method, parameters = {}) => {
      const answer = script[method]
      if (answer === undefined) throw new Error(`nobody expected ${method}`)
      return answer(parameters) as Fields
    },
  }
}

export function refusing(code: string): () => never {
  return () => {
    throw new NodeRefusal('it', code, 'for the test')
  }
}

/**
 * Answers `account_info` of an account whose next sequence is `next` in the newest validated ledger, which is `ledger`, and
 * `nextOpen` in the open one, with transactions of some sequences in the queue.
 */
export function accountAt(ledger: number, next: number, nextOpen: number, queued: readonly number[] = []) {
  const queue_data = { txn_count: queued.length, transactions: queued.map((seq) => ({ seq })) }
  return ({ ledger_index: asked }: Fields): Fields =>
    asked === 'current'
      ? { account_data: { Sequence: nextOpen }, ledger_current_index: ledger + 1, queue_data }
      : { account_data: { Sequence: next }, ledger_index: ledger, validated: true }
}
