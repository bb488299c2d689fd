import { NodeTrouble } from '../chain.ts'
import { askJson, type NodeLine, openLine, type Question } from '../node_line.ts'
import { type Fields, isObject } from '../replies.ts'

/** The node understood and said no, in the words of java-tron. */
export class NodeRefusal extends NodeTrouble {
  constructor(path: string, reason: string) {
    super(`the TRON node refused ${path}: ${reason}`)
    this.name = 'NodeRefusal'
  }
}

/** Nobody can say what the node did with the request: no answer, half an answer, or not an answer of a node. */
export class NoAnswer extends NodeTrouble {
  constructor(path: string, reason: string) {
    super(`the TRON node gave no answer to ${path}: ${reason}`)
    this.name = 'NoAnswer'
  }
}

export function isNodeTrouble(error: unknown): error is Error {
  return error instanceof NodeRefusal || error instanceof NoAnswer
}

export type Rpc = {
  /** What the node tells, of its newest block (`wallet/…`) or of what is solid (`walletsolidity/…`). */
  get(path: string, query?: Readonly<Record<string, string>>): Promise<unknown>
  post(path: string, body: Fields): Promise<unknown>
}

/**
 * https://developers.tron.network/reference: one question, one answer. Answers carry nothing of the question, so whoever
 * asks has to look whether they fit. java-tron itself serves what is solid at a port of its own (`node.http.solidityPort`), gateways
 * mostly at the same address.
 */
export function connect(rpcUrl: string, timeoutMs: number, solidUrl: string | null = null): Rpc {
  const line = openLine(rpcUrl, timeoutMs)
  const solidLine = solidUrl === null ? line : openLine(solidUrl, timeoutMs)
  const lineTo = (path: string) => (path.startsWith('walletsolidity/') ? solidLine : line)
  return {
    get: (path, query = {}) => {
      const search = new URLSearchParams(query).toString()
      return ask(lineTo(path), path, { method: 'GET', path: `/${path}${search === '' ? '' : `?${search}`}` })
    },
    post: (path, body) =>
      ask(lineTo(path), path, { method: 'POST', path: `/${path}`, body: JSON.stringify(body) }),
  }
}

async function ask(line: NodeLine, path: string, question: Question): Promise<unknown> {
  const asked = await askJson(line, question)
  if (!asked.ok) throw new NoAnswer(path, asked.rejection)
  const { status, body: answer } = asked.value
  if (status !== 200) throw new NoAnswer(path, `HTTP ${status}`)
  if (isObject(answer) && typeof answer.Error === 'string') throw new NodeRefusal(path, answer.Error)
  return answer
}
