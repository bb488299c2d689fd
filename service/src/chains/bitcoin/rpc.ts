import { randomInt } from 'node:crypto'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { NodeTrouble } from '../chain.ts'
import { askJson, openLine } from '../node_line.ts'
import { isObject } from '../replies.ts'

/** The node understood and said no. */
export class RpcRefusal extends NodeTrouble {
  readonly code: number
  /** The node's own words. */
  readonly reason: string
  constructor(method: string, code: number, reason: string) {
    super(`bitcoin node refused ${method}: ${reason} (${code})`)
    this.name = 'RpcRefusal'
    this.code = code
    this.reason = reason
  }
}

/** Nobody can say what the node did with the request: no answer, half an answer, or not an answer of a node. */
export class NoAnswer extends NodeTrouble {
  constructor(method: string, reason: string) {
    super(`bitcoin node gave no answer to ${method}: ${reason}`)
    this.name = 'NoAnswer'
  }
}

export type RpcCall = readonly [method: string, ...params: readonly unknown[]]

export type Rpc = {
  /** Rejects with RpcRefusal or NoAnswer. */
  call(...call: RpcCall): Promise<unknown>
  /** One request, answered in order, each by itself. Rejects with NoAnswer as a whole. */
  batch(calls: readonly RpcCall[]): Promise<readonly Outcome<unknown, RpcRefusal>[]>
}

/** JSON-RPC over HTTP. */
export function connect(rpcUrl: string, timeoutMs: number): Rpc {
  const line = openLine(rpcUrl, timeoutMs)

  // No other request has the same ids, so the answer to one that a proxy mixed up is no answer.
  let nextId = randomInt(2 ** 40)

  async function batch(calls: readonly RpcCall[]) {
    const name = calls[0]?.[0] ?? 'nothing'
    const first = nextId
    nextId += calls.length
    const body = calls.map(([method, ...params], at) => ({ jsonrpc: '1.0', id: first + at, method, params }))
    const revive = calls.every(isToldInText) ? undefined : keepSourceText
    const asked = await askJson(line, { method: 'POST', body: JSON.stringify(body) }, revive)
    if (!asked.ok) throw new NoAnswer(name, asked.rejection)
    const answer = asked.value.body
    if (!Array.isArray(answer)) throw new NoAnswer(name, 'the reply is no batch of replies')
    const replies = new Map(answer.filter(isObject).map((reply) => [reply.id, reply]))
    return calls.map(([method], at) => readReply(method, replies.get(first + at)))
  }

  return {
    batch,
    async call(...call) {
      const [outcome] = await batch([call])
      if (outcome === undefined) throw new NoAnswer(call[0], 'no reply')
      if (!outcome.ok) throw outcome.rejection
      return outcome.value
    },
  }
}

function readReply(method: string, reply: Record<string, unknown> | undefined): Outcome<unknown, RpcRefusal> {
  if (reply === undefined) throw new NoAnswer(method, 'no reply with its id')
  const { error, result } = reply
  if (error === null && result !== undefined) return accept(result)
  if (isObject(error) && typeof error.code === 'number' && typeof error.message === 'string') {
    return refuse(new RpcRefusal(method, error.code, error.message))
  }
  throw new NoAnswer(method, 'the reply has neither result nor error')
}

/** Of a hundred thousand hashes nothing has to be kept, and to be called for each would take most of the time that their list takes. */
function isToldInText([method, ...params]: RpcCall): boolean {
  return method === 'getrawmempool' && params.length === 0
}

/**
 * Numbers with a fraction arrive as their source text: 0.1 + 0.2 is no bitcoin amount. Whole numbers (heights,
 * times, error codes) stay numbers.
 */
function keepSourceText(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value
  return /^-?\d+$/.test(context.source) && Number.isSafeInteger(value) ? value : context.source
}
