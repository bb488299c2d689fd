import { type Fields, NodeRefusal, type Rpc } from '../rpc.ts'

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
