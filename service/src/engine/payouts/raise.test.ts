import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { insertAddresses } from '../../db/addresses.ts'
import { planOutflow } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { HOUR_MS, MINUTE_MS } from '../../domain/time.ts'
import { type BooksStage, fundReserve, lookAt, openBooksStage, RESERVE } from '../testing/books_stage.ts'
import { PAPER_FEES, payingChain } from '../testing/paying_chain.ts'
import { pricedOrder } from '../testing/priced_order.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import type { SigningWorld } from '../world.ts'
import { workPayouts } from './work.ts'

/**
 * What: a sweep that was drafted before a reorganisation took a part of its deposits moves what is left of them; one of coin leaves
 * only for what one that is planned may cost; and whatever becomes of who is paid, a payout that others wait behind goes on, unless it
 * would arrive for nobody. What a node only says it takes, or does not speak of, is raised; what waits behind another is where its price
 * is too low for any block.
 * How: a real PostgreSQL, a chain on paper whose node refuses what is not covered, and a signer that asks no questions.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('raise')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n
const DEPOSIT = 'deposit-7'
const SWEEP = 'sweep-ETH-7-1:1'

/** Fees are nothing: all that an address holds is moved, and less by the next attempt where there is less. */
function connect(sent: bigint[]): Chain {
  const paper = stage.chain('ETH')
  return {
    ...paper,
    minedNonce: async () => 0,
    bid: async () =>
      accept({ family: 'evm', gasLimit: 0n, maxFeePerGasWei: 0n, maxPriorityFeePerGasWei: 0n }),
    draft: ({ payoutId, address: to }, bid, funds) => {
      assert(bid.family === 'evm' && funds.model === 'account', 'it is of Ethereum')
      const { from, nonce, heldWei = 0n } = funds
      const { gasLimit, maxFeePerGasWei, maxPriorityFeePerGasWei } = bid
      return accept({
        ...{ family: 'evm', chain: 'ETH', evmChainId: 1, payoutId, attempt: 1, from, nonce, to, token: null },
        ...{ units: heldWei, gasLimit, maxFeePerGasWei, maxPriorityFeePerGasWei },
      })
    },
    raise: (previous, _bid, held) => {
      assert(previous.family === 'evm', 'it is of Ethereum')
      const units = held !== undefined && held < previous.units ? held : previous.units
      return accept({ ...previous, attempt: previous.attempt + 1, units })
    },
    broadcast: async ({ txHash }) => {
      const units = BigInt(txHash.split('#')[1] ?? 0)
      sent.push(units)
      return units > (await paper.balance('ETH:ETH', [DEPOSIT], 100)) ? 'refused' : 'accepted'
    },
  }
}

function signingWorld(beforeSigning: () => void): SigningWorld {
  return worldWithSigner(stage, {
    sign: async (intent) => {
      assert(intent.family === 'evm', 'it is of Ethereum')
      beforeSigning()
      return accept({ txHash: `0x${intent.attempt}#${intent.units}`, bytes: '00' })
    },
  })
}

test('a sweep of more than a reorganisation has left moves what is left', async () => {
  await insertAddresses(stage.db, 'evm', 'reserve', 0, [RESERVE])
  await planOutflow(
    stage.db,
    {
      ...{ payoutId: SWEEP, kind: 'sweep', asset: 'ETH:ETH', units: 5n * ETHER, address: RESERVE, tag: null },
      from: { key: { purpose: 'deposit', index: 7 }, address: DEPOSIT },
    },
    stage.world.clock.nowMs(),
  )
  const eth = stage.chain('ETH')
  await lookAt(stage, 'ETH', 100)
  eth.move(40, 'ETH:ETH', DEPOSIT, 3n * ETHER)
  eth.move(50, 'ETH:ETH', DEPOSIT, 2n * ETHER)
  const sent: bigint[] = []
  const chain = connect(sent)
  const world = signingWorld(() => {
    if (sent.length === 0) eth.move(50, 'ETH:ETH', DEPOSIT, -2n * ETHER)
  })
  for (let step = 0; step < 3; step += 1) {
    await workPayouts(world, chain, 'deposits')
    stage.advance(5 * MINUTE_MS)
    await stage.db.query('UPDATE outflows SET claimed_until_wall_ms = 0')
  }
  expect(sent[0]).toBe(5n * ETHER)
  expect(sent.at(-1)).toBe(3n * ETHER)
  const [outflow] = await stage.db.query<{ state: string }>('SELECT state FROM outflows')
  expect(outflow).toEqual({ state: 'broadcast' })
})

/** Of just so much coin that it is worth what it costs on paper. */
async function planWorthyOne(): Promise<void> {
  await insertAddresses(stage.db, 'evm', 'reserve', 0, [RESERVE])
  const units = stage.world.policy.sweepCostMultiple * PAPER_FEES.gasLimit * PAPER_FEES.maxFeePerGasWei
  const from = { key: { purpose: 'deposit', index: 7 }, address: DEPOSIT } as const
  const sweep = { payoutId: SWEEP, kind: 'sweep', asset: 'ETH:ETH', units, from } as const
  await planOutflow(stage.db, { ...sweep, address: RESERVE, tag: null }, stage.world.clock.nowMs())
  stage.chain('ETH').move(40, 'ETH:ETH', DEPOSIT, units)
}

test.each([
  ['is drafted while it is worth it', 0n, 'broadcast', 1],
  ['has become too dear before it was drafted is planned anew', 1n, 'cancelled', 0],
] as const)('a sweep of coin that %s', async (_, dearerByWei, state, drafts) => {
  await planWorthyOne()
  const maxFeePerGasWei = PAPER_FEES.maxFeePerGasWei + dearerByWei
  const chain = payingChain(stage, {
    bid: async () => accept({ family: 'evm', ...PAPER_FEES, maxFeePerGasWei }),
  })
  await workPayouts(
    signingWorld(() => {}),
    chain,
    'deposits',
  )
  expect(await stage.db.query('SELECT state FROM outflows')).toEqual([{ state }])
  expect(await stage.db.query('SELECT 1 FROM attempts')).toHaveLength(drafts)
})

/** A payout that nobody mines: answers how many attempts it has when so much time has passed and it was worked on. */
async function stuckPayout(): Promise<(passedMs: number) => Promise<number>> {
  await fundReserve(stage, 'ETH:ETH', 1_000n * ETHER)
  await pricedOrder(stage)
  const chain = payingChain(stage, { lookup: async () => ({ where: 'mempool' }) })
  return async (passedMs) => {
    stage.advance(passedMs)
    await lookAt(stage, 'BTC', 100)
    await workPayouts(
      signingWorld(() => {}),
      chain,
    )
    return (await stage.db.query('SELECT attempt FROM attempts')).length
  }
}

test('a payout that was sent before the clock was set back gets its higher fee, once', async () => {
  const attemptsAfter = await stuckPayout()
  expect(await attemptsAfter(8 * HOUR_MS)).toBe(1)
  expect(await attemptsAfter(-8 * HOUR_MS)).toBe(2)
  expect(await attemptsAfter(MINUTE_MS), 'it was sent by a clock that is right').toBe(2)
})

test.each([
  ['took before and takes', 'gets', 'accepted', 'accepted', 2],
  ['took before and says nothing of', 'gets', 'accepted', 'unknown', 2],
  ['says nothing of again', 'gets', 'unknown', 'unknown', 2],
  // It may not have been there at all until now.
  ['takes for the first time', 'does not get at once', 'unknown', 'accepted', 1],
] as const)('what a node %s, and does not have, %s a higher fee', async (_, _gets, before, after, count) => {
  await fundReserve(stage, 'ETH:ETH', 1_000n * ETHER)
  await pricedOrder(stage)
  let answer: 'accepted' | 'unknown' = before
  const chain = payingChain(stage, {
    lookup: async () => ({ where: 'absent' }),
    broadcast: async () => answer,
  })
  const world = signingWorld(() => {})
  await workPayouts(world, chain)
  answer = after
  stage.advance(5 * MINUTE_MS)
  await lookAt(stage, 'BTC', 100)
  for (let step = 0; step < 2; step += 1) await workPayouts(world, chain)
  expect(await stage.db.query('SELECT attempt, answer FROM attempts ORDER BY attempt')).toEqual(
    Array.from({ length: count }, (_unused, index) => ({ attempt: index + 1, answer: after })),
  )
})

/** How many attempts each of two payouts has, one with the next nonce and one behind it, after both were late. */
async function attemptsOfTwo(answer: () => 'accepted' | 'refused', mined: () => number, looks: number) {
  await fundReserve(stage, 'ETH:ETH', 1_000n * ETHER)
  await pricedOrder(stage)
  await pricedOrder(stage)
  let asked = 0
  const chain = payingChain(stage, {
    lookup: async () => ({ where: answer() === 'accepted' ? 'mempool' : 'absent' }),
    broadcast: async () => answer(),
    minedNonce: async () => {
      asked += 1
      return mined()
    },
  })
  const world = signingWorld(() => {})
  await workPayouts(world, chain)
  asked = 0
  for (let look = 0; look < looks; look += 1) {
    stage.advance(MINUTE_MS)
    await lookAt(stage, 'BTC', 100)
    await workPayouts(world, chain)
  }
  const rows = await stage.db.query<{ count: number }>(
    "SELECT count(*)::int AS count FROM attempts GROUP BY intent->>'nonce' ORDER BY intent->>'nonce'",
  )
  return { attempts: rows.map(({ count }) => count), asked }
}

test('of payouts that wait for one another only the next one gets a higher fee', async () => {
  const { attempts, asked } = await attemptsOfTwo(
    () => 'accepted',
    () => 0,
    5,
  )
  expect(attempts).toEqual([2, 1])
  expect(asked, 'not before they are late').toBe(4)
})

test('one that waited for another gets a higher fee when it is next', async () => {
  let looks = 0
  const { attempts } = await attemptsOfTwo(
    () => 'accepted',
    () => (looks++ < 3 ? 0 : 1),
    5,
  )
  expect(attempts).toEqual([2, 2])
})

test.each([
  ['is as it was', 'do not get higher fees', 1n, 1],
  ['has grown threefold', 'get a higher fee once', 3n, 2],
] as const)('where the base fee %s, payouts behind another %s', async (_, _get, baseWei, count) => {
  await fundReserve(stage, 'ETH:ETH', 1_000n * ETHER)
  for (let placed = 0; placed < 3; placed += 1) await pricedOrder(stage)
  const chain = payingChain(stage, {
    lookup: async () => ({ where: 'mempool' }),
    isPricedOut: async (intent) => {
      assert(intent.family === 'evm', 'it is of Ethereum')
      return intent.maxFeePerGasWei < baseWei + PAPER_FEES.maxPriorityFeePerGasWei
    },
  })
  const world = signingWorld(() => {})
  for (let minute = 0; minute < 12; minute += 1) {
    await workPayouts(world, chain)
    stage.advance(MINUTE_MS)
    await lookAt(stage, 'BTC', 100)
  }
  const rows = await stage.db.query<{ count: number }>(
    "SELECT count(*)::int AS count FROM attempts GROUP BY intent->>'nonce' ORDER BY intent->>'nonce'",
  )
  expect(rows.map((row) => row.count)).toEqual([4, count, count])
})

test('one that is refused gets a higher fee also behind another', async () => {
  const { attempts } = await attemptsOfTwo(
    () => 'refused',
    () => 0,
    3,
  )
  expect(attempts).toEqual([2, 2])
})

test('a payout that was sent by a clock that is a little ahead does not', async () => {
  await fundReserve(stage, 'ETH:ETH', 1_000n * ETHER)
  await pricedOrder(stage)
  const chain = payingChain(stage, { lookup: async () => ({ where: 'mempool' }) })
  for (const passedMs of [MINUTE_MS, -MINUTE_MS, MINUTE_MS]) {
    stage.advance(passedMs)
    await lookAt(stage, 'BTC', 100)
    await stage.db.query('UPDATE outflows SET due_at_ms = 0, claimed_until_wall_ms = 0')
    await workPayouts(
      signingWorld(() => {}),
      chain,
    )
  }
  expect(await stage.db.query('SELECT attempt FROM attempts')).toHaveLength(1)
})

test('a sweep of coin waits while fees are so high that it would not be planned', async () => {
  await planWorthyOne()
  const { maxFeePerGasWei } = PAPER_FEES
  let isDear = false
  const chain = payingChain(stage, {
    bid: async () => {
      const asked = { ...PAPER_FEES, maxFeePerGasWei: isDear ? maxFeePerGasWei + 1n : maxFeePerGasWei }
      return accept({ family: 'evm', ...asked })
    },
    lookup: async () => ({ where: 'mempool' }),
  })
  const attemptsNow = async () => {
    stage.advance(5 * MINUTE_MS)
    await workPayouts(
      signingWorld(() => {}),
      chain,
      'deposits',
    )
    return (await stage.db.query('SELECT attempt FROM attempts')).length
  }
  expect(await attemptsNow()).toBe(1)
  isDear = true
  expect(await attemptsNow()).toBe(1)
  isDear = false
  expect(await attemptsNow()).toBe(2)
})

test.each([
  ['has', 'gets', 'its destination cannot be paid any more', 'accepted', 'destination', 2],
  ['refuses', 'does not get', 'its destination cannot be paid any more', 'refused', 'destination', 1],
  ['has', 'gets', 'its token is paused', 'accepted', 'network', 2],
] as const)(
  'a slow payout that the network %s %s a higher fee when %s',
  async (_, _is, _why, answer, code, count) => {
    await fundReserve(stage, 'ETH:ETH', 1_000n * ETHER)
    const { order } = await pricedOrder(stage)
    const asked: string[] = []
    let isPayable = true
    const chain = payingChain(stage, {
      bid: async ({ kind }) => {
        asked.push(kind)
        return isPayable || kind === 'filler'
          ? accept({ family: 'evm', ...PAPER_FEES })
          : refuse({ code, message: 'it reverts' })
      },
      lookup: async () => ({ where: answer === 'accepted' ? 'mempool' : 'absent' }),
      broadcast: async () => answer,
    })
    const world = signingWorld(() => {})
    await workPayouts(world, chain)
    isPayable = false
    stage.advance(5 * MINUTE_MS)
    await lookAt(stage, 'BTC', 100)
    await workPayouts(world, chain)
    const attempts = await stage.db.query(
      "SELECT attempt, answer, intent->>'nonce' AS nonce, intent->>'to' AS to FROM attempts ORDER BY attempt",
    )
    const same = { answer, nonce: '0', to: order.terms.destination }
    expect(attempts).toEqual(Array.from({ length: count }, (_, index) => ({ attempt: index + 1, ...same })))
    expect(asked).toEqual(['payout', 'payout', ...(answer === 'accepted' ? ['filler'] : [])])
  },
)

test.each([
  ['goes on', 'xrp', 'who is paid is refused', {}, 2],
  ['goes on', 'stellar', 'who is paid is refused', {}, 2],
  ['waits', 'stellar', 'it would arrive for nobody', { wouldArrive: true }, 1],
] as const)('a late payout %s on %s when %s', async (_, family, _who, mark, count) => {
  await insertAddresses(stage.db, family, 'reserve', 0, [RESERVE])
  await fundReserve(stage, 'ETH:ETH', 1_000n * ETHER)
  await pricedOrder(stage)
  const message = 'it cannot be paid any more'
  let answer: 'accepted' | 'refused' = 'accepted'
  const paper = payingChain(stage, {
    bid: async ({ kind }) =>
      answer === 'accepted' || kind === 'filler'
        ? accept({ family: 'evm', ...PAPER_FEES })
        : refuse({ code: 'destination', message, ...mark }),
    lookup: async () => ({ where: 'absent' }),
    broadcast: async () => answer,
  })
  const world = signingWorld(() => {})
  await workPayouts(world, paper)
  answer = 'refused'
  stage.advance(5 * MINUTE_MS)
  await lookAt(stage, 'BTC', 100)
  await workPayouts(world, { ...paper, family })
  expect(await stage.db.query('SELECT attempt FROM attempts')).toHaveLength(count)
  const [outflow] = await stage.db.query<{ trouble: string | null }>('SELECT trouble FROM outflows')
  expect(outflow?.trouble === message, 'it waits').toBe(count === 1)
})

test('two engines whose clocks are hours apart do not raise each what the other has just sent', async () => {
  const attemptsAfter = await stuckPayout()
  expect(await attemptsAfter(8 * HOUR_MS), 'sent by the one that is ahead').toBe(1)
  expect(await attemptsAfter(-8 * HOUR_MS), 'nobody knows how long ago that was').toBe(2)
  expect(await attemptsAfter(8 * HOUR_MS), 'by the clock that is ahead its own was sent a moment ago').toBe(2)
  expect(await attemptsAfter(MINUTE_MS - 8 * HOUR_MS), 'and by the other one the second').toBe(2)
  const { ETH: bumpAfterMs = 0 } = stage.world.policy.bumpAfterMs
  expect(await attemptsAfter(bumpAfterMs - MINUTE_MS), 'which is slow by now').toBe(3)
  expect(await attemptsAfter(8 * HOUR_MS), 'and so is the first').toBe(4)
  expect(await attemptsAfter(-8 * HOUR_MS)).toBe(4)
})
