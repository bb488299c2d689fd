import { accept, refuse } from '../../../domain/outcome.ts'
import { type JsonRpc, NodeRefusal, unwrap } from '../json_rpc.ts'

export type Script = Readonly<Record<string, (...params: readonly unknown[]) => unknown>>

/** A node that answers as it is told; what is not in the script it does not offer. A thrown refusal is its answer. */
export function scriptedNode(script: Script): JsonRpc & { readonly asked: string[] } {
  const asked: string[] = []
  const answer = (method: string, params: readonly unknown[]) => {
    asked.push(method)
    const found = script[method]
    if (found === undefined) return refuse(new NodeRefusal(method, -32601, 'Method not found', undefined))
    try {
      return accept(found(...params))
    } catch (error) {
      if (error instanceof NodeRefusal) return refuse(error)
      throw error
    }
  }
  return {
    asked,
    call: async (method, params) => unwrap(answer(method, params)),
    settle: async (calls) => calls.map(({ method, params }) => answer(method, params)),
    batch: async (calls) => calls.map(({ method, params }) => unwrap(answer(method, params))),
  }
}

export function refusal(code: number, message: string): never {
  throw new NodeRefusal('test', code, message, undefined)
}
