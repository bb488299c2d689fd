import { Worker } from 'node:worker_threads'
import type { FlawName } from './flaws.ts'
import type { Outcome } from './schedule.ts'

export type WorkerTask = {
  readonly serverUrl: string
  readonly seeds: readonly number[]
  readonly flaw: FlawName | null
}

/** Runs the schedules of a task in a thread; `take` is told of each, answers whether to go on, and ends it by throwing. */
export function runInThread(task: WorkerTask, take: (outcome: Outcome) => boolean): Promise<void> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: task, execArgv: [] })
  return new Promise((resolve, reject) => {
    worker.on('message', (outcome: Outcome) => {
      try {
        if (!take(outcome)) worker.postMessage('stop')
      } catch (error) {
        worker.postMessage('stop')
        reject(error)
      }
    })
    worker.on('error', reject)
    worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a thread ended with ${code}`))))
  })
}
