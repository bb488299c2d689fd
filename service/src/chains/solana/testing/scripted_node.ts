import type { Rpc } from '../rpc.ts'

/** What a node answers to each method. What it throws is how it fails. */
export type Script = Readonly<Record<string, (...params: readonly unknown[]) => unknown>>

export function scriptedNode(script: Script): Rpc {
  return {
    call: async (method, ...params) => {
      const answer = script[method]
      if (answer === undefined) throw new Error(`the script has no ${method}`)
      return answer(...params)
    },
  }
}
