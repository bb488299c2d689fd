import { randomInt } from 'node:crypto'
import { NodeTrouble } from '../chain.ts'
import { askJson, openLine } from '../node_line.ts'
import { type Fields, isObject } from '../replies.ts'

/** The node understood and said no. `code` is its word for it, https://xrpl.org/docs/references/http-websocket-apis */
export class NodeRefusal extends NodeTrouble {
  readonly code: string

  constructor(method: string, code: string, reason: string) {
    super(`the XRP node refused ${method}: ${code} (${reason})`)
    this.name = 'NodeRefusal'
    this.code = code
  }
}

/** Nobody can say what the node did with the request: no answer, half an answer, or not an answer of a node. */
export class NoAnswer extends NodeTrouble {
  constructor(method: string, reason: string) {
    super(`the XRP node gave no answer to ${method}: ${reason}`)
    this.name = 'NoAnswer'
  }
}

export function isNodeTrouble(error: unknown): error is Error {
  return error instanceof NodeRefusal || error instanceof NoAnswer
}

export type Rpc = {
  /** The result of a method. Rejects with NodeRefusal or NoAnswer. */
  call(method: string, parameters?: Fields): Promise<Fields>
}

/** JSON-RPC over HTTP: one question, one answer, and a line that is cut says so at once. */
export function connect(rpcUrl: string, timeoutMs: number): Rpc {
  const line = openLine(rpcUrl, timeoutMs)

  // No other request has the same id, so the answer to one that a proxy mixed up is no answer.
  let nextId = randomInt(2 ** 40)

  return {
    call: async (method, parameters = {}) => {
      const id = nextId
      nextId += 1
      const body = JSON.stringify({ id, method, params: [{ api_version: 1, ...parameters }] })
      const answer = await askJson(line, { method: 'POST', body })
      if (!answer.ok) throw new NoAnswer(method, answer.rejection)
      return readAnswer(method, id, answer.value.body)
    },
  }
}

function readAnswer(method: string, id: number, answer: unknown): Fields {
  if (!isObject(answer) || !isObject(answer.result)) throw new NoAnswer(method, 'the reply has no result')
  // Not every node repeats the id.
  if (answer.id !== undefined && answer.id !== id)
    throw new NoAnswer(method, 'it is the reply to another question')
  const { result } = answer
  if (result.status === 'success') return result
  const { error, error_message: message, error_exception: exception } = result
  if (result.status !== 'error' || typeof error !== 'string')
    throw new NoAnswer(method, 'the reply is neither success nor error')
  throw new NodeRefusal(method, error, String(message ?? exception ?? 'without a reason'))
}
