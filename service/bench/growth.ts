import type { Postgres } from '@cambist/devnet'
import { auditBooks } from '../src/engine/books/audit_books.ts'
import { asSuperuser, createDatabase, inPostgres, openBenchDatabase } from './bench_postgres.ts'
import { benchSigner } from './bench_world.ts'
import { tell } from './figure.ts'
import { fillHistory, restingBalances } from './history.ts'
import { addCosts, describeCost, type LifeCost, measureLife, millisecondsAnOrder } from './life_cost.ts'
import { type LifeStage, openLifeStage } from './life_stage.ts'

/**
 * What an order costs the service and PostgreSQL, everything that runs all the time included, with few and with many
 * ended orders in the database. Both are measured in turns, each on a PostgreSQL of its own; far below what the machine
 * could do, so that no queue grows.
 */
const FEW = 10_000
const MANY = 1_000_000
const IN_FLIGHT = 60
const WARM_MS = 10_000
const ROUND_MS = 20_000
const ROUNDS = 4

/** Writing a million orders, not part of the measurement, takes memory and no second copy of everything. */
const settings = {
  shared_buffers: '1GB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '8GB',
  maintenance_work_mem: '512MB',
}

await inPostgres(settings, async (small) => {
  await inPostgres(settings, async (large) => {
    const few = await openFilled(small, FEW)
    const many = await openFilled(large, MANY)
    const costs: Record<'few' | 'many', LifeCost[]> = { few: [], many: [] }
    for (let round = 0; round < ROUNDS; round += 1) {
      costs.few.push(await measure(few, small))
      costs.many.push(await measure(many, large))
    }
    await few.stop()
    await many.stop()
    report(addCosts(costs.few), addCosts(costs.many))
  })
})
process.exit(0)

async function openFilled(postgres: Postgres, orders: number): Promise<LifeStage> {
  const url = await createDatabase(postgres, 'history')
  const startedMs = Date.now()
  const db = openBenchDatabase(url, 1)
  const lying = await asSuperuser(url, async (admin) => {
    await fillHistory(admin, orders, benchSigner(db))
    return restingBalances(admin)
  })
  await db.close()
  console.log(`  ${orders} ended orders written in ${Math.round((Date.now() - startedMs) / 1_000)} s`)
  if (orders === FEW) await expectConsistent(url)
  const stage = await openLifeStage(url, lying)
  await stage.drive(IN_FLIGHT, WARM_MS)
  await stage.setEngines(0)
  return stage
}

/** Books that do not fit would be another thing than what is measured. */
async function expectConsistent(url: string): Promise<void> {
  const db = openBenchDatabase(url, 1)
  const { problems } = await auditBooks(db)
  await db.close()
  if (problems.length > 0)
    throw new Error(`the history is not what a service leaves: ${problems[0]?.message}`)
}

async function measure(stage: LifeStage, { pid }: Postgres): Promise<LifeCost> {
  await stage.setEngines(1)
  await stage.drive(IN_FLIGHT, WARM_MS)
  const cost = await measureLife(stage, pid, IN_FLIGHT, ROUND_MS)
  await stage.setEngines(0)
  console.log(`  ${describeCost(cost)}`)
  return cost
}

function report(few: LifeCost, many: LifeCost): void {
  tell({
    name: `an order with ${MANY} ended ones in the database`,
    value: millisecondsAnOrder(many) / millisecondsAnOrder(few),
    unit: `times one with ${FEW}`,
    limit: { atMost: 1.2 },
    detail: `${describeCost(many)}\n  against ${describeCost(few)}`,
  })
}
