import { once } from 'node:events'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { EvmAnswer, EvmLine, EvmOutcome, EvmQuestion, EvmRun, FromEvm, ToEvm } from './evm_messages.ts'

export type Evm = {
  /** `answer` tells what the chain holds. The thread sleeps meanwhile: blocks are made without a pause, and the EVM has pauses. */
  run(asked: EvmRun, answer: (question: EvmQuestion) => EvmAnswer): EvmOutcome
  stop(): Promise<void>
}

const PATIENCE_MS = 60_000

/** A real EVM in a thread of its own, because its functions only come as promises. */
export async function startEvm(): Promise<Evm> {
  const { port1: port, port2 } = new MessageChannel()
  const line: EvmLine = { port: port2, wake: new Int32Array(new SharedArrayBuffer(4)) }
  const thread = new Worker(new URL('./evm_thread.ts', import.meta.url), {
    workerData: line,
    transferList: [port2],
  })
  await Promise.race([
    once(port, 'message'),
    once(thread, 'error').then(([error]) => Promise.reject(error as Error)),
  ])
  thread.unref()
  port.unref()
  const tell = (message: ToEvm) => port.postMessage(message)
  const nextMessage = (): FromEvm => {
    for (;;) {
      const count = Atomics.load(line.wake, 0)
      const received = receiveMessageOnPort(port) as { message: FromEvm } | undefined
      if (received !== undefined) return received.message
      if (Atomics.wait(line.wake, 0, count, PATIENCE_MS) === 'timed-out')
        throw new Error('the EVM does not answer')
    }
  }
  return {
    run: (asked, answer) => {
      tell({ run: asked })
      for (;;) {
        const message = nextMessage()
        if ('outcome' in message) return message.outcome
        if ('failed' in message) throw new Error(`the EVM failed: ${message.failed}`)
        if ('question' in message) tell({ answer: answer(message.question) })
      }
    },
    stop: async () => {
      port.close()
      await thread.terminate()
    },
  }
}
