import type { Fields } from '../../replies.ts'
import { NodeRefusal, type Rpc } from '../rpc.ts'

/** What a node answers at each path; what it throws is how it fails. */
export type Script = Readonly<Record<string, (asked: Fields) => unknown>>

export function scriptedNode(script: Script): Rpc {
  return async (path, asked) => {
    const answer = script[path]
    if (answer === undefined) throw new Error(`nobody expected ${path}`)
    return answer(asked)
  }
}

export const CHAIN_ID = 'cd'.repeat(32)

export const idOf = (height: number) => height.toString(16).padStart(8, '0') + 'ab'.repeat(28)

const timeOf = (height: number) => new Date(height * 500).toISOString().slice(0, -1)

/** A block of half a second each, since 1970. */
export function tracedBlock(height: number, status: string, transactions: readonly object[] = []) {
  return {
    id: idOf(height),
    number: height,
    previous_id: idOf(height - 1),
    status,
    timestamp: `${timeOf(height)}Z`,
    transactions,
  }
}

export function infoAt(irreversible: number, head = irreversible + 2) {
  return {
    chain_id: CHAIN_ID,
    last_irreversible_block_num: irreversible,
    last_irreversible_block_id: idOf(irreversible),
    head_block_num: head,
    head_block_id: idOf(head),
    head_block_time: timeOf(head),
  }
}

/** As `trace_api_plugin` says that it does not have something. */
export function missing(path: string): NodeRefusal {
  return new NodeRefusal(path, 404, { code: 0, name: '', reason: 'Trace API: block trace missing' })
}

/** A node whose blocks up to `irreversible` are final; `transactions` by height. */
export function nodeAt(
  irreversible: number,
  transactions: Readonly<Record<number, readonly object[]>> = {},
): Script {
  const head = irreversible + 2
  return {
    'chain/get_info': () => infoAt(irreversible, head),
    'trace_api/get_block': ({ block_num }) => {
      const height = block_num as number
      if (height > head) throw missing('trace_api/get_block')
      const status = height <= irreversible ? 'irreversible' : 'pending'
      return tracedBlock(height, status, transactions[height])
    },
  }
}
