import { once } from 'node:events'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { FromVm, ToVm, VmLine, VmOutcome, VmRun } from './vm_messages.ts'

export type Vm = {
  /** What a transaction would do. This thread sleeps meanwhile: blocks are made without a pause, and the machine has pauses. */
  run(asked: VmRun): VmOutcome
  stop(): Promise<void>
}

const PATIENCE_MS = 60_000

/** Surfpool, asked by a thread of its own, because it answers over HTTP. */
export async function startVm(): Promise<Vm> {
  const { port1: port, port2 } = new MessageChannel()
  const line: VmLine = { port: port2, wake: new Int32Array(new SharedArrayBuffer(4)) }
  const thread = new Worker(new URL('./vm_thread.ts', import.meta.url), {
    workerData: line,
    transferList: [port2],
  })
  await Promise.race([
    once(port, 'message'),
    once(thread, 'error').then(([error]) => Promise.reject(error as Error)),
  ])
  thread.unref()
  port.unref()
  const tell = (message: ToVm) => port.postMessage(message)
  const nextMessage = (): FromVm => {
    for (;;) {
      const count = Atomics.load(line.wake, 0)
      const received = receiveMessageOnPort(port) as { message: FromVm } | undefined
      if (received !== undefined) return received.message
      if (Atomics.wait(line.wake, 0, count, PATIENCE_MS) === 'timed-out')
        throw new Error('the virtual machine does not answer')
    }
  }
  const gone = once(thread, 'exit')
  return {
    run: (asked) => {
      tell({ run: asked })
      const message = nextMessage()
      if ('outcome' in message) return message.outcome
      throw new Error(`the virtual machine failed: ${'failed' in message ? message.failed : 'no outcome'}`)
    },
    stop: async () => {
      // Once everything else has stopped, nothing but this wait keeps the process alive.
      thread.ref()
      // A port that is closed already says nothing more to anybody.
      tell({ stop: true })
      await gone
      port.close()
    },
  }
}
