import { randomInt } from 'node:crypto'
import { NodeTrouble } from '../chain.ts'
import { askJson, openLine } from '../node_line.ts'
import { isObject } from '../replies.ts'

/** The node understood and said no. `code` is its number for it: https://github.com/anza-xyz/agave, rpc-client-api/src/custom_error.rs */
export class NodeRefusal extends NodeTrouble {
  readonly code: number

  constructor(method: string, code: number, reason: string) {
    super(`the Solana node refused ${method}: ${reason} (${code})`)
    this.name = 'NodeRefusal'
    this.code = code
  }
}

/** Nobody can say what the node did with the request: no answer, half an answer, or not an answer of a node. */
export class NoAnswer extends NodeTrouble {
  constructor(method: string, reason: string) {
    super(`the Solana node gave no answer to ${method}: ${reason}`)
    this.name = 'NoAnswer'
  }
}

export function isNodeTrouble(error: unknown): error is Error {
  return error instanceof NodeRefusal || error instanceof NoAnswer
}

export type Rpc = {
  /** The result of a method. Rejects with NodeRefusal or NoAnswer. */
  call(method: string, ...params: readonly unknown[]): Promise<unknown>
}

/**
 * JSON-RPC over HTTP: one question, one answer, and a line that is cut says so. Not the client of `@solana/kit`, which makes a
 * TypeError of some refusals.
 */
export function connect(rpcUrl: string, timeoutMs: number): Rpc {
  const line = openLine(rpcUrl, timeoutMs)

  // No other request has the same id, so the answer to one that a proxy mixed up is no answer.
  let nextId = randomInt(2 ** 40)

  return {
    call: async (method, ...params) => {
      const id = nextId
      nextId += 1
      const body = JSON.stringify({ jsonrpc: '2.0', id, method, params })
      const answer = await askJson(line, { method: 'POST', body })
      if (!answer.ok) throw new NoAnswer(method, answer.rejection)
      return readAnswer(method, id, answer.value.body)
    },
  }
}

function readAnswer(method: string, id: number, answer: unknown): unknown {
  if (!isObject(answer) || answer.id !== id) throw new NoAnswer(method, 'it is no reply to this question')
  const { error } = answer
  if (isObject(error) && typeof error.code === 'number')
    throw new NodeRefusal(method, error.code, String(error.message ?? 'without a reason'))
  if (error !== undefined || answer.result === undefined)
    throw new NoAnswer(method, 'the reply is neither result nor error')
  return answer.result
}
