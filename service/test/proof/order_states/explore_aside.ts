import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { RateType } from '../../../src/domain/quotes/quote.ts'
import type { Explored } from './explore.ts'
import type { Bounds } from './model.ts'

/** What the thread is told. */
export type Field = { readonly rateType: RateType; readonly bounds: Bounds }

/** `explore` in a thread of its own: orders of one type never become those of the other. What it throws is thrown here. */
export async function exploreAside(rateType: RateType, bounds: Bounds): Promise<Explored> {
  // It inherits no stripping of types from whoever runs the tests.
  const thread = new Worker(new URL('./explore_thread.ts', import.meta.url), {
    workerData: { rateType, bounds } satisfies Field,
    execArgv: [],
  })
  try {
    const [explored] = (await once(thread, 'message')) as [Explored]
    return explored
  } finally {
    await thread.terminate()
  }
}
