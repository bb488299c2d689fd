import type { ChildProcess } from 'node:child_process'
import type { MessagePort } from 'node:worker_threads'
import type { NodeLines, SimulatedNodes } from '../test/simulation/chains/simulated_chains.ts'
import { serveNode, threadLine } from '../test/simulation/chains/thread_line.ts'

/** Simulated nodes live in one process; others ask them over the channel that they have to their parent. */
type Envelope = { readonly chain: keyof SimulatedNodes; readonly message: never }

const isEnvelope = (value: unknown): value is Envelope =>
  typeof value === 'object' && value !== null && 'chain' in value && 'message' in value

/** The part of a port between threads that a line makes use of, between processes. */
function portOf(channel: ChildProcess, chain: keyof SimulatedNodes): MessagePort {
  const port: Pick<MessagePort, 'postMessage'> & { on(event: string, hear: (message: never) => void): void } =
    {
      on: (_, hear) => {
        channel.on('message', (value: unknown) => {
          if (isEnvelope(value) && value.chain === chain) hear(value.message)
        })
      },
      postMessage: (message) => {
        channel.send({ chain, message } as never)
      },
    }
  return port as unknown as MessagePort
}

/** In the parent; the child must have been forked with serialization `advanced`. */
export function serveNodes(nodes: SimulatedNodes, child: ChildProcess): void {
  serveNode(nodes.BTC, portOf(child, 'BTC'))
  serveNode(nodes.ETH, portOf(child, 'ETH'))
  serveNode(nodes.BNB, portOf(child, 'BNB'))
}

/** In the child. */
export function linesToParent(): NodeLines {
  const channel = process as unknown as ChildProcess
  return {
    BTC: threadLine(portOf(channel, 'BTC')),
    ETH: threadLine(portOf(channel, 'ETH')),
    BNB: threadLine(portOf(channel, 'BNB')),
  }
}
