import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import type { Room } from '../../signer/signer.ts'
import { type BooksStage, lookAt, openBooksStage } from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { pricedOrder } from '../testing/priced_order.ts'
import { openReserve } from '../testing/sweeping.ts'
import type { SigningWorld } from '../world.ts'
import { workPayouts } from './work.ts'

/**
 * What: a payout for which the signer's limits leave no room takes no nonce, so that nobody waits behind it.
 * How: a real PostgreSQL, a chain on paper, and a signer that knows one limit and counts what it signs.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('room')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n

function limited(room: Room) {
  let left = room.together ?? 0n
  let refused = 0
  const world: SigningWorld = {
    ...stage.world,
    seal: () => 'seal',
    signer: {
      addresses: async () => [],
      room: async () => ({ ...room, together: left }),
      lastSigned: async () => 0,
      lastOutflow: async () => 0,
      sign: async (intent) => {
        assert(intent.family === 'evm', 'it is of Ethereum')
        if (intent.units > left) {
          refused += 1
          return refuse({ code: 'limit_exceeded', message: 'it would pass a limit' })
        }
        left -= intent.units
        return accept({ txHash: `tx-${intent.payoutId}`, bytes: 'ff' })
      },
    },
  }
  return { world, refused: () => refused }
}

async function planPayouts(count: number) {
  await openReserve(stage)
  for (let made = 0; made < count; made += 1) await pricedOrder(stage)
}

async function outflows() {
  return stage.db.query<{ state: string; nonce: number | null; trouble: string | null }>(
    'SELECT state, nonce, trouble FROM outflows ORDER BY nonce NULLS LAST',
  )
}

test('of ten that are worked on at once those that fit are sent, and the others hold no nonce', async () => {
  await planPayouts(10)
  const { world: few, refused } = limited({ onePayout: ETHER, together: 4n * ETHER })
  const world = { ...few, policy: { ...few.policy, atOnce: 10 } }
  for (let round = 0; round < 4; round += 1) {
    await workPayouts(world, payingChain(stage))
    stage.advance(5_000)
    await lookAt(stage, 'BTC', 100)
  }
  const rows = await outflows()
  expect(rows.map(({ nonce }) => nonce)).toEqual([0, 1, 2, 3, ...Array.from({ length: 6 }, () => null)])
  expect(rows.slice(0, 4).every(({ state }) => state === 'broadcast')).toBe(true)
  expect(new Set(rows.slice(4).map(({ trouble }) => trouble))).toEqual(
    new Set([expect.stringContaining("the signer's limits over time leave 0 ledger units")]),
  )
  expect(refused()).toBe(0)
})

test('what is signed while the signer says what it leaves is taken off that', async () => {
  await planPayouts(2)
  const { world } = limited({ onePayout: ETHER, together: ETHER })
  const sign = () => Promise.reject(new Error('the signer does not answer'))
  const workWith = async (room: SigningWorld['signer']['room']) => {
    await workPayouts({ ...world, signer: { ...world.signer, sign, room } }, payingChain(stage))
    return (await outflows()).map(({ nonce }) => nonce)
  }
  expect(await workWith(world.signer.room)).toEqual([0, null])
  stage.advance(5_000)
  await lookAt(stage, 'BTC', 100)
  const late: SigningWorld['signer']['room'] = async (asset) => {
    const room = await world.signer.room(asset)
    await stage.db.query("UPDATE outflows SET state = 'signed' WHERE nonce = 0")
    return room
  }
  expect(await workWith(late)).toEqual([0, null])
})

test('a payout above what one may be takes no nonce either', async () => {
  await planPayouts(1)
  const { world } = limited({ onePayout: ETHER - 1n, together: null })
  await workPayouts(world, payingChain(stage))
  expect(await outflows()).toEqual([
    { state: 'planned', nonce: null, trouble: expect.stringContaining('one payout of ETH:ETH is at most') },
  ])
})

test('a signer that is away is asked again when it is to sign', async () => {
  await planPayouts(1)
  const { world } = limited({ onePayout: ETHER, together: null })
  const away = () => Promise.reject(new Error('the signer does not answer'))
  const signer = { ...world.signer, room: away, sign: away }
  await workPayouts({ ...world, signer }, payingChain(stage))
  expect(await outflows()).toEqual([
    { state: 'planned', nonce: 0, trouble: expect.stringContaining('does not answer') },
  ])
})
