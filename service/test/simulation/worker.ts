import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../src/domain/assert.ts'
import { flaws } from './flaws.ts'
import { openGround } from './ground.ts'
import { runSchedule } from './schedule.ts'
import type { Wish } from './workers.ts'

/** Runs the schedules that it is asked for on a database of its own, and tells what came of each. */
const port = parentPort
assert(port !== null, 'this is a thread')
const ground = await openGround(workerData as string)
port.on('message', async ({ seed, flaw }: Wish) => {
  port.postMessage(await runSchedule(ground, seed, { flaw: flaw === null ? {} : flaws[flaw]() }))
})
