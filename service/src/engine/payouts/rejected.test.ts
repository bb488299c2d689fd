import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { findOrder } from '../../db/orders.ts'
import { accept } from '../../domain/outcome.ts'
import type { EvmIntent } from '../../domain/payouts/intent.ts'
import { auditBooks } from '../books/audit_books.ts'
import { compareChain } from '../books/compare.ts'
import { planSweeps } from '../sweeps/plan.ts'
import { type BooksStage, lookAt, openBooksStage, RESERVE } from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { pricedOrder } from '../testing/priced_order.ts'
import { deepDeposit, openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { orphanOutflows } from './orphan.ts'
import { workPayouts } from './work.ts'

/**
 * What: a payout that the chain executed and rejected, deep, and whose block it has left, is not sent again. Its cost is turned round and
 * its nonce is filled, so that others do not wait for it; should it be mined again all the same, the books know.
 * How: a real PostgreSQL, orders moved by facts, a signer and a chain on paper whose blocks become other ones.
 */
let stage: BooksStage
const sent: string[] = []

beforeAll(async () => {
  stage = await openBooksStage('rejected')
})

beforeEach(async () => {
  sent.length = 0
  await stage.reset()
})

afterAll(() => stage?.stop())

const COST = 21_000n
const ETHER = 10n ** 18n
const FILLER = 'house-ETH-0:1'
const fillerTx = `tx-${FILLER}-1`

function signingWorld(): SigningWorld {
  return worldWithSigner(stage, {
    sign: async ({ payoutId, attempt }) => accept({ txHash: `tx-${payoutId}-${attempt}`, bytes: 'ff' }),
  })
}

/** What is said to be mined here is in no block. */
const NOWHERE = 1_000

function chainSaying(overrides: Partial<Chain> = {}): Chain {
  return payingChain(stage, {
    lookup: async (txHash) => {
      const status = await stage.chain('ETH').lookup(txHash)
      return status.where === 'block' && status.block.height === NOWHERE ? { where: 'absent' } : status
    },
    broadcast: async ({ txHash }) => {
      sent.push(txHash)
      return 'accepted'
    },
    ...overrides,
  })
}

async function work(chain: Chain, from: 'reserve' | 'deposits' = 'reserve'): Promise<void> {
  stage.advance(60_000)
  await lookAt(stage, 'BTC', 100)
  await workPayouts(signingWorld(), chain, from)
}

function states() {
  return stage.db.query('SELECT kind, state, is_block_lost AS lost FROM outflows ORDER BY kind DESC')
}

/** Units of each asset that the chain holds beyond the books, which find nothing wrong with themselves. */
async function differences(): Promise<readonly bigint[]> {
  const compared = await compareChain(stage.db, stage.chain('ETH'), { kind: 'all' })
  if (compared.kind === 'inconclusive') throw new Error(compared.why)
  expect((await auditBooks(stage.db)).problems).toEqual([])
  return compared.comparisons.map(({ difference }) => difference).filter((units) => units !== 0n)
}

async function loseBlock(height: number, hash: string, branch: number): Promise<void> {
  await orphanOutflows(
    signingWorld(),
    'ETH',
    { kind: 'named', blocks: [{ height, hash }] },
    branch,
    nobodyElse,
  )
}

/** In a block at this height the payout is executed, and moves `paid` and its cost. */
function mine(txHash: string, height: number, paid: bigint): void {
  const eth = stage.chain('ETH')
  eth.mined(txHash, height, COST, paid > 0n)
  eth.move(height, 'ETH:ETH', RESERVE, -paid - COST)
}

/** A payout with the first nonce of the reserve that was rejected at 100, deep, and whose block is lost. Answers its transaction. */
async function loseRejected(): Promise<string> {
  await openReserve(stage)
  const { id } = await pricedOrder(stage)
  await work(chainSaying())
  const txHash = `tx-${id}:1-1`
  mine(txHash, 100, 0n)
  await lookAt(stage, 'ETH', 112)
  await work(chainSaying())
  expect(await states()).toEqual([{ kind: 'payout', state: 'failed', lost: false }])
  expect((await findOrder(stage.db, id))?.state.status).toBe('EMERGENCY')
  expect(await differences()).toEqual([])
  const hash = (await stage.chain('ETH').blockHash(100)) ?? ''
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, COST)
  stage.chain('ETH').mined(txHash, NOWHERE, COST)
  sent.length = 0
  for (const _ of ['once', 'told twice']) await loseBlock(100, hash, 1)
  expect(await states()).toEqual([
    { kind: 'payout', state: 'failed', lost: true },
    { kind: 'filler', state: 'planned', lost: false },
  ])
  expect(await differences()).toEqual([])
  return txHash
}

/** The network has nothing but what is in a block. */
const nothingElse: Partial<Chain> = { minedNonce: async () => 1, broadcast: async () => 'refused' }

test('its nonce is filled, and it is not sent again', async () => {
  await loseRejected()
  for (const _ of ['drafted', 'sent']) await work(chainSaying())
  expect(sent).toEqual([fillerTx])
  mine(fillerTx, 113, 0n)
  stage.chain('ETH').mined(fillerTx, 113, COST)
  await lookAt(stage, 'ETH', 124)
  await work(chainSaying())
  expect(await states()).toEqual([
    { kind: 'payout', state: 'failed', lost: false },
    { kind: 'filler', state: 'confirmed', lost: false },
  ])
  expect(await differences()).toEqual([])
  expect(await stage.db.query('SELECT 1 FROM outflows WHERE mined_hash IS NOT NULL')).toHaveLength(1)
})

test('its filler is to outbid it, because a node may have put it back', async () => {
  const txHash = await loseRejected()
  const outbid: (EvmIntent | undefined)[] = []
  const plain = chainSaying()
  const chain = chainSaying({
    draft: (outflow, bid, funds) => {
      if (funds.model === 'account') outbid.push(funds.outbids)
      return plain.draft(outflow, bid, funds)
    },
  })
  await work(chain)
  expect(outbid.map((intent) => `tx-${intent?.payoutId}-${intent?.attempt}`)).toEqual([txHash])
})

test.each([
  { paid: 0n, level: 'info', message: 'an outflow that had failed was mined again: nobody was paid by it' },
  {
    paid: ETHER,
    level: 'error',
    message: 'an outflow that had failed was mined again and paid: it may have been paid twice',
  },
])(
  'mined again after all, it takes the place of its filler, and what it paid is not booked: $paid',
  async ({ paid, level, message }) => {
    const txHash = await loseRejected()
    for (const _ of ['drafted', 'sent']) await work(chainSaying())
    expect(sent).toEqual([fillerTx])
    mine(txHash, 113, paid)
    await lookAt(stage, 'ETH', 114)
    await work(chainSaying(nothingElse))
    expect(await differences(), 'not deep').toEqual([])
    await lookAt(stage, 'ETH', 124)
    await stage.db.query("UPDATE outflows SET due_height = NULL WHERE kind = 'filler'")
    await work(chainSaying(nothingElse))
    expect(await states()).toEqual([
      { kind: 'payout', state: 'failed', lost: false },
      { kind: 'filler', state: 'failed', lost: false },
    ])
    expect(stage.logged.at(-1)).toMatchObject({ level, message })
    expect(await differences()).toEqual(paid === 0n ? [] : [-paid])

    const hash = (await stage.chain('ETH').blockHash(113)) ?? ''
    await loseBlock(113, hash, 2)
    stage.chain('ETH').move(113, 'ETH:ETH', RESERVE, paid + COST)
    stage.chain('ETH').mined(txHash, NOWHERE, COST)
    expect(await states(), 'its block is lost once more').toEqual([
      { kind: 'payout', state: 'failed', lost: true },
      { kind: 'filler', state: 'signed', lost: false },
    ])
    expect(await differences()).toEqual([])
  },
)

test.each([
  { paid: 0n, level: 'info', message: 'an outflow that had failed was mined again: nobody was paid by it' },
  {
    paid: ETHER,
    level: 'error',
    message: 'an outflow that had failed was mined again and paid: it may have been paid twice',
  },
])(
  'its filler was final and loses its block, in which the payout is mined instead: $paid',
  async ({ paid, level, message }) => {
    const txHash = await loseRejected()
    for (const _ of ['drafted', 'sent']) await work(chainSaying())
    mine(fillerTx, 113, 0n)
    stage.chain('ETH').mined(fillerTx, 113, COST)
    await lookAt(stage, 'ETH', 124)
    await work(chainSaying())
    const hash = (await stage.chain('ETH').blockHash(113)) ?? ''
    stage.chain('ETH').move(113, 'ETH:ETH', RESERVE, COST)
    stage.chain('ETH').mined(fillerTx, NOWHERE, COST)
    for (const _ of ['once', 'told twice']) await loseBlock(113, hash, 2)
    expect(await states()).toEqual([
      { kind: 'payout', state: 'failed', lost: true },
      { kind: 'filler', state: 'orphaned', lost: false },
    ])
    expect(await differences()).toEqual([])

    mine(txHash, 125, paid)
    expect(await differences(), 'not deep').toEqual([])
    await lookAt(stage, 'ETH', 136)
    stage.advance(60_000)
    await work(chainSaying(nothingElse))
    expect(await states()).toEqual([
      { kind: 'payout', state: 'failed', lost: false },
      { kind: 'filler', state: 'failed', lost: false },
    ])
    expect(stage.logged.at(-1)).toMatchObject({ level, message })
    expect(await differences()).toEqual(paid === 0n ? [] : [-paid])
    expect(await stage.db.query('SELECT kind FROM outflows WHERE mined_hash IS NOT NULL')).toEqual([
      { kind: 'payout' },
    ])
    await loseBlock(125, (await stage.chain('ETH').blockHash(125)) ?? '', 3)
    expect(await states(), 'its block is lost once more').toEqual([
      { kind: 'payout', state: 'failed', lost: true },
      { kind: 'filler', state: 'signed', lost: false },
    ])

    stage.chain('ETH').move(125, 'ETH:ETH', RESERVE, paid + COST)
    stage.chain('ETH').mined(txHash, NOWHERE, COST)
    mine(fillerTx, 137, 0n)
    stage.chain('ETH').mined(fillerTx, 137, COST)
    await lookAt(stage, 'ETH', 148)
    await work(chainSaying(nothingElse))
    expect(await states(), 'its filler is final once more').toEqual([
      { kind: 'payout', state: 'failed', lost: false },
      { kind: 'filler', state: 'confirmed', lost: false },
    ])
    expect(await differences()).toEqual([])
  },
)

test('a sweep that had failed is sent again, as it goes from us to us, and may succeed then', async () => {
  await openReserve(stage)
  const { depositAddress } = (await deepDeposit(stage)).terms
  await planSweeps(stage.world, chainSaying())
  await work(chainSaying(), 'deposits')
  const [txHash = ''] = sent.splice(0)
  const eth = stage.chain('ETH')
  eth.mined(txHash, 101, COST, false)
  eth.move(101, 'ETH:ETH', depositAddress, -COST)
  await lookAt(stage, 'ETH', 112)
  await work(chainSaying(), 'deposits')
  expect(await states()).toEqual([{ kind: 'sweep', state: 'failed', lost: false }])
  expect(await differences()).toEqual([])
  const hash = (await eth.blockHash(101)) ?? ''
  eth.move(101, 'ETH:ETH', depositAddress, COST)
  eth.mined(txHash, NOWHERE, COST)
  await loseBlock(101, hash, 1)
  expect(await states()).toEqual([{ kind: 'sweep', state: 'orphaned', lost: false }])
  expect(await differences()).toEqual([])
  eth.mined(txHash, 113, COST)
  eth.move(113, 'ETH:ETH', depositAddress, -ETHER)
  eth.move(113, 'ETH:ETH', RESERVE, ETHER - COST)
  await lookAt(stage, 'ETH', 124)
  await work(chainSaying(), 'deposits')
  expect(await states()).toEqual([{ kind: 'sweep', state: 'confirmed', lost: false }])
  expect(await differences()).toEqual([])
})
