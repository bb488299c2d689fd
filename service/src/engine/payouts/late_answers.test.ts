import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, DraftRejection } from '../../chains/chain.ts'
import { storeSignedBytes } from '../../db/attempts.ts'
import { noteTrouble } from '../../db/chain_heads.ts'
import { claimOutflows } from '../../db/claim_outflows.ts'
import { takeNonce } from '../../db/nonces.ts'
import { findOrder } from '../../db/orders.ts'
import { endOutflow, findByNonce, planOutflow } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Order } from '../../domain/orders/order.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { type BooksStage, fundReserve, lookAt, openBooksStage } from '../testing/books_stage.ts'
import { PAPER_FEES, payingChain } from '../testing/paying_chain.ts'
import { pricedOrder } from '../testing/priced_order.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { workPayouts } from './work.ts'

/**
 * What: a node or a signer that answers late, or no more, changes nothing about a payout that is on its way.
 * How: a real PostgreSQL, two workers on one payout, a chain on paper whose answers the test gives.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('late_answers')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n
const CLAIM_MS = 6_000
const MINUTE_MS = 60_000

type Sign = SigningWorld['signer']['sign']

const signs: Sign = async ({ payoutId, attempt }) =>
  accept({ txHash: `tx-${payoutId}-${attempt}`, bytes: 'ff' })

function signingWorld(sign: Sign = signs): SigningWorld {
  return worldWithSigner(stage, { sign })
}

/** Its payout of one ether is planned. */
async function fundedOrder(): Promise<Order> {
  await fundReserve(stage, 'ETH:ETH', 1_000n * ETHER)
  return (await pricedOrder(stage)).order
}

async function statusOf({ terms }: Order): Promise<string | undefined> {
  return (await findOrder(stage.db, terms.id))?.state.status
}

test('"it cannot be paid" that comes when another worker has paid it changes nothing', async () => {
  const order = await fundedOrder()
  const asked = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  const slow = payingChain(stage, {
    bid: async () => {
      asked.resolve()
      await answered.promise
      return refuse({ code: 'destination', message: 'it reverted a moment ago' } as const)
    },
  })
  // It was said for long before.
  await stage.db.query('UPDATE outflows SET payee_refused_since_ms = 1')
  const late = workPayouts(signingWorld(), slow)
  await asked.promise
  stage.advance(CLAIM_MS + 1_000)
  await lookAt(stage, 'BTC', 100)
  await workPayouts(signingWorld(), payingChain(stage))
  expect(await statusOf(order)).toBe('WITHDRAW')

  answered.resolve()
  await late
  expect(await statusOf(order)).toBe('WITHDRAW')
})

test('"it cannot be paid" is a problem of the destination as long as nothing was written down', async () => {
  const order = await fundedOrder()
  for (const afterMs of [0, 15_000, 14_999, 2_000]) {
    expect(await statusOf(order)).toBe('EXCHANGE')
    await workLater(afterMs, REVERTS)
  }
  expect(await findOrder(stage.db, order.terms.id)).toMatchObject({
    state: { status: 'EMERGENCY', reasons: ['DESTINATION_PROBLEM'] },
  })
})

const REVERTS = { code: 'destination', message: 'it reverts' } as const

/** What the node says of a payment when so much time has passed; null: it can be made. */
async function workLater(afterMs: number, rejection: DraftRejection | null): Promise<void> {
  stage.advance(afterMs)
  await lookAt(stage, 'BTC', 100)
  const refusing = rejection !== null && { bid: async () => refuse(rejection) }
  await workPayouts(signingWorld(), payingChain(stage, refusing || {}))
}

test('"it cannot be paid" that another node takes back is no problem of anybody', async () => {
  const order = await fundedOrder()
  await workLater(0, REVERTS)
  expect(await stage.db.query('SELECT trouble FROM outflows')).toEqual([{ trouble: 'it reverts' }])
  await workLater(3_600_000, null)
  expect(await statusOf(order)).toBe('WITHDRAW')
  expect(await stage.db.query('SELECT payee_refused_since_ms AS since FROM outflows')).toEqual([
    { since: null },
  ])
})

test('how long "it cannot be paid" is said counts from the first time, and anew after any other answer', async () => {
  const order = await fundedOrder()
  await workLater(0, { code: 'funds', message: 'too little' })
  for (const rejection of [REVERTS, { code: 'network', message: 'no answer' }, REVERTS] as const) {
    await workLater(60_000, rejection)
    expect(await statusOf(order)).toBe('EXCHANGE')
  }
  await workLater(30_000, REVERTS)
  expect(await statusOf(order)).toBe('EMERGENCY')
})

test('nothing is written down on the word of a node that is in trouble: it may be of another network', async () => {
  const order = await fundedOrder()
  await noteTrouble(stage.db, 'ETH', 'the Ethereum node is of chain 56', stage.world.clock.nowMs())
  await workPayouts(signingWorld(), payingChain(stage, { minedNonce: async () => 5_000 }))
  expect(await stage.db.query('SELECT 1 AS one FROM attempts')).toEqual([])
  expect(await stage.db.query('SELECT 1 AS one FROM account_nonces WHERE next_nonce > 5000')).toEqual([])
  await lookAt(stage, 'ETH', 101)
  await stage.db.query("UPDATE chain_heads SET trouble = NULL WHERE chain = 'ETH'")
  stage.advance(CLAIM_MS)
  await lookAt(stage, 'BTC', 100)
  await workPayouts(signingWorld(), payingChain(stage))
  expect(await statusOf(order)).toBe('WITHDRAW')
})

test('what a payout that ends meanwhile has paid is not there for the next one', async () => {
  const first = await fundedOrder()
  await workPayouts(signingWorld(), payingChain(stage))
  const second = await fundedOrder()
  const block = { height: 100, hash: 'the block that paid it' }
  const cost = amountOf('ETH:ETH', 1n)
  const late = payingChain(stage, {
    balance: async () => {
      await endOutflow(stage.db, `${first.terms.id}:1`, ['broadcast'], 'confirmed', { block, cost })
      return ETHER
    },
  })
  await workPayouts(signingWorld(), late)
  expect(await statusOf(second)).toBe('EXCHANGE')
  const [waiting] = await stage.db.query("SELECT trouble FROM outflows WHERE state = 'planned'")
  expect(waiting?.trouble).toContain(`of which ${ETHER} are leaving`)
})

test('what a payout has paid is not there for the next one on the word of a node that is behind', async () => {
  const first = await fundedOrder()
  await workPayouts(signingWorld(), payingChain(stage))
  const [block, cost] = [{ height: 101, hash: 'the block that paid it' }, amountOf('ETH:ETH', 1n)]
  await endOutflow(stage.db, `${first.terms.id}:1`, ['broadcast'], 'confirmed', { block, cost })
  const second = await fundedOrder()
  // Its block is final, and the node that is asked what the reserve holds does not have it yet, or has it and more came meanwhile.
  const chain = payingChain(stage, { balance: async () => ETHER, balanceLagBlocks: 10 })
  for (const height of [112, 121]) {
    await lookAt(stage, 'ETH', height)
    await workPayouts(signingWorld(), chain)
    expect(await statusOf(second)).toBe('EXCHANGE')
    const waiting = await stage.db.query('SELECT payout_id, trouble FROM outflows WHERE state = $1', [
      'planned',
    ])
    expect(waiting).toMatchObject([{ trouble: expect.stringContaining(`of which ${ETHER} are leaving`) }])
    stage.advance(CLAIM_MS)
    await lookAt(stage, 'BTC', 100)
  }
  await lookAt(stage, 'ETH', 122)
  await workPayouts(signingWorld(), chain)
  expect(await statusOf(second)).toBe('WITHDRAW')
})

test('a node that takes longer for an answer than a claim lasts keeps no two workers from paying', async () => {
  const order = await fundedOrder()
  const underWay: { readonly answer: () => void; readonly ended: Promise<unknown> }[] = []
  const begin = () => {
    const asked = Promise.withResolvers<void>()
    const answered = Promise.withResolvers<void>()
    const slow = payingChain(stage, {
      bid: async () => {
        asked.resolve()
        await answered.promise
        return accept({ family: 'evm', ...PAPER_FEES } as const)
      },
    })
    const ended = workPayouts(signingWorld(), slow)
    underWay.push({ answer: answered.resolve, ended })
    return Promise.race([asked.promise, ended])
  }
  await begin()
  for (let turn = 0; turn < 4; turn += 1) {
    stage.advance(CLAIM_MS + 1_000)
    await lookAt(stage, 'BTC', 100)
    await begin()
    const first = underWay.shift()
    first?.answer()
    await first?.ended
  }
  const status = await statusOf(order)
  for (const { answer } of underWay) answer()
  await Promise.all(underWay.map(({ ended }) => ended))
  expect(status, 'while there is always somebody who waits for an answer').toBe('WITHDRAW')
  expect(await stage.db.query('SELECT attempt, answer FROM attempts')).toEqual([
    { attempt: 1, answer: 'accepted' },
  ])
})

const unable: readonly [string, Sign][] = [
  ['is refused', async () => refuse({ code: 'limit_exceeded', message: 'it is too much' } as const)],
  ['finds no signer', () => Promise.reject(new Error('nobody answers'))],
]

test.each(unable)('a higher fee that %s leaves the payment before it to its end', async (_, unsigned) => {
  const order = await fundedOrder()
  const first = `tx-${order.terms.id}:1-1`
  const signer = signingWorld((intent, authority) =>
    intent.attempt === 1 ? signs(intent, authority) : unsigned(intent, authority),
  )
  const sent: string[] = []
  const waiting = payingChain(stage, {
    lookup: async () => ({ where: 'mempool' }),
    broadcast: async ({ txHash }) => {
      sent.push(txHash)
      return 'accepted'
    },
  })
  await workPayouts(signer, waiting)
  stage.advance(60 * MINUTE_MS)
  for (let look = 0; look < 2; look += 1) await workPayouts(signer, waiting)
  expect(await stage.db.query('SELECT attempt, answer FROM attempts ORDER BY attempt')).toEqual([
    { attempt: 1, answer: 'accepted' },
    { attempt: 2, answer: null },
  ])

  stage.advance(MINUTE_MS)
  await lookAt(stage, 'BTC', 100)
  await workPayouts(signer, { ...waiting, lookup: async () => ({ where: 'absent' }) })
  expect(sent, 'what the network forgot is sent again').toEqual([first, first])

  stage.chain('ETH').mined(first, 101, 42_000n)
  stage.advance(MINUTE_MS)
  await lookAt(stage, 'ETH', 120)
  await workPayouts(signer, payingChain(stage))
  expect(await statusOf(order)).toBe('DONE')
})

test('a node that is slow at each question keeps no payout from its first transaction, however many workers there are', async () => {
  await fundedOrder()
  const othersGot: unknown[] = []
  // Each answer alone comes in time for the claim, all of them together do not; another worker asks for work all the while.
  const slowly =
    <Args extends unknown[], Answer>(ask: (...args: Args) => Promise<Answer>) =>
    async (...args: Args): Promise<Answer> => {
      stage.advance(2_500)
      await lookAt(stage, 'BTC', 100)
      const time = { nowMs: stage.world.clock.nowMs(), wallMs: stage.world.clock.wallMs(), claimMs: CLAIM_MS }
      othersGot.push(...(await claimOutflows(stage.db, 'ETH', 'reserve', time, 20)))
      return ask(...args)
    }
  const { bid, balance, minedNonce } = payingChain(stage)
  assert(minedNonce !== undefined, 'Ethereum has nonces')
  const slow = payingChain(stage, {
    bid: slowly(bid),
    balance: slowly(balance),
    minedNonce: slowly(minedNonce),
  })
  await workPayouts(signingWorld(), slow)
  expect(othersGot).toEqual([])
  expect(await stage.db.query('SELECT attempt, answer FROM attempts')).toEqual([
    { attempt: 1, answer: 'accepted' },
  ])
})

test('of what was claimed at once nothing is begun that another worker took when the clock was set back', async () => {
  stage.advance(60 * MINUTE_MS)
  for (let planned = 0; planned < 2; planned += 1) await fundedOrder()
  const asked: string[] = []
  const chain = payingChain(stage, {
    bid: async ({ payoutId }) => {
      asked.push(payoutId)
      stage.advance(-60 * MINUTE_MS)
      await lookAt(stage, 'BTC', 100)
      const time = { nowMs: stage.world.clock.nowMs(), wallMs: stage.world.clock.wallMs(), claimMs: CLAIM_MS }
      await claimOutflows(stage.db, 'ETH', 'reserve', time, 20)
      return accept({ family: 'evm', ...PAPER_FEES } as const)
    },
  })
  const world = signingWorld()
  await workPayouts({ ...world, policy: { ...world.policy, atOnce: 1 } }, chain)
  expect(asked).toHaveLength(1)
})

test('a worker whose payout another one has drafted and had signed meanwhile calls nobody', async () => {
  await fundedOrder()
  const [chain, world] = [payingChain(stage), signingWorld()]
  let signed = 0
  const takenOver: SigningWorld = {
    ...world,
    signer: {
      ...world.signer,
      lastSigned: async () => signed,
      lastOutflow: async () => {
        if (signed > 0) return signed
        stage.advance(CLAIM_MS + 1)
        await lookAt(stage, 'BTC', 100)
        await workPayouts(world, chain)
        signed = 1
        return signed
      },
    },
  }
  await workPayouts(takenOver, chain)
  expect(signed).toBe(1)
  expect(await stage.db.query('SELECT state, trouble FROM outflows')).toEqual([
    { state: 'broadcast', trouble: null },
  ])
  expect(stage.logged.filter(({ level }) => level === 'error')).toEqual([])
})

test('a payout that is in a block is done, though its node never says whether it has taken it', async () => {
  const order = await fundedOrder()
  const paid = `tx-${order.terms.id}:1-1`
  const sent: string[] = []
  const vague = payingChain(stage, {
    broadcast: async ({ txHash }) => {
      sent.push(txHash)
      return 'unknown'
    },
  })
  const look = async () => {
    stage.advance(MINUTE_MS)
    await lookAt(stage, 'BTC', 100)
    await workPayouts(signingWorld(), vague)
  }
  for (let again = 0; again < 2; again += 1) await look()
  expect(sent, 'what nobody has is sent again, the same').toEqual([paid, paid])
  expect(await stage.db.query('SELECT attempt, answer FROM attempts')).toEqual([
    { attempt: 1, answer: 'unknown' },
  ])

  stage.chain('ETH').mined(paid, 101, 42_000n)
  await lookAt(stage, 'ETH', 120)
  await look()
  expect(await statusOf(order)).toBe('DONE')
  expect(sent).toHaveLength(2)
})

/** It tells of no transaction, and takes what is sent, or not; while it is away it answers nothing. */
function forgetfulNode(bid: Chain['bid'] = payingChain(stage).bid) {
  const node = { isAway: false, takes: true, sent: [] as string[] }
  const chain = payingChain(stage, {
    bid,
    broadcast: async ({ txHash }) => {
      if (node.isAway) return 'unknown'
      node.sent.push(txHash)
      return node.takes ? 'accepted' : 'refused'
    },
    lookup: async () => ({ where: 'absent' }),
  })
  return { node, chain }
}

async function workFor(minutes: number, chain: Chain, sign: Sign): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    await lookAt(stage, 'BTC', 100)
    await workPayouts(signingWorld(sign), chain)
    stage.advance(MINUTE_MS)
  }
}

const attemptAnswers = () =>
  stage.db.query("SELECT attempt, answer FROM attempts WHERE payout_id LIKE 'CB%' ORDER BY attempt")

test('what its network takes once more, after it had forgotten and refused it, is with the network', async () => {
  await fundedOrder()
  const { node, chain } = forgetfulNode()
  await workFor(1, chain, signs)
  node.takes = false
  await workFor(1, chain, signs)
  expect(await attemptAnswers()).toEqual([{ attempt: 1, answer: 'refused' }])
  node.takes = true
  await workFor(1, chain, signs)
  expect(await attemptAnswers()).toEqual([{ attempt: 1, answer: 'accepted' }])
})

test.each([
  ['refuses', { takes: false }],
  ['says nothing of', { isAway: true }],
])(
  'of a payout that its network has forgotten, and %s, no earlier attempt keeps it from being given up',
  async (_, then) => {
    await fundedOrder()
    const { node, chain } = forgetfulNode()
    const has: Chain = { ...chain, lookup: async () => ({ where: 'mempool' }) }
    await workFor(5, has, signs)
    expect(await attemptAnswers()).toEqual([
      { attempt: 1, answer: 'accepted' },
      { attempt: 2, answer: 'accepted' },
    ])
    Object.assign(node, then)
    await workFor(33, chain, signs)
    const answers = (await attemptAnswers()).map(({ answer }) => answer)
    expect(answers).not.toContain('accepted')
    expect(await stage.db.query("SELECT state FROM outflows WHERE kind = 'filler'")).toHaveLength(1)
  },
)

test('the nonce of a sweep is of another account: a filler of the reserve with the same one stands in for nothing', async () => {
  const nowMs = stage.world.clock.nowMs()
  const gas = {
    kind: 'sweep',
    asset: 'ETH:ETH',
    units: 1n,
    address: 'deposit-7',
    tag: null,
    nonce: 5,
  } as const
  const from = { key: { purpose: 'deposit', index: 7 }, address: 'deposit-7' } as const
  await planOutflow(stage.db, { ...gas, payoutId: 'sweep-ETH-7-2:1', address: 'reserve-0', from }, nowMs)
  expect(await findByNonce(stage.db, 'ETH', 5)).toBeNull()
  await planOutflow(stage.db, { ...gas, payoutId: 'sweep-ETH-7-1:1' }, nowMs)
  expect((await findByNonce(stage.db, 'ETH', 5))?.payoutId).toBe('sweep-ETH-7-1:1')
})

test('a chain that is ahead of a database that was restored says which nonce is next, and one that is behind does not', async () => {
  const next = (mined: number) => takeNonce(stage.db, 'ETH', 'reserve-0', mined)
  expect([await next(0), await next(5), await next(2), await next(2)]).toEqual([0, 5, 6, 7])
})

test('bytes that are stored stay what they are', async () => {
  const { terms } = await fundedOrder()
  await workPayouts(signingWorld(), payingChain(stage))
  const stored = () => stage.db.query('SELECT tx_hash, bytes FROM attempts')
  const before = await stored()
  await storeSignedBytes(stage.db, `${terms.id}:1`, 1, { txHash: 'another', bytes: '00' })
  expect(await stored()).toEqual(before)
})

test('a payout that is sent after all when a node is back is not replaced by what was planned to fill its nonce', async () => {
  const order = await fundedOrder()
  const paying = payingChain(stage)
  const { node, chain } = forgetfulNode(async (outflow) =>
    node.isAway ? refuse({ code: 'network', message: 'nobody answers' } as const) : paying.bid(outflow),
  )
  // It goes when the payout has been drafted.
  const sign: Sign = async (intent, authority) => {
    node.isAway ||= node.sent.length === 0 && authority.kind === 'payout'
    return signs(intent, authority)
  }
  const work = (minutes: number) => workFor(minutes, chain, sign)
  const fillers = () => stage.db.query("SELECT state FROM outflows WHERE kind = 'filler'")
  await work(33)
  expect(await fillers()).toEqual([{ state: 'planned' }])
  expect(node.sent).toEqual([])

  node.isAway = false
  await work(1)
  expect(node.sent).toEqual([`tx-${order.terms.id}:1-1`])
  await work(1)
  const attempts = [1, 2].map((attempt) => `tx-${order.terms.id}:1-${attempt}`)
  expect(new Set(node.sent), 'sent once more, and raised').toEqual(new Set(attempts))
  expect(await fillers(), 'it was not signed').not.toContainEqual({
    state: expect.stringMatching(/signed|broadcast/),
  })
  expect(await statusOf(order)).toBe('WITHDRAW')

  node.takes = false
  await work(33)
  expect(node.sent, 'forgotten, and refused for long').toContain('tx-house-ETH-0:1-1')
})

test('a filler that was drafted before the payout was sent after all leaves it half an hour when the network refuses it', async () => {
  const order = await fundedOrder()
  const { node, chain } = forgetfulNode()
  node.isAway = true
  let signsFillers = false
  const sign: Sign = async (intent, authority) => {
    if (authority.kind !== 'payout' && !signsFillers) throw new Error('nobody answers')
    return signs(intent, authority)
  }
  const work = (minutes: number) => workFor(minutes, chain, sign)
  await work(35)
  expect(
    await stage.db.query(
      "SELECT a.answer, a.bytes FROM outflows JOIN attempts a USING (bucket, payout_id) WHERE kind = 'filler'",
    ),
    'it is drafted and not signed',
  ).toEqual([{ answer: null, bytes: null }])

  node.isAway = false
  await work(1)
  signsFillers = true
  await work(1)
  expect(await statusOf(order)).toBe('WITHDRAW')
  node.takes = false
  await work(5)
  expect(new Set(node.sent).size, 'refused for a moment, and raised').toBeGreaterThan(1)
  expect(node.sent).not.toContain('tx-house-ETH-0:1-1')
  await work(33)
  expect(node.sent, 'refused for long').toContain('tx-house-ETH-0:1-1')
})
