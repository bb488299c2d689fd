import { type CallFrame, decodeCallFrame, isAbsent } from './call_frame.ts'
import {
  type EvmHeader,
  type EvmTx,
  type Fields,
  fields,
  hash,
  list,
  lowerAddress,
  quantity,
} from './decode.ts'
import {
  AnswerTooMuch,
  isLimit,
  isMethodMissing,
  type JsonRpc,
  NodeNonsense,
  NodeRefusal,
  NodeSilence,
} from './json_rpc.ts'
import { pickValueTracer } from './pick_value_tracer.ts'
import type { EvmSettings } from './settings.ts'

type Tracing = NonNullable<EvmSettings['tracing']>

/** The call tree of every transaction of a block, in the block's order. */
export type TraceBlock = (header: EvmHeader, txs: readonly EvmTx[]) => Promise<readonly CallFrame[]>

/**
 * What a node cannot tell in full, because somebody has made it too much, it is asked for once more, and of the value that
 * moved alone. Any other failure (a limit on questions, a server that is down) passes, and the block is read again later.
 */
export function blockTracer(rpc: JsonRpc, tracing: Tracing, timeoutMs: number): TraceBlock {
  const values = valuesTracer(rpc, timeoutMs)
  if (tracing === 'values') return values
  const full = fullTracer(rpc, tracing, timeoutMs)
  return async (header, txs) => {
    try {
      return await full(header, txs)
    } catch (error) {
      if (!isTooMuch(error)) throw error
      return await values(header, txs).catch((reason) => {
        throw new NodeSilence('tracing', `${messageOf(error)}; of the value alone: ${messageOf(reason)}`)
      })
    }
  }
}

/**
 * Whether it would end so again: longer than we take or than the node tells, or not done in its time or ours. Nonsense is not: who tells
 * that is not to be believed the second time.
 */
function isTooMuch(error: unknown): error is Error {
  if (error instanceof AnswerTooMuch) return true
  return error instanceof NodeRefusal && !isLimit(error) && TOO_MUCH.test(error.message)
}

/**
 * Geth: "execution timeout". Reth (jsonrpsee): "Response is too big"; revm-inspectors: "trace recorded byte limit exceeded". Others say that
 * a response size exceeds, or is larger than, their limit.
 */
const TOO_MUCH = new RegExp(
  [
    String.raw`\btim(?:e|ed)[ -]?out\b|\bdeadline exceeded`,
    String.raw`\b(?:response|result|answer)\b.{0,20}\btoo (?:big|large|long)`,
    String.raw`\b(?:response|result|answer|trace)\b.{0,30}\b(?:exceed|larger than)`,
    String.raw`\bexceed\w*\b.{0,20}\b(?:response|result|answer) size`,
  ].join('|'),
  'i',
)

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The tracer is picked each time: by now another node may stand there. */
function valuesTracer(rpc: JsonRpc, timeoutMs: number): TraceBlock {
  return async (header, txs) => debugTracer(rpc, await pickValueTracer(rpc), timeoutMs)(header, txs)
}

function fullTracer(rpc: JsonRpc, tracing: 'auto' | 'debug' | 'trace', timeoutMs: number): TraceBlock {
  const debug = debugTracer(rpc, 'callTracer', timeoutMs)
  const trace: TraceBlock = (header, txs) => parityTraceBlock(rpc, header, txs)
  if (tracing === 'debug') return debug
  if (tracing === 'trace') return trace
  // trace_block first: nodes that offer both keep its answers ready and compute the other's. anvil takes 18 s to
  // debug a block of 400 transactions, and 4 ms for this.
  let works = trace
  return async (header, txs) => {
    try {
      return await works(header, txs)
    } catch (error) {
      if (!isMethodMissing(error)) throw error
    }
    // So it is too when by now another node stands there.
    const other = works === trace ? debug : trace
    const trees = await other(header, txs)
    works = other
    return trees
  }
}

/** https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-debug#debugtraceblockbyhash */
function debugTracer(rpc: JsonRpc, tracer: string, timeoutMs: number): TraceBlock {
  const options = { tracer, timeout: `${timeoutMs}ms` }
  return (header, txs) => debugTraceBlock(rpc, header, txs, options)
}

async function debugTraceBlock(
  rpc: JsonRpc,
  header: EvmHeader,
  txs: readonly EvmTx[],
  options: { readonly tracer: string; readonly timeout: string },
): Promise<readonly CallFrame[]> {
  const answers = list(await rpc.call('debug_traceBlockByHash', [header.hash, options]), 'traces')
  if (answers.length !== txs.length)
    throw new NodeNonsense(`block ${header.height}: a trace for each transaction is missing`)
  return answers.map((answer, index) => {
    const trace = fields(answer, 'trace')
    const tx = txs[index]
    // Geth before 1.13 leaves the hash out; the order is the block's in any case.
    if (trace.txHash !== undefined && hash(trace.txHash, 'trace.txHash') !== tx?.hash) {
      throw new NodeNonsense(`block ${header.height}: the traces are of other transactions`)
    }
    if (trace.error !== undefined) {
      const reason = `block ${header.height}: tracing ${tx?.hash} failed: ${String(trace.error).slice(0, 200)}`
      const Failure = TOO_MUCH.test(reason) ? AnswerTooMuch : NodeSilence
      throw new Failure('debug_traceBlockByHash', reason)
    }
    return decodeCallFrame(trace.result)
  })
}

/** https://docs.erigon.tech: trace_block, the flat format of OpenEthereum. */
async function parityTraceBlock(
  rpc: JsonRpc,
  header: EvmHeader,
  txs: readonly EvmTx[],
): Promise<readonly CallFrame[]> {
  const answer = await rpc.call('trace_block', [`0x${header.height.toString(16)}`])
  const traces = list(answer, 'traces').map((trace) => fields(trace, 'trace'))
  for (const trace of traces) {
    // It is asked by number, so a reorg between two requests shows here.
    if (hash(trace.blockHash, 'trace.blockHash') !== header.hash) {
      throw new NodeNonsense(`block ${header.height} changed while it was being read: read it again`)
    }
  }
  const byTx = Map.groupBy(
    traces.filter(({ type }) => type !== 'reward'),
    (trace) => hash(trace.transactionHash, 'trace.transactionHash'),
  )
  return txs.map((tx) => {
    const own = byTx.get(tx.hash)
    if (own === undefined)
      throw new NodeNonsense(`block ${header.height}: the trace of ${tx.hash} is missing`)
    return treeOf(own)
  })
}

type GrowingFrame = CallFrame & { readonly calls: CallFrame[] }

/** Flat traces, each with its place in the tree, parents before children. */
function treeOf(traces: readonly Fields[]): CallFrame {
  const frames = new Map<string, GrowingFrame>()
  for (const trace of traces) {
    const path = list(trace.traceAddress, 'trace.traceAddress')
    const frame = decodeFlatTrace(trace)
    frames.set(path.join('.'), frame)
    if (path.length === 0) continue
    const parent = frames.get(path.slice(0, -1).join('.'))
    if (parent === undefined) throw new NodeNonsense('the node tells of an inner call before its caller')
    parent.calls.push(frame)
  }
  const root = frames.get('')
  if (root === undefined) throw new NodeNonsense("the node's traces have no outermost call")
  return root
}

function decodeFlatTrace(trace: Fields): GrowingFrame {
  const action = fields(trace.action, 'trace.action')
  const isFailed = !isAbsent(trace.error) && trace.error !== ''
  switch (trace.type) {
    case 'call':
      return {
        kind: String(action.callType).toUpperCase(),
        from: lowerAddress(action.from, 'trace.action.from'),
        to: lowerAddress(action.to, 'trace.action.to'),
        wei: quantity(action.value, 'trace.action.value'),
        isFailed,
        calls: [],
      }
    case 'create': {
      const result = isAbsent(trace.result) ? null : fields(trace.result, 'trace.result')
      return {
        kind: 'CREATE',
        from: lowerAddress(action.from, 'trace.action.from'),
        to: result === null || isFailed ? null : lowerAddress(result.address, 'trace.result.address'),
        wei: quantity(action.value, 'trace.action.value'),
        isFailed,
        calls: [],
      }
    }
    case 'suicide':
    case 'selfdestruct':
      return {
        kind: 'SELFDESTRUCT',
        from: lowerAddress(action.address, 'trace.action.address'),
        to: lowerAddress(action.refundAddress, 'trace.action.refundAddress'),
        wei: quantity(action.balance, 'trace.action.balance'),
        isFailed,
        calls: [],
      }
    default:
      throw new NodeNonsense(`the node's trace is of the unknown type ${JSON.stringify(trace.type)}`)
  }
}
