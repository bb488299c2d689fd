import { createDatabase, inPostgres } from './bench_postgres.ts'
import { tell } from './figure.ts'
import { openLifeStage } from './life_stage.ts'
import { kibibytes } from './process_memory.ts'

/**
 * Whether an engine holds on to orders that have ended: they are driven through their whole life for ten minutes, and what its
 * process holds at the end is compared with what it held after two and a half, when its caches and its heap had grown to their
 * size. The simulated chains, which forget nothing, are in another process.
 */
const IN_FLIGHT = 300
const WARM_MS = 150_000
const MEASURED_MS = 450_000

await inPostgres({}, async (postgres) => {
  const stage = await openLifeStage(await createDatabase(postgres, 'memory'))
  try {
    await stage.setEngines(1)
    const mebibytes = () =>
      stage.enginePids().reduce((sum, pid) => sum + kibibytes(pid, 'status', 'VmRSS') / 1_024, 0)
    const warm = await stage.drive(IN_FLIGHT, WARM_MS)
    const before = mebibytes()
    const measured = await stage.drive(IN_FLIGHT, MEASURED_MS)
    const after = mebibytes()
    tell({
      name: `memory of an engine after ${warm.ended + measured.ended} orders`,
      value: after / before,
      unit: `times what it was after ${warm.ended}`,
      limit: { atMost: 1.1 },
      detail: `${Math.round(before)} MiB, then ${Math.round(after)} MiB`,
    })
  } finally {
    await stage.stop()
  }
})
process.exit(0)
