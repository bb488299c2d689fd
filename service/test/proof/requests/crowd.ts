import type { CreatedOrder } from '@cambist/sdk'
import { assert } from '../../../src/domain/assert.ts'
import { type Chance, chanceFrom } from '../../harness/chance.ts'
import { eventually } from '../../harness/eventually.ts'
import { openRawLine, type RawLine } from '../../harness/raw_line.ts'
import { asItIs } from './generated_case.ts'
import type { KnownExchange } from './known_exchange.ts'
import type { Operation } from './operations.ts'
import { makeRight } from './right_requests.ts'
import { bytesOf, type Sendable, signed } from './sendable.ts'

const LINES = 16

/**
 * That many orders of every kind that a run creates, each looked at once by its owner. What the service remembers of
 * orders up to a bound is full of them afterwards; the run itself knows none of them.
 */
export async function makeCrowd(
  count: number,
  options: {
    readonly port: number
    readonly seed: number
    readonly operations: readonly Operation[]
    readonly known: KnownExchange
  },
): Promise<void> {
  const { port, seed, operations } = options
  const create = operations.find(({ id }) => id === 'createOrder')
  assert(create !== undefined, 'orders can be created')
  const known = { ...options.known, orders: [], locks: [] }
  let begun = 0
  const lines = Array.from({ length: LINES }, () => openRawLine(port))
  await Promise.all(
    lines.map(async (line) => {
      while (begun < count) {
        begun += 1
        // Places that no request of the run has: an Idempotency-Key is for one creation.
        await createAndLook(line, create, known, chanceFrom(seed, -begun))
      }
    }),
  )
  for (const line of lines) line.close()
}

async function createAndLook(line: RawLine, create: Operation, known: KnownExchange, chance: Chance) {
  const { request, signer } = asItIs(create, makeRight(create, known, chance))
  assert(signer !== null, 'a creation is signed')
  // They come faster than addresses are made.
  const order = await eventually('an order is created', async () => {
    const { status, text } = await line.ask(bytesOf(signed(request, signer)))
    if (status !== 200) throw new Error(`${status} ${text}`)
    return (JSON.parse(text) as { data: CreatedOrder }).data
  })
  const look: Sendable = {
    method: 'GET',
    target: `/v1/order/${order.order_id}`,
    headers: [],
    body: Buffer.alloc(0),
  }
  const { status, text } = await line.ask(bytesOf(signed(look, signer)))
  if (status !== 200) throw new Error(`${status} ${text}`)
}
