import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { FlawName } from './flaws.ts'
import type { Outcome } from './schedule.ts'

/** A schedule that a thread is asked for; with a flaw, of an engine that has it. */
export type Wish = { readonly seed: number; readonly flaw: FlawName | null }

export type Threads = {
  /**
   * Runs a row of schedules in each thread, one after the other. `take` is told of each and answers whether to go on;
   * what it throws is thrown here.
   */
  run(
    rows: readonly (readonly number[])[],
    flaw: FlawName | null,
    take: (outcome: Outcome) => boolean,
  ): Promise<void>
  close(): Promise<void>
}

/** Threads with a database of their own each, which is made when it is needed first. */
export function openThreads(serverUrl: string, count: number): Threads {
  const threads = Array.from(
    { length: count },
    () => new Worker(new URL('./worker.ts', import.meta.url), { workerData: serverUrl, execArgv: [] }),
  )
  return {
    run: async (rows, flaw, take) => {
      let isOver = false
      const runRow = async (thread: Worker, seeds: readonly number[]) => {
        for (const seed of seeds) {
          if (isOver) return
          thread.postMessage({ seed, flaw } satisfies Wish)
          const [outcome] = (await once(thread, 'message')) as [Outcome]
          if (isOver) return
          isOver = true
          isOver = !take(outcome)
        }
      }
      // A thread that is left in the middle of a schedule would not be ready for the next row.
      const ends = await Promise.allSettled(threads.map((thread, index) => runRow(thread, rows[index] ?? [])))
      for (const end of ends) if (end.status === 'rejected') throw end.reason
    },
    close: async () => {
      await Promise.all(threads.map((thread) => thread.terminate()))
    },
  }
}
