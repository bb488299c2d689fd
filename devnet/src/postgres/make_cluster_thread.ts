import { parentPort, workerData } from 'node:worker_threads'
import { type ClusterPlace, makeCluster } from './make_cluster.ts'

/** The other end of make_cluster_aside.ts. */
await makeCluster(workerData as ClusterPlace, (line) => parentPort?.postMessage(line))
