import type { CreatedOrder } from '@cambist/sdk'
import { getAddress } from 'viem/utils'
import { assert } from '../../../src/domain/assert.ts'
import { type Chance, chanceFrom } from '../../harness/chance.ts'
import { eventually } from '../../harness/eventually.ts'
import { openRawLine, type RawLine } from '../../harness/raw_line.ts'
import { asItIs } from './generated_case.ts'
import type { KnownExchange } from './known_exchange.ts'
import type { Operation } from './operations.ts'
import { type Entry, text } from './request.ts'
import { plain } from './right.ts'
import { makeRight } from './right_requests.ts'
import { bytesOf, type Sendable, signed } from './sendable.ts'

const LINES = 16

type CrowdOptions = {
  readonly port: number
  readonly seed: number
  readonly operations: readonly Operation[]
  readonly known: KnownExchange
}

/**
 * That many orders of every kind that a run creates, each looked at once by its owner. What the service remembers of
 * orders up to a bound is full of them afterwards; the run itself knows none of them.
 */
export async function makeCrowd(count: number, options: CrowdOptions): Promise<void> {
  const { port, seed } = options
  const create = creation(options)
  const known = { ...options.known, orders: [], locks: [] }
  // Places that no request of the run has: an Idempotency-Key is for one creation.
  await overLines(count, port, (line, at) => createAndLook(line, create, known, chanceFrom(seed, -at)))
}

/**
 * That many addresses that nobody pays to, each as the destination of an order whose amount is none. viem remembers of
 * the last 8,192 addresses how they are written: it knows as many afterwards.
 */
export async function tellAddresses(count: number, options: CrowdOptions): Promise<void> {
  const { port, seed, known } = options
  const create = creation(options)
  const pair = known.pairs.find(({ to }) => to.network === 'ETH')
  assert(pair !== undefined, 'something is exchanged for ether')
  await overLines(count, port, async (line, at) => {
    const { from, to } = pair
    const body: Entry[] = [
      ['from', text(from.currency)],
      ['from_network', text(from.network)],
      ['to', text(to.currency)],
      ['to_network', text(to.network)],
      ['amount', NO_AMOUNT],
      ['rate_type', text('float')],
      ['destination', text(getAddress(chanceFrom(seed, -FAR_AWAY - at).hex(20)))],
    ]
    const { request } = asItIs(create, plain('an amount of too many decimals', { body }))
    const answer = await line.ask(bytesOf(signed(request, known.keys.own)))
    if (!/"field": ?"amount"/.test(answer.text)) throw new Error(`${answer.status} ${answer.text}`)
  })
}

/** Read after the addresses. */
const NO_AMOUNT = '0.0000000000000000000000000001'
/** Places of chance that no request of the run and no order of the crowd has. */
const FAR_AWAY = 1_000_000

function creation({ operations }: CrowdOptions): Operation {
  const create = operations.find(({ id }) => id === 'createOrder')
  assert(create !== undefined, 'orders can be created')
  return create
}

async function overLines(
  count: number,
  port: number,
  ask: (line: RawLine, at: number) => Promise<void>,
): Promise<void> {
  let begun = 0
  const lines = Array.from({ length: LINES }, () => openRawLine(port))
  await Promise.all(
    lines.map(async (line) => {
      while (begun < count) {
        begun += 1
        await ask(line, begun)
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
