import type { Rpc } from '../rpc.ts'

/** What a node answers at each path; left out, it answers that there is nothing. What it throws is how it fails. */
export type Script = Readonly<Record<string, (asked: Readonly<Record<string, unknown>>) => unknown>>

export function scriptedNode(script: Script): Rpc {
  const answer = async (path: string, asked: Readonly<Record<string, unknown>>) => script[path]?.(asked) ?? {}
  return { get: (path, query = {}) => answer(path, query), post: answer }
}

/** A block without transactions, whose id begins with its height. */
export function blockAt(height: number, timeMs: number, transactions: readonly unknown[] = []) {
  const idOf = (number: number) => number.toString(16).padStart(16, '0') + 'ab'.repeat(24)
  return {
    blockID: idOf(height),
    block_header: { raw_data: { number: height, timestamp: timeMs, parentHash: idOf(height - 1) } },
    ...(transactions.length > 0 && { transactions }),
  }
}
