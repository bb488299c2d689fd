import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { assert } from '../src/domain/assert.ts'
import type { CreateRequest } from '../src/engine/desks/desk.ts'
import type { SimulatedNodes } from '../test/simulation/chains/simulated_chains.ts'
import type { Asked, CreatedOrder, Told } from './life_process.ts'
import { serveNodes } from './process_line.ts'

/** A process of the service, seen from its parent; `life_process.ts` is what runs in it. */
export type LifeChild = {
  readonly pid: number
  create(requests: readonly CreateRequest[]): Promise<readonly CreatedOrder[]>
  cpuMicroseconds(): Promise<number>
  stop(): Promise<void>
}

export async function startLifeChild(
  databaseUrl: string,
  role: 'engine' | 'api',
  nodes: SimulatedNodes,
): Promise<LifeChild> {
  const file = fileURLToPath(new URL('life_process.ts', import.meta.url))
  const child = fork(file, [databaseUrl, role], { serialization: 'advanced' })
  // One for each node and one for each question under way.
  child.setMaxListeners(50)
  serveNodes(nodes, child)
  await told(child, 'ready')
  assert(child.pid !== undefined, 'a process that answers has a number')
  const ask = (asked: Asked) => child.send(asked)
  return {
    pid: child.pid,
    create: async (requests) => {
      const created = told(child, 'created')
      ask({ ask: 'create', requests })
      return (await created).orders
    },
    cpuMicroseconds: async () => {
      const cpu = told(child, 'cpu')
      ask({ ask: 'cpu' })
      return (await cpu).microseconds
    },
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve())
        ask({ ask: 'stop' })
      }),
  }
}

/** The next message of this kind. */
function told<Kind extends Told['told']>(
  child: ChildProcess,
  kind: Kind,
): Promise<Extract<Told, { readonly told: Kind }>> {
  return new Promise((resolve, reject) => {
    const died = (code: number | null) => reject(new Error(`a process of the service ended with ${code}`))
    const hear = (message: Told) => {
      if (message.told !== kind) return
      child.off('message', hear)
      child.off('exit', died)
      resolve(message as Extract<Told, { readonly told: Kind }>)
    }
    child.on('message', hear)
    child.once('exit', died)
  })
}
