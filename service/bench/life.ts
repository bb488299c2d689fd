import { asSuperuser, createDatabase, inPostgres } from './bench_postgres.ts'
import { tell } from './figure.ts'
import { addCosts, describeCost, type LifeCost, measureLife } from './life_cost.ts'
import { openLifeStage } from './life_stage.ts'

/**
 * Orders driven through their whole life, from the creation to the last confirmation of the payout: the real engine in
 * one process and in two, in turns, on real PostgreSQL, with simulated chains. Who takes the processor is told as well,
 * because PostgreSQL, the engines, the chains and the customers share one machine. Before each round PostgreSQL looks at
 * what the tables hold, as it does by itself every minute: the plans of a database that was empty a moment ago say
 * nothing about one that is an hour old.
 */
const IN_FLIGHT = 800
const WARM_MS = 10_000
const ROUND_MS = 15_000
const ROUNDS = 4

await inPostgres({}, async (postgres) => {
  const url = await createDatabase(postgres, 'life')
  const stage = await openLifeStage(url)
  const costs: { readonly engines: 1 | 2; readonly cost: LifeCost }[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const engines of [1, 2] as const) {
      await stage.setEngines(engines)
      await stage.drive(IN_FLIGHT, WARM_MS)
      await asSuperuser(url, (admin) => admin.query('ANALYZE'))
      const cost = await measureLife(stage, postgres.pid, IN_FLIGHT, ROUND_MS)
      console.log(`  round ${round + 1}, ${engines}: ${describeCost(cost)}`)
      costs.push({ engines, cost })
    }
  }
  await stage.stop()
  const [one, two] = [1, 2].map((engines) =>
    addCosts(costs.filter((round) => round.engines === engines).map(({ cost }) => cost)),
  )
  if (one !== undefined && two !== undefined) report(one, two)
})
process.exit(0)

function report(one: LifeCost, two: LifeCost): void {
  const rate = ({ ended, seconds }: LifeCost) => ended / seconds
  const unit = 'orders a second'
  tell({ name: 'whole life, 1 engine process', value: rate(one), unit, detail: describeCost(one) })
  tell({ name: 'whole life, 2 engine processes', value: rate(two), unit, detail: describeCost(two) })
  tell({ name: 'whole life, from 1 engine process to 2', value: rate(two) / rate(one), unit: 'times' })
}
