import type { BlockNode } from './block_node.ts'

export type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] }
/** JSON text of the result, or an error. */
export type Answerer = (
  call: Call,
  head: number,
) => string | { readonly code: number; readonly message: string }

export const isMissing = { code: -32601, message: 'the method does not exist' }

/** `emptyError`: bitcoind says `"error":null` where there is none. */
export function jsonRpcNode(answer: Answerer, emptyError = false): BlockNode {
  const reply = (call: Call, head: number) => {
    const found = answer(call, head)
    if (typeof found !== 'string') return `{"jsonrpc":"2.0","id":${call.id},"error":${JSON.stringify(found)}}`
    return `{"jsonrpc":"2.0","id":${call.id},"result":${found}${emptyError ? ',"error":null' : ''}}`
  }
  return ({ body }, head) =>
    Array.isArray(body) ? `[${body.map((call) => reply(call, head)).join(',')}]` : reply(body as Call, head)
}
