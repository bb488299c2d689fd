import { Worker } from 'node:worker_threads'
import type { flaws } from './flaws.ts'
import type { Outcome } from './schedule.ts'

export type WorkerTask = {
  readonly serverUrl: string
  /** Of the worker and its database. */
  readonly name: string
  readonly seeds: readonly number[]
  readonly flaw: keyof typeof flaws | null
}

/** Runs the schedules of a task in a thread; `take` is told of each and answers whether to go on. */
export function runInThread(task: WorkerTask, take: (outcome: Outcome) => boolean): Promise<void> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: task, execArgv: [] })
  return new Promise((resolve, reject) => {
    worker.on('message', (outcome: Outcome) => {
      if (!take(outcome)) worker.postMessage('stop')
    })
    worker.on('error', reject)
    worker.on('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`${task.name} ended with ${code}`)),
    )
  })
}
