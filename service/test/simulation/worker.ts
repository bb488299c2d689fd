import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../src/domain/assert.ts'
import { flaws } from './flaws.ts'
import { openGround } from './ground.ts'
import { runSchedule } from './schedule.ts'
import type { WorkerTask } from './workers.ts'

/** Runs schedules one after the other on a database of its own, and tells what came of each. */
const port = parentPort
assert(port !== null, 'this is a thread')
const { serverUrl, seeds, flaw } = workerData as WorkerTask
const ground = await openGround(serverUrl)
let isStopped = false
port.on('message', () => {
  isStopped = true
})
for (const seed of seeds) {
  if (isStopped) break
  port.postMessage(await runSchedule(ground, seed, { flaw: flaw === null ? {} : flaws[flaw]() }))
}
await ground.close()
port.close()
