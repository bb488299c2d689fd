import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { ClusterPlace } from './make_cluster.ts'

/**
 * `makeCluster` in a thread of its own. It is one program after another: whoever loads much meanwhile comes to each only when it
 * has time for it, and the database would be ready last of all.
 */
export async function makeClusterAside(
  place: ClusterPlace,
  log: (line: string) => void = () => {},
): Promise<void> {
  // It inherits no stripping of types from whoever runs the tests.
  const thread = new Worker(new URL('./make_cluster_thread.ts', import.meta.url), {
    workerData: place,
    execArgv: [],
  })
  thread.on('message', log)
  // An error of the thread is thrown here.
  await once(thread, 'exit')
}
