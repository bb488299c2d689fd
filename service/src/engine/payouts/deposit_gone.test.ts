import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { accept } from '../../domain/outcome.ts'
import { MINUTE_MS } from '../../domain/time.ts'
import { type BooksStage, lookAt, openBooksStage, tell } from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { type PaidOrder, pricedOrder } from '../testing/priced_order.ts'
import { openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { workPayouts } from './work.ts'

/**
 * What: what was signed and no network has said that it has, is sent, sent again or raised only while its deposit is there; and once
 * that is gone it is given up, so that nobody waits behind its nonce.
 * How: a real PostgreSQL, orders moved by facts, a chain on paper whose node refuses or is away, and a signer with a record.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('deposit_gone')
})

beforeEach(async () => {
  await stage.reset()
  await openReserve(stage)
})

afterAll(() => stage?.stop())

/** Its deposit leaves the chain for good. */
async function lose({ id, key }: PaidOrder): Promise<void> {
  await tell(stage, id, `${key}:unmined`, { kind: 'DepositUnmined', key })
  await tell(stage, id, `${key}:vanished`, { kind: 'DepositVanished', key })
}

async function pass(minutes: number): Promise<void> {
  stage.advance(minutes * MINUTE_MS)
  await lookAt(stage, 'BTC', 100)
}

/** Works minute after minute. */
async function live(world: SigningWorld, chain: Chain, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    await pass(1)
    await workPayouts(world, chain)
  }
}

type Row = { readonly kind: string; readonly state: string; readonly nonce: bigint | number }

async function kindsByNonce() {
  return (await outflows()).map(({ kind, nonce }) => [kind, Number(nonce)])
}

function outflows() {
  return stage.db.query<Row>('SELECT kind, state, nonce FROM outflows ORDER BY planned_at_ms, payout_id')
}

/** It knows what it has signed; with `losesFirst` its first answer never arrives. */
function recordingSigner({ losesFirst }: { readonly losesFirst: boolean }) {
  const signed = new Map<string, number>()
  let isLost = !losesFirst
  const world = worldWithSigner(stage, {
    lastSigned: async (payoutId) => signed.get(payoutId) ?? 0,
    lastOutflow: async (orderId) =>
      [...signed.keys()].some((name) => name.startsWith(`${orderId}:`)) ? 1 : 0,
    sign: async ({ payoutId, attempt }) => {
      signed.set(payoutId, attempt)
      if (!isLost) {
        isLost = true
        throw new Error('no answer within 30000 ms')
      }
      return accept({ txHash: `tx-${payoutId}-${attempt}`, bytes: 'ff' })
    },
  })
  return { signed, world }
}

/** Its node has nothing of ours, and says to what is sent what `answer` says; what it took is in `taken`. */
function refusingChain(answer: (txHash: string) => 'accepted' | 'refused' | 'unknown') {
  const taken: string[] = []
  const chain: Chain = payingChain(stage, {
    lookup: async (txHash) => ({ where: taken.includes(txHash) ? 'mempool' : 'absent' }),
    broadcast: async ({ txHash }) => {
      const said = answer(txHash)
      if (said === 'accepted') taken.push(txHash)
      return said
    },
  })
  return { chain, taken }
}

test('bytes that the network refused are not sent again once the deposit is gone', async () => {
  const order = await pricedOrder(stage)
  const { world } = recordingSigner({ losesFirst: false })
  let says: 'refused' | 'accepted' = 'refused'
  const { chain, taken } = refusingChain(() => says)
  await workPayouts(world, chain)
  await lose(order)
  await pass(1)
  says = 'accepted'
  await workPayouts(world, chain)
  expect(taken).toEqual([])
})

test('nor is a higher fee signed for them', async () => {
  const order = await pricedOrder(stage)
  const { world, signed } = recordingSigner({ losesFirst: false })
  const first = `tx-${order.id}:1-1`
  const { chain, taken } = refusingChain((txHash) => (txHash === first ? 'refused' : 'accepted'))
  await workPayouts(world, chain)
  await lose(order)
  await live(world, chain, 6)
  expect([taken, signed.get(`${order.id}:1`)]).toEqual([[], 1])
})

test.each([
  ['says that it takes and never has', 'accepted'],
  ['took once, has not and says nothing of', 'unknown'],
  ['took once, has not and refuses', 'refused'],
] as const)(
  'what a node %s gets no higher fee once its deposit is gone, and its nonce is filled',
  async (_, later) => {
    const order = await pricedOrder(stage)
    const { world, signed } = recordingSigner({ losesFirst: false })
    let says: 'accepted' | 'unknown' | 'refused' = 'accepted'
    const { chain } = refusingChain(() => says)
    const forgetful: Chain = { ...chain, lookup: async () => ({ where: 'absent' }) }
    await workPayouts(world, forgetful)
    await lose(order)
    says = later
    await live(world, forgetful, 40)
    expect(signed.get(`${order.id}:1`)).toBe(1)
    expect(await kindsByNonce()).toEqual([
      ['payout', 0],
      ['filler', 0],
    ])
  },
)

test('what was drafted to raise it is not signed once nobody has it and its deposit is gone, and its nonce is filled', async () => {
  const order = await pricedOrder(stage)
  const { world, signed } = recordingSigner({ losesFirst: false })
  const { chain } = refusingChain(() => 'accepted')
  const forgetful: Chain = { ...chain, lookup: async () => ({ where: 'absent' }) }
  await workPayouts(world, forgetful)
  const away = worldWithSigner(stage, { sign: () => Promise.reject(new Error('nobody answers')) })
  await live(away, forgetful, 5)
  expect(await stage.db.query('SELECT attempt, answer FROM attempts ORDER BY attempt')).toEqual([
    { attempt: 1, answer: 'accepted' },
    { attempt: 2, answer: null },
  ])
  await lose(order)
  await live(world, forgetful, 40)
  expect(signed.get(`${order.id}:1`)).toBe(1)
  expect(await kindsByNonce()).toEqual([
    ['payout', 0],
    ['filler', 0],
  ])
})

test('what was drafted to raise it is signed where the network has what came before, though its deposit is gone', async () => {
  const order = await pricedOrder(stage)
  const { world, signed } = recordingSigner({ losesFirst: false })
  const { chain } = refusingChain(() => 'accepted')
  await workPayouts(world, chain)
  const away = worldWithSigner(stage, { sign: () => Promise.reject(new Error('nobody answers')) })
  await pass(5)
  await workPayouts(away, chain)
  await lose(order)
  await pass(1)
  await workPayouts(world, chain)
  expect(signed.get(`${order.id}:1`)).toBe(2)
})

test('what the network has is raised though its deposit is gone', async () => {
  const order = await pricedOrder(stage)
  const { world, signed } = recordingSigner({ losesFirst: false })
  const { chain } = refusingChain(() => 'accepted')
  await workPayouts(world, chain)
  await lose(order)
  await pass(5)
  await workPayouts(world, chain)
  expect(signed.get(`${order.id}:1`)).toBe(2)
})

test('bytes that were stored before a process died are not sent hours later, but followed where they were sent', async () => {
  for (const wasSent of [false, true]) {
    const order = await pricedOrder(stage)
    const { world } = recordingSigner({ losesFirst: false })
    const own = `tx-${order.id}:1-1`
    const { chain, taken } = refusingChain(() => 'accepted')
    const dying: Chain = {
      ...chain,
      broadcast: async (tx) => {
        if (wasSent) await chain.broadcast(tx)
        throw new Error('the process died')
      },
    }
    await workPayouts(world, dying)
    await lose(order)
    await pass(1)
    await workPayouts(world, chain)
    expect(taken).toEqual(wasSent ? [own] : [])
    const { status } = (
      await stage.db.query<{ status: string }>('SELECT status FROM orders WHERE order_id = $1', [order.id])
    )[0] ?? { status: '' }
    expect(status).toBe(wasSent ? 'WITHDRAW' : 'EXCHANGE')
  }
})

test('what was sent into a line that died is not sent again hours later', async () => {
  const order = await pricedOrder(stage)
  const { world } = recordingSigner({ losesFirst: false })
  let isUp = true
  const { chain, taken } = refusingChain(() =>
    isUp && taken.length === 0 && hasDied ? 'accepted' : 'unknown',
  )
  let hasDied = false
  const away = async () => {
    throw new Error('no answer')
  }
  const line: Chain = {
    ...chain,
    bid: (outflow) => (isUp ? chain.bid(outflow) : away()),
    lookup: (txHash) => (isUp ? chain.lookup(txHash) : away()),
  }
  await workPayouts(world, line)
  hasDied = true
  isUp = false
  await lose(order)
  for (let minute = 0; minute < 120; minute += 10) {
    await pass(10)
    await workPayouts(world, line)
  }
  isUp = true
  await pass(1)
  await workPayouts(world, line)
  expect(taken).not.toContain(`tx-${order.id}:1-1`)
})

test('an attempt that is mined all the same is followed while the deposit is gone and the signer is away', async () => {
  const order = await pricedOrder(stage)
  const { world } = recordingSigner({ losesFirst: false })
  const { chain } = refusingChain(() => 'refused')
  await workPayouts(world, chain)
  await pass(5)
  await workPayouts(world, chain)
  expect(await stage.db.query('SELECT attempt, answer FROM attempts ORDER BY attempt')).toEqual([
    { attempt: 1, answer: 'refused' },
    { attempt: 2, answer: null },
  ])
  await lose(order)
  const away = { lastSigned: () => Promise.reject(new Error('nobody answers')) }
  const worldAlone = worldWithSigner(stage, away)
  await pass(1)
  await workPayouts(worldAlone, chain)
  expect(await stage.db.query('SELECT state FROM outflows')).toEqual([{ state: 'signed' }])
  stage.chain('ETH').mined(`tx-${order.id}:1-1`, 101, 42_000n)
  await pass(1)
  await lookAt(stage, 'ETH', 120)
  await workPayouts(worldAlone, payingChain(stage))
  expect(await stage.db.query('SELECT state FROM outflows')).toEqual([{ state: 'confirmed' }])
})

test('a signature whose answer was lost keeps nobody waiting: its nonce is filled, and its bytes never leave', async () => {
  const first = await pricedOrder(stage)
  const { world, signed } = recordingSigner({ losesFirst: true })
  const { chain, taken } = refusingChain(() => 'accepted')
  await workPayouts(world, chain)
  expect(signed.get(`${first.id}:1`)).toBe(1)
  await lose(first)
  await pricedOrder(stage)
  for (let minute = 0; minute < 60; minute += 5) {
    await pass(5)
    await workPayouts(world, chain)
  }
  expect(await kindsByNonce()).toEqual([
    ['payout', 0],
    ['payout', 1],
    ['filler', 0],
  ])
  expect(taken).not.toContain(`tx-${first.id}:1-1`)
})
