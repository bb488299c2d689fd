import { once } from 'node:events'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { FromVm, ToVm, VmLine, VmOutcome, VmRun } from './vm_messages.ts'

export type Vm = {
  /** What a transaction would do. This thread sleeps meanwhile: blocks are made without a pause, and the machine has pauses. */
  run(asked: VmRun): VmOutcome
  stop(): Promise<void>
}

/** Nothing that runs takes a second. */
const PATIENCE_MS = 10_000
/** Loading one takes a second, and many times as long on a machine that has much else to do. */
const FIRST_WORD_MS = 60_000
const MACHINES_MAX = 3

/**
 * Surfpool, asked by a thread of its own, because it answers over HTTP. Now and then one does not answer. All it knows it is
 * told with each transaction, so that another one can take its place.
 */
export async function startVm(): Promise<Vm> {
  let machine = launch()
  await machine.ready
  return {
    run: (asked) => {
      for (let machines = 1; ; machines += 1) {
        try {
          return machine.run(asked)
        } catch (error) {
          if (machines === MACHINES_MAX) throw error
          machine.retire()
          machine = launch()
        }
      }
    },
    stop: () => machine.stop(),
  }
}

type Machine = Vm & {
  readonly ready: Promise<void>
  /** Tells it to stop, and waits for nothing. */
  retire(): void
}

function launch(): Machine {
  const { port1: port, port2 } = new MessageChannel()
  const line: VmLine = { port: port2, wake: new Int32Array(new SharedArrayBuffer(4)) }
  const thread = new Worker(new URL('./vm_thread.ts', import.meta.url), {
    workerData: line,
    transferList: [port2],
  })
  const gone = once(thread, 'exit')
  const failed = once(thread, 'error').then(([error]) => Promise.reject(error as Error))
  // Whoever does not wait for the start is told by the silence that follows.
  failed.catch(() => {})
  const ready = Promise.race([once(port, 'message').then(() => {}), failed]).then(() => {
    thread.unref()
    port.unref()
  })
  ready.catch(() => {})
  const tell = (message: ToVm) => port.postMessage(message)
  let patienceMs = FIRST_WORD_MS
  return {
    ready,
    run: (asked) => {
      tell({ run: asked })
      for (;;) {
        const message = nextMessage()
        if ('outcome' in message) return message.outcome
        if ('failed' in message) throw new Error(`the virtual machine failed: ${message.failed}`)
      }
    },
    retire: () => {
      tell({ stop: true })
      thread.unref()
      port.unref()
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

  function nextMessage(): FromVm {
    for (;;) {
      const count = Atomics.load(line.wake, 0)
      const received = receiveMessageOnPort(port) as { message: FromVm } | undefined
      if (received !== undefined) {
        patienceMs = PATIENCE_MS
        return received.message
      }
      if (Atomics.wait(line.wake, 0, count, patienceMs) === 'timed-out')
        throw new Error('the virtual machine does not answer')
    }
  }
}
