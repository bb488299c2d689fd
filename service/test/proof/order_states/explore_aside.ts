import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Explored, Field } from './explore.ts'

/** `explore` in a thread of its own: orders of one type never become those of the other. What it throws is thrown here. */
export async function exploreAside(field: Field): Promise<Explored> {
  // It inherits no stripping of types from whoever runs the tests.
  const thread = new Worker(new URL('./explore_thread.ts', import.meta.url), {
    workerData: field,
    execArgv: [],
  })
  try {
    const [explored] = (await once(thread, 'message')) as [Explored]
    return explored
  } finally {
    await thread.terminate()
  }
}
