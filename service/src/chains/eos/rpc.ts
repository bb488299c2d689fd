import { NodeTrouble } from '../chain.ts'
import { askJson, type NodeLine, openLine } from '../node_line.ts'
import { type Fields, isObject } from '../replies.ts'

/** The node understood and said no, in the words of nodeos. */
export class NodeRefusal extends NodeTrouble {
  readonly status: number
  /** https://github.com/AntelopeIO/leap/blob/main/libraries/chain/include/eosio/chain/exceptions.hpp; 0 says nothing. */
  readonly code: number
  readonly refusal: string

  constructor(path: string, status: number, { code, name, reason }: Said) {
    super(`the EOS node refused ${path}: ${name === '' ? '' : `${name}: `}${reason}`)
    this.name = 'NodeRefusal'
    this.status = status
    this.code = code
    this.refusal = name
  }
}

type Said = { readonly code: number; readonly name: string; readonly reason: string }

/** Nobody can say what the node did with the request: no answer, half an answer, or not an answer of a node. */
export class NoAnswer extends NodeTrouble {
  constructor(what: string, reason: string) {
    super(`the EOS node gave no answer to ${what}: ${reason}`)
    this.name = 'NoAnswer'
  }
}

export function isNodeTrouble(error: unknown): error is Error {
  return error instanceof NodeRefusal || error instanceof NoAnswer
}

/** What the node answers at `/v1/…`. Rejects with NodeRefusal or NoAnswer. */
export type Rpc = (path: string, params: Fields) => Promise<unknown>

/** https://docs.antelope.io/docs/latest/api-reference: one question, one answer. */
export function connect(rpcUrl: string, timeoutMs: number): Rpc {
  const line = openLine(rpcUrl, timeoutMs)
  return (path, params) => ask(line, path, params)
}

async function ask(line: NodeLine, path: string, params: Fields): Promise<unknown> {
  const asked = await askJson(line, { method: 'POST', path: `/v1/${path}`, body: JSON.stringify(params) })
  if (!asked.ok) throw new NoAnswer(path, asked.rejection)
  const { status, body: answer } = asked.value
  if (status >= 200 && status < 300) return answer
  const said = refusalIn(answer)
  throw said === null ? new NoAnswer(path, `HTTP ${status}`) : new NodeRefusal(path, status, said)
}

/** Every error of a node has this form; a gateway's has not. */
function refusalIn(answer: unknown): Said | null {
  if (!isObject(answer) || typeof answer.message !== 'string' || !isObject(answer.error)) return null
  const { code, name, details } = answer.error
  if (typeof code !== 'number') return null
  const reasons = (Array.isArray(details) ? details : []).map((detail) =>
    isObject(detail) ? String(detail.message) : '',
  )
  return {
    code,
    name: typeof name === 'string' ? name : '',
    reason: [answer.message, ...reasons].filter((reason) => reason !== '').join(': '),
  }
}
