import { randomInt } from 'node:crypto'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { NodeTrouble } from '../chain.ts'
import { isTooMuch, openLine, readJson } from '../node_line.ts'

/** The node understood and said no. `data` carries the reason of a reverted call. */
export class NodeRefusal extends NodeTrouble {
  readonly code: number
  readonly data: unknown
  constructor(method: string, code: number, message: string, data: unknown) {
    super(`${message} (${code}, answer to ${method})`)
    this.name = 'NodeRefusal'
    this.code = code
    this.data = data
  }
}

/** No usable answer: cut off, too late, not JSON-RPC. What was asked for may have happened all the same. */
export class NodeSilence extends NodeTrouble {
  /** HTTP's, where that was why. */
  readonly status: number | null
  constructor(method: string, reason: string, status: number | null = null) {
    super(`${method}: ${reason}`)
    this.name = 'NodeSilence'
    this.status = status
  }
}

/** There was more to say than an answer may be long, or take. Asked the same again, it would probably end so again. */
export class AnswerTooMuch extends NodeSilence {}

/** By which a gateway in between says it (RFC 9110): 413 Content Too Large, 504 Gateway Timeout. */
const TOO_MUCH_STATUSES: readonly number[] = [413, 504]

export type Call = { readonly method: string; readonly params: readonly unknown[] }

/** Every method rejects with NodeRefusal or NodeSilence, and nothing is tried twice. */
export type JsonRpc = {
  call(method: string, params: readonly unknown[]): Promise<unknown>
  /** Answers in the order of the calls; a refusal stands in its place. */
  settle(calls: readonly Call[]): Promise<readonly Outcome<unknown, NodeRefusal>[]>
  /** Answers in the order of the calls; rejects with the first refusal. */
  batch(calls: readonly Call[]): Promise<readonly unknown[]>
}

/** Providers limit a batch; 100 is the least that any large one allows. */
const BATCH_MAX = 100

/**
 * JSON-RPC 2.0 over HTTP. Ours rather than viem's transport because that one writes the URL, which often holds
 * the provider's secret, into its errors, and because payouts need "said no" and "said nothing" kept apart.
 */
export function jsonRpc(rpcUrl: string, timeoutMs: number): JsonRpc {
  const line = openLine(rpcUrl, timeoutMs)
  const takeIds = requestIds()

  async function post(body: unknown, what: string): Promise<unknown> {
    const bytesMax = /^(?:trace|debug)_/.test(what) ? TRACES_BYTES_MAX : undefined
    const answered = await line.ask({
      method: 'POST',
      body: JSON.stringify(body),
      ...(bytesMax && { bytesMax }),
    })
    if (!answered.ok) {
      const Failure = isTooMuch(answered.rejection) ? AnswerTooMuch : NodeSilence
      throw new Failure(what, answered.rejection)
    }
    const { status, text } = answered.value
    const answer = readJson(answered.value)
    const isSuccess = status >= 200 && status <= 299
    const saysNo = isFault(status) && answer.ok && isRefusal(answer.value)
    if (!isSuccess && !saysNo) {
      const Failure = TOO_MUCH_STATUSES.includes(status) ? AnswerTooMuch : NodeSilence
      throw new Failure(what, `HTTP ${status} ${text.slice(0, 200)}`, status)
    }
    if (!answer.ok) throw new NodeSilence(what, answer.rejection)
    return answer.value
  }

  async function settleChunk(calls: readonly Call[]): Promise<readonly Outcome<unknown, NodeRefusal>[]> {
    const what = [...new Set(calls.map(({ method }) => method))].join(', ')
    const first = takeIds(calls.length)
    const answer = await post(
      calls.map(({ method, params }, at) => ({ jsonrpc: '2.0', id: first + at, method, params })),
      what,
    )
    // A whole batch may be refused with a single error object.
    if (!Array.isArray(answer)) {
      const refused = outcomeOf(answer, what)
      throw refused.ok ? new NodeSilence(what, 'answered a batch with a single result') : refused.rejection
    }
    const byId = new Map(answer.map((one) => [isFields(one) ? one.id : undefined, one]))
    return calls.map(({ method }, at) => outcomeOf(byId.get(first + at), method))
  }

  async function settle(calls: readonly Call[]): Promise<readonly Outcome<unknown, NodeRefusal>[]> {
    const outcomes: Outcome<unknown, NodeRefusal>[] = []
    for (let start = 0; start < calls.length; start += BATCH_MAX) {
      outcomes.push(...(await settleChunk(calls.slice(start, start + BATCH_MAX))))
    }
    return outcomes
  }

  return {
    async call(method, params) {
      const id = takeIds(1)
      const answer = await post({ jsonrpc: '2.0', id, method, params }, method)
      // Whoever refuses without having read the request knows no id.
      const isOurs = isFields(answer) && (answer.id === id || (answer.id === null && isFields(answer.error)))
      if (!isOurs) throw new NodeSilence(method, 'the answer is not to this request')
      return unwrap(outcomeOf(answer, method))
    },
    settle,
    async batch(calls) {
      return (await settle(calls)).map(unwrap)
    },
  }
}

/** Whether a status says that the request is at fault (RFC 9110, 15.5), and not that it came too slowly, or after too many others (RFC 6585, 4). */
function isFault(status: number): boolean {
  return status >= 400 && status <= 499 && status !== 408 && status !== 429
}

/**
 * What traces come to has no end: these are longer than those of a block of honest transactions, and their objects take
 * many times as much here. All else is bounded by the gas of a block (its logs are 500 bytes for 381 gas each).
 */
const TRACES_BYTES_MAX = 100_000_000

/**
 * Ids that no other request has, of ours or of another process at the same node: so the answer to one that a proxy mixed
 * up is no answer, and "there is no such transaction" is never believed of the wrong one.
 */
function requestIds(): (count: number) => number {
  let next = randomInt(2 ** 40)
  return (count) => {
    next += count
    return next - count
  }
}

/** The answer, or the refusal thrown. */
export function unwrap(outcome: Outcome<unknown, NodeRefusal>): unknown {
  if (!outcome.ok) throw outcome.rejection
  return outcome.value
}

/**
 * Whether the node lacks the method or hides it, rather than failing at it: "historical state is not available" is
 * a failure, "the method … does not exist/is not available" is not.
 */
export function isMethodMissing(error: unknown): boolean {
  if (!(error instanceof NodeRefusal)) return false
  if (error.code === -32601) return true
  return MISSING.some((words) => words.test(error.message))
}

const MISSING = [
  /unsupported method|\bmethod\b.{0,80}\b(?:not|un)(?: ?be)? ?(?:found|exist|available|supported|enabled|allowed|whitelisted)/i,
  // "trace_block is not available on the Free tier - upgrade to …": Alchemy, with -32600.
  /^[a-z]+_\w+ is not (?:available|supported|enabled|allowed) (?:on|in|with) .{0,40}\b(?:tier|plan)\b/i,
]

/** Whether it was asked too much (RFC 6585, 4, also in the words of JSON-RPC; EIP-1474 "limit exceeded"), and would have answered later. */
export function isLimit(error: unknown): boolean {
  if (error instanceof NodeSilence) return error.status === 429
  if (!(error instanceof NodeRefusal)) return false
  return error.code === 429 || error.code === -32005 || /too many requests|rate.?limit/i.test(error.message)
}

/** Whether this came from the node, and may be different when asked again. */
export function isNodeTrouble(error: unknown): error is Error {
  return error instanceof NodeRefusal || error instanceof NodeSilence || error instanceof NodeNonsense
}

/** The node's answer is not what the protocol says; nothing may be concluded from it. */
export class NodeNonsense extends NodeTrouble {
  constructor(message: string) {
    super(message)
    this.name = 'NodeNonsense'
  }
}

/** Some say no with a status as well, of a request that is at fault. With one of a server that is, it may be anybody's word. */
function isRefusal(answer: unknown): boolean {
  return isFields(answer) && isFields(answer.error)
}

function outcomeOf(answer: unknown, method: string): Outcome<unknown, NodeRefusal> {
  if (!isFields(answer)) throw new NodeSilence(method, 'the answer is not JSON-RPC')
  if (isFields(answer.error)) {
    const { code, message, data } = answer.error
    const codeNumber = typeof code === 'number' ? code : 0
    return refuse(new NodeRefusal(method, codeNumber, String(message).slice(0, 500), data))
  }
  if (!Object.hasOwn(answer, 'result')) throw new NodeSilence(method, 'the answer has no result')
  return accept(answer.result)
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
