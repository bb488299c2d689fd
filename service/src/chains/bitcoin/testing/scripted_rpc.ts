import { accept, refuse } from '../../../domain/outcome.ts'
import { NoAnswer, type Rpc, type RpcCall, RpcRefusal } from '../rpc.ts'

export type Script = Record<string, (...params: readonly unknown[]) => unknown>

/** A node that says what the test wants. A method throws RpcRefusal to refuse, NoAnswer to cut the line. */
export function scriptedRpc(script: Script): Rpc & { readonly asked: RpcCall[] } {
  const asked: RpcCall[] = []
  const answer = (call: RpcCall) => {
    asked.push(call)
    const [method, ...params] = call
    const say = script[method]
    if (say === undefined) throw new Error(`the test did not expect ${method}`)
    try {
      return accept(say(...params))
    } catch (error) {
      if (error instanceof RpcRefusal) return refuse(error)
      throw error
    }
  }
  return {
    asked,
    batch: async (calls) => calls.map(answer),
    async call(...call) {
      const outcome = answer(call)
      if (!outcome.ok) throw outcome.rejection
      return outcome.value
    },
  }
}

export function refusing(code: number, reason: string) {
  return (): never => {
    throw new RpcRefusal('scripted', code, reason)
  }
}

export function silent(): never {
  throw new NoAnswer('scripted', 'the line is cut')
}
