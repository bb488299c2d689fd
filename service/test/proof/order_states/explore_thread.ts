import { parentPort, workerData } from 'node:worker_threads'
import { explore } from './explore.ts'
import type { Field } from './explore_aside.ts'

/** The other end of explore_aside.ts. */
const { rateType, bounds } = workerData as Field
parentPort?.postMessage(explore(rateType, bounds))
