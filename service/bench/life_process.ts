import { reserveAddresses } from '../src/db/addresses.ts'
import { chainFacts } from '../src/domain/catalog/networks.ts'
import { defaultPolicy } from '../src/engine/default_policy.ts'
import type { CreateRequest } from '../src/engine/desks/desk.ts'
import { openDesk } from '../src/engine/desks/desks.ts'
import type { Loop } from '../src/engine/loop.ts'
import { startEngine, startMarket, startWatching } from '../src/engine/run.ts'
import type { World } from '../src/engine/world.ts'
import { connectSimulated } from '../test/simulation/chains/simulated_chains.ts'
import { openBenchDatabase } from './bench_postgres.ts'
import { benchWorld, deskWorld, signingWorld } from './bench_world.ts'
import { linesToParent } from './process_line.ts'

/**
 * A process of the service on simulated chains that its parent holds: `life_process.ts <databaseUrl> engine` watches,
 * decides, signs and pays; `… api` creates the orders that it is asked for.
 */
export type Asked =
  | { readonly ask: 'create'; readonly requests: readonly CreateRequest[] }
  | { readonly ask: 'cpu' }
  | { readonly ask: 'stop' }
export type Told =
  | { readonly told: 'ready' }
  | { readonly told: 'created'; readonly orders: readonly CreatedOrder[] }
  | { readonly told: 'cpu'; readonly microseconds: number }
export type CreatedOrder = {
  readonly currency: string
  readonly network: string
  readonly address: string
  readonly amount: string
}

const [databaseUrl = '', role = ''] = process.argv.slice(2)
const db = openBenchDatabase(databaseUrl)
const chains = connectSimulated(linesToParent(), async (id) => {
  const [address] = await reserveAddresses(db, chainFacts[id].family)
  if (address === undefined) throw new Error('no reserve address yet')
  return address
})
const world = benchWorld(db, chains, { ...defaultPolicy, poolSize: 500 })
await world.market.refresh()
const loops: Loop[] = [startMarket(world)]
if (role === 'engine') {
  const holder = `engine ${process.pid}`
  loops.push(...startWatching(world, holder), ...startEngine(signingWorld(world), holder))
}
const create = role === 'api' ? creator(world) : async () => []

process.on('message', async (message: Asked) => {
  if (message.ask === 'create') tell({ told: 'created', orders: await create(message.requests) })
  if (message.ask === 'cpu') {
    const { user, system } = process.cpuUsage()
    tell({ told: 'cpu', microseconds: user + system })
  }
  if (message.ask === 'stop') {
    await Promise.all(loops.map((loop) => loop.stop()))
    process.exit(0)
  }
})
// Whoever measures is gone: nobody else would end this process.
process.on('disconnect', () => process.exit(0))
tell({ told: 'ready' })

function tell(told: Told): void {
  process.send?.(told)
}

/** Creates orders as a client would have them; those that cannot be taken now are left out. */
function creator(of: World): (requests: readonly CreateRequest[]) => Promise<readonly CreatedOrder[]> {
  const desk = openDesk(deskWorld(of))
  let made = 0
  return async (requests) => {
    const created = await Promise.all(
      requests.map((request) => {
        made += 1
        return desk.createOrder('acc_benchmark', request, {
          slot: `${process.pid}-${made}`,
          bodyHash: 'body',
        })
      }),
    )
    return created.flatMap((one) => {
      if (!one.ok) return []
      const { deposit_currency, deposit_network, deposit_address, deposit_amount } = one.value.order
      return [
        {
          currency: deposit_currency,
          network: deposit_network,
          address: deposit_address,
          amount: deposit_amount,
        },
      ]
    })
  }
}
