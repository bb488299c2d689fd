import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
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
/** One that has said nothing for so long may never do so. */
const SUSPICIOUS_MS = 10_000
const MACHINES_MAX = 3

/** None of the machines has said that it runs. */
export class SurfpoolSilent extends Error {
  override readonly name = 'SurfpoolSilent'
}

export type VmOptions = {
  /** Aborted: nothing is waited for any more, and the start rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  readonly suspiciousMs?: number
  readonly firstWordMs?: number
  /** What a machine's thread runs. */
  readonly program?: URL
}

/**
 * Surfpool, asked by a thread of its own, because it answers over HTTP. Now and then one does not answer. All it knows it is
 * told with each transaction, so that another one can take its place.
 */
export async function startVm(options: VmOptions = {}): Promise<Vm> {
  let machine = await launchUntilReady(options)
  return {
    run: (asked) => {
      for (let machines = 1; ; machines += 1) {
        try {
          return machine.run(asked)
        } catch (error) {
          if (machines === MACHINES_MAX) throw error
          machine.retire()
          machine = launch(options)
        }
      }
    },
    stop: () => machine.stop(),
  }
}

/**
 * Surfpool chooses its two ports, lets go of them and binds them later. Where somebody has taken one by then it waits for
 * itself for ever, and no setting gives it others. So another is started beside one that is silent; the first that speaks is taken.
 */
async function launchUntilReady(options: VmOptions): Promise<Machine> {
  const { signal, suspiciousMs = SUSPICIOUS_MS, firstWordMs = FIRST_WORD_MS } = options
  const machines: Machine[] = []
  let chosen: Machine | null = null
  let failure: unknown
  try {
    while (chosen === null && machines.length < MACHINES_MAX) {
      machines.push(launch(options))
      const limitMs = machines.length < MACHINES_MAX ? suspiciousMs : firstWordMs
      const speaking = Promise.any(machines.map((machine) => machine.ready.then(() => machine)))
      const failing = speaking.catch((error: AggregateError) => {
        failure = error.errors.at(-1)
        return null
      })
      // A thread that may still speak keeps the process alive, and the wait for it does not.
      const silence = delay(limitMs, null, { ref: false, ...(signal && { signal }) }).catch(() => null)
      chosen = await Promise.race([failing, silence])
      signal?.throwIfAborted()
    }
  } finally {
    for (const machine of machines) if (machine !== chosen) machine.retire()
  }
  if (chosen !== null) return chosen
  throw new SurfpoolSilent(
    `The local Solana does not start: ${MACHINES_MAX} of its virtual machines (Surfpool) were started, and none has said that it runs.`,
    { cause: failure },
  )
}

type Machine = Vm & {
  readonly ready: Promise<void>
  /** Tells it to stop, and waits for nothing. */
  retire(): void
}

function launch({ program = new URL('./vm_thread.ts', import.meta.url) }: VmOptions): Machine {
  const { port1: port, port2 } = new MessageChannel()
  const line: VmLine = { port: port2, wake: new Int32Array(new SharedArrayBuffer(4)) }
  const thread = new Worker(program, {
    workerData: line,
    transferList: [port2],
  })
  const gone = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
  const bond = bondOf(gone)
  // Until it has spoken nobody knows whether it ever leaves its native code.
  bond.cut()
  const failed = once(thread, 'error').then(([error]) => Promise.reject(error as Error))
  // Whoever does not wait for the start is told by the silence that follows.
  failed.catch(() => {})
  const ready = Promise.race([once(port, 'message').then(() => {}), failed]).then(() => {
    bond.mend()
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
      abandon()
    },
    stop: async () => {
      // Once everything else has stopped, nothing but this wait keeps the process alive.
      thread.ref()
      // A port that is closed already says nothing more to anybody.
      tell({ stop: true })
      const isSilent = await Promise.race([gone, delay(PATIENCE_MS, true, { ref: false })])
      if (isSilent) abandon()
      port.close()
    },
  }

  function abandon(): void {
    bond.cut()
    thread.unref()
    port.unref()
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

/**
 * Whatever ends a process waits for its threads, and nothing ends one that waits in native code. As long as the bond is cut the process
 * becomes another program at its end, which has none of them any more and keeps the exit code.
 */
function bondOf(gone: Promise<void>): { cut(): void; mend(): void } {
  let isGone = false
  const end = (code: number) => {
    process.execve?.('/bin/sh', ['sh', '-c', `exit ${code}`])
    process.kill(process.pid, 'SIGKILL')
  }
  // Node tells of it only after that end.
  const tell = (error: Error) => console.error(error)
  const mend = () => {
    process.off('exit', end)
    process.off('uncaughtExceptionMonitor', tell)
  }
  gone.then(() => {
    isGone = true
    mend()
  })
  return {
    mend,
    cut: () => {
      mend()
      if (isGone) return
      process.on('exit', end)
      process.on('uncaughtExceptionMonitor', tell)
    },
  }
}
