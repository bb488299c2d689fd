import { parentPort, workerData } from 'node:worker_threads'
import { explore, type Field } from './explore.ts'

/** The other end of explore_aside.ts. */
parentPort?.postMessage(explore(workerData as Field))
