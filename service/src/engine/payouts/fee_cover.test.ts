import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { insertAddresses } from '../../db/addresses.ts'
import type { LeavingFrom } from '../../db/claim_outflows.ts'
import { endOutflow, planOutflow } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { accept } from '../../domain/outcome.ts'
import { MINUTE_MS } from '../../domain/time.ts'
import type { Signer } from '../../signer/signer.ts'
import {
  type BooksStage,
  confirmDeposit,
  fundReserve,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  RESERVE,
  tell,
} from '../testing/books_stage.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import { workPayouts } from './work.ts'

/**
 * What: on TRON and Solana nothing is drafted, or drafted anew, for whose fee the coin of the reserve is too little, once all that was
 * drafted before has taken what it may: a call that runs out of energy fails, so does one that cannot make an account, and what they
 * burnt is gone.
 * How: a real PostgreSQL, orders moved by facts, and chains on paper that take whatever is sent and mine what the test says.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('fee_cover')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n
const TRX = 1_000_000n
const USDT: AssetId = 'USDT:TRC20'
const FEE_LIMIT = 16n * TRX
const BANDWIDTH = 300_000n
const NEW_ACCOUNT = 1_100_000n

function tronOnPaper(): Chain {
  const paper = stage.chain('TRX')
  const reference = { id: 'ab'.repeat(32), timeMs: 1 }
  return {
    ...paper,
    balance: (asset, addresses, height) => paper.balance(asset, addresses, height ?? 1_000),
    isOver: async () => false,
    bid: async ({ asset }) => {
      const feeLimitSun = asset === USDT ? FEE_LIMIT : 0n
      const prices = { energySun: feeLimitSun / 2n, feeLimitSun, otherSun: BANDWIDTH }
      return accept({ family: 'tron', ...prices, reference, expirationMs: 180_000 })
    },
    draft: ({ payoutId, address: to, asset, units }, bid, funds) => {
      assert(bid.family === 'tron' && funds.model === 'timed', 'TRON has no nonces')
      const { feeLimitSun, expirationMs } = bid
      const token = asset === USDT ? 'the contract' : null
      const what = { payoutId, attempt: 1, from: funds.from, to, units, token, feeLimitSun }
      return accept({ family: 'tron', chain: 'TRX', ...what, reference, expirationMs, timestampMs: 1 })
    },
    broadcast: async () => 'accepted',
  }
}

async function openReserve(sun: bigint): Promise<void> {
  await insertAddresses(stage.db, 'tron', 'reserve', 0, [RESERVE])
  await fundReserve(stage, 'ETH:ETH', ETHER)
  await fundReserve(stage, 'TRX:TRX', sun)
  await fundReserve(stage, USDT, 1_000n * ETHER)
}

async function planPayouts(to: AssetId, units: bigint, count = 1): Promise<void> {
  for (let made = 0; made < count; made += 1) {
    const order = await placeOrder(stage, 'ETH:ETH', to, { asks: ETHER, promises: units })
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  }
}

async function work(chain = tronOnPaper(), from?: LeavingFrom): Promise<void> {
  stage.advance(30_000)
  await lookAt(stage, 'ETH', 100)
  await workPayouts(worldWithSigner(stage), chain, from)
}

async function outflows() {
  return stage.db.query<{ payout_id: string; state: string; trouble: string | null }>(
    'SELECT payout_id, state, trouble FROM outflows ORDER BY state, payout_id',
  )
}

const SENT = { state: 'broadcast', trouble: null }
const WAITS = { state: 'planned', trouble: expect.stringContaining('fee') }

test('of four payouts of a token that are drafted at once those leave whose fee limits the reserve has', async () => {
  await openReserve(2n * (FEE_LIMIT + BANDWIDTH))
  await planPayouts(USDT, ETHER, 4)
  await work()
  const [first, ...others] = await outflows()
  expect([first, ...others]).toMatchObject([SENT, SENT, WAITS, WAITS])

  stage.chain('TRX').mined(`tx-${first?.payout_id}`, 101, 6n * TRX)
  stage.chain('TRX').move(101, 'TRX:TRX', RESERVE, -6n * TRX)
  await lookAt(stage, 'TRX', 130)
  await work()
  expect((await outflows())[1], 'of its limit it has taken a part, which is gone').toMatchObject({
    state: 'confirmed',
  })
  await work()
  expect(await outflows()).toMatchObject([SENT, { state: 'confirmed' }, WAITS, WAITS])

  stage.chain('TRX').move(111, 'TRX:TRX', RESERVE, 6n * TRX)
  await work()
  expect(await outflows()).toMatchObject([SENT, SENT, { state: 'confirmed' }, WAITS])
})

type Payout = readonly [AssetId, bigint]
const coin: Payout = ['TRX:TRX', 30n * TRX]
const token: Payout = [USDT, ETHER]

test.each([
  { drafted: 'TRX', other: 'a fee', first: coin, next: token },
  { drafted: 'a fee', other: 'TRX', first: token, next: coin },
])('$drafted that is drafted is not there for $other', async ({ first, next }) => {
  await openReserve(30n * TRX + FEE_LIMIT)
  await planPayouts(...first)
  await work()
  await planPayouts(...next)
  await work()
  expect(await outflows()).toMatchObject([SENT, WAITS])
  stage.chain('TRX').move(81, 'TRX:TRX', RESERVE, BANDWIDTH + NEW_ACCOUNT)
  await work()
  expect(await outflows()).toMatchObject([SENT, SENT])
})

test('the accounts that payouts of TRX may make are not there for a fee', async () => {
  await openReserve(60n * TRX + FEE_LIMIT + BANDWIDTH + 2n * NEW_ACCOUNT - 1n)
  await planPayouts(...coin, 2)
  await work()
  await planPayouts(...token)
  await work()
  expect(await outflows()).toMatchObject([SENT, SENT, WAITS])
  stage.chain('TRX').move(81, 'TRX:TRX', RESERVE, 1n)
  await work()
  expect(await outflows()).toMatchObject([SENT, SENT, SENT])
})

test('what is in a block and not final is not taken off twice', async () => {
  await openReserve(30n * TRX + NEW_ACCOUNT + FEE_LIMIT + BANDWIDTH)
  await planPayouts(...coin)
  await work()
  const [{ payout_id: mined } = { payout_id: '' }] = await outflows()
  stage.chain('TRX').mined(`tx-${mined}`, 101, 0n)
  stage.chain('TRX').move(101, 'TRX:TRX', RESERVE, -30n * TRX)
  await lookAt(stage, 'TRX', 105)
  await planPayouts(...token)
  await work()
  expect(await outflows()).toMatchObject([SENT, SENT])
})

test('what ends while a node says what is there has its fee taken off once more', async () => {
  await openReserve(FEE_LIMIT + BANDWIDTH)
  await planPayouts(USDT, ETHER)
  await work()
  const [{ payout_id: leaving } = { payout_id: '' }] = await outflows()
  await planPayouts(USDT, ETHER)
  const chain = tronOnPaper()
  const cost = amountOf('TRX:TRX', 6n * TRX)
  const ending: Chain = {
    ...chain,
    balance: async (asset, ...rest) => {
      const held = await chain.balance(asset, ...rest)
      const block = { height: 100, hash: 'block' }
      if (asset === 'TRX:TRX')
        await endOutflow(stage.db, leaving, ['broadcast'], 'confirmed', { block, cost })
      return held
    },
  }
  await work(ending)
  expect(await outflows()).toMatchObject([{ state: 'confirmed' }, WAITS])
})

const SOL = 10n ** 9n
const USDC: AssetId = 'USDC:SOL'
const LOCKED = 890_880n
const RENT = 2_039_280n
const FEE = 5_001n
const SWEEP_FEE = 10_001n

function solanaOnPaper(): Chain {
  const paper = stage.chain('SOL')
  const reference = { slot: 90, blockhash: 'hash', height: 80 }
  const price = { units: 1_000, unitPriceMicroLamports: 1_000n }
  return {
    ...paper,
    balance: (asset, addresses, height) => paper.balance(asset, addresses, height ?? 1_000),
    lockedUnits: async () => LOCKED,
    isOver: async () => false,
    bid: async ({ from }) => {
      const feeLamports = from === undefined ? FEE : SWEEP_FEE
      return accept({ family: 'solana', ...price, feeLamports, holdingRentLamports: RENT, reference })
    },
    draft: ({ payoutId, address: to, asset, units }, bid, { model, ...funds }) => {
      assert(bid.family === 'solana' && model === 'timed' && 'from' in funds, 'Solana has no nonces')
      const { units: computeUnits, unitPriceMicroLamports } = bid
      const token = asset === USDC ? 'the mint' : null
      const payer = token === null ? funds.from : ({ purpose: 'reserve', index: 0 } as const)
      const what = { payoutId, attempt: 1, from: funds.from, payer, to, units, token }
      const life = { computeUnits, unitPriceMicroLamports, reference, lastHeight: 231 }
      return accept({ family: 'solana', chain: 'SOL', ...what, ...life })
    },
    broadcast: async () => 'accepted',
  }
}

async function openSolanaReserve(lamports: bigint): Promise<void> {
  await insertAddresses(stage.db, 'solana', 'reserve', 0, [RESERVE])
  await fundReserve(stage, 'ETH:ETH', ETHER)
  await fundReserve(stage, 'SOL:SOL', LOCKED + lamports)
  await fundReserve(stage, USDC, 1_000n * ETHER)
}

test('of four payouts of a token to whoever has none those leave whose accounts the reserve can make', async () => {
  await openSolanaReserve(2n * (FEE + RENT))
  await planPayouts(USDC, ETHER, 4)
  await work(solanaOnPaper())
  expect(await outflows()).toMatchObject([SENT, SENT, WAITS, WAITS])
  stage.chain('SOL').move(81, 'SOL:SOL', RESERVE, FEE + RENT - 1n)
  await work(solanaOnPaper())
  expect(await outflows(), 'a lamport is missing').toMatchObject([SENT, SENT, WAITS, WAITS])
  stage.chain('SOL').move(82, 'SOL:SOL', RESERVE, 1n)
  await work(solanaOnPaper())
  expect(await outflows()).toMatchObject([SENT, SENT, SENT, WAITS])
})

const sol: Payout = ['SOL:SOL', SOL]
const usdc: Payout = [USDC, ETHER]

test.each([
  { drafted: 'SOL', other: 'an account', first: sol, next: usdc },
  { drafted: 'an account', other: 'SOL', first: usdc, next: sol },
])('$drafted that is drafted is not there for $other', async ({ first, next }) => {
  await openSolanaReserve(SOL + RENT + 2n * FEE - 1n)
  await planPayouts(...first)
  await work(solanaOnPaper())
  await planPayouts(...next)
  await work(solanaOnPaper())
  expect(await outflows()).toMatchObject([SENT, WAITS])
  stage.chain('SOL').move(81, 'SOL:SOL', RESERVE, 1n)
  await work(solanaOnPaper())
  expect(await outflows()).toMatchObject([SENT, SENT])
})

async function planSweep(asset: AssetId): Promise<void> {
  const [payoutId, address] = [`sweep:SOL:7:1`, 'deposit-of-sol']
  await insertAddresses(stage.db, 'solana', 'deposit', 7, [address])
  stage.chain('SOL').move(50, asset, address, SOL)
  const from = { key: { purpose: 'deposit', index: 7 }, address } as const
  const sweep = { payoutId, kind: 'sweep', asset, units: SOL, address: RESERVE, tag: null, from } as const
  await planOutflow(stage.db, sweep, stage.world.clock.nowMs())
}

test('a token that leaves a deposit address takes its fee of what payouts need', async () => {
  await openSolanaReserve(RENT + FEE + SWEEP_FEE - 1n)
  await planSweep(USDC)
  await work(solanaOnPaper(), 'deposits')
  await planPayouts(...usdc)
  await work(solanaOnPaper())
  expect(await outflows()).toMatchObject([SENT, WAITS])
  stage.chain('SOL').move(81, 'SOL:SOL', RESERVE, 1n)
  await work(solanaOnPaper())
  expect(await outflows()).toMatchObject([SENT, SENT])
})

test('a token stays where it is while payouts need what its sweep would take', async () => {
  await openSolanaReserve(RENT + FEE + SWEEP_FEE - 1n)
  await planPayouts(...usdc)
  await work(solanaOnPaper())
  await planSweep(USDC)
  await work(solanaOnPaper(), 'deposits')
  expect(await outflows()).toMatchObject([SENT, { state: 'cancelled' }])
})

test('SOL that leaves a deposit address needs nothing of the reserve', async () => {
  await openSolanaReserve(RENT + FEE)
  await planSweep('SOL:SOL')
  await work(solanaOnPaper(), 'deposits')
  await planPayouts(...usdc)
  await work(solanaOnPaper())
  expect(await outflows()).toMatchObject([SENT, SENT])
})

const RAISED_FEE = 10_000n

/**
 * The first attempts in `over` are in no block and never will be; a further one pays more. Who is paid has an account. Of which it was
 * asked whether they are over is in `asked`.
 */
function jammed(chain: Chain, over: ReadonlySet<string>, asked: string[]): Chain {
  return {
    ...chain,
    isOver: async ({ payoutId, attempt }) => {
      asked.push(payoutId)
      return attempt === 1 && over.has(payoutId)
    },
    raise: (previous, bid) => {
      const attempt = previous.attempt + 1
      if (previous.family === 'solana')
        return accept({ ...previous, attempt, unitPriceMicroLamports: 5_000_000n })
      assert(previous.family === 'tron' && bid.family === 'tron', 'it is of Solana or TRON')
      return accept({ ...previous, attempt, feeLimitSun: 2n * bid.feeLimitSun })
    },
    broadcast: async ({ txHash }) => {
      const [payoutId = '', attempt] = txHash.split('#')
      return attempt === '1' && over.has(payoutId) ? 'refused' : 'accepted'
    },
  }
}

async function workJammed(chain: Chain, over: readonly string[], asked: string[] = []): Promise<void> {
  stage.advance(30_000)
  await lookAt(stage, 'ETH', 100)
  const sign: Signer['sign'] = async ({ payoutId, attempt }) =>
    accept({ txHash: `${payoutId}#${attempt}`, bytes: 'ff' })
  await workPayouts(worldWithSigner(stage, { sign }), jammed(chain, new Set(over), asked))
}

async function raisedAndNot() {
  const rows = await stage.db.query<{
    payout_id: string
    state: string
    trouble: string | null
    attempts: number
  }>(
    `SELECT payout_id, state, trouble,
       (SELECT count(*) FROM attempts a WHERE a.payout_id = outflows.payout_id)::int AS attempts
     FROM outflows ORDER BY attempts DESC, payout_id`,
  )
  return rows.map(({ payout_id: payoutId, ...rest }) => ({ payoutId, ...rest }))
}

const RAISED = { state: 'broadcast', attempts: 2 }
const WAITS_AT_FIRST = { state: 'broadcast', attempts: 1, trouble: expect.stringContaining('are promised') }

test('of four payouts that are signed again at once those are whose higher fees the reserve has', async () => {
  const chain = solanaOnPaper()
  await openSolanaReserve(4n * (FEE + RENT))
  await planPayouts(USDC, ETHER, 4)
  await workJammed(chain, [])
  const all = (await outflows()).map((each) => each.payout_id)
  expect(await outflows()).toMatchObject([SENT, SENT, SENT, SENT])
  await workJammed(chain, all)
  expect(await raisedAndNot()).toMatchObject([RAISED, RAISED, RAISED, WAITS_AT_FIRST])
  await workJammed(chain, all)
  expect(await raisedAndNot(), 'once more').toMatchObject([RAISED, RAISED, RAISED, WAITS_AT_FIRST])

  const paid = (await raisedAndNot()).slice(0, 3)
  for (const { payoutId } of paid) stage.chain('SOL').mined(`${payoutId}#2`, 101, RAISED_FEE)
  stage.chain('SOL').move(101, 'SOL:SOL', RESERVE, -3n * RAISED_FEE)
  await lookAt(stage, 'SOL', 140)
  // The three end, the fourth is signed again beside them or after them, and sent.
  for (let step = 0; step < 3; step += 1) await workJammed(chain, all)
  const ended = { state: 'confirmed', attempts: 2 }
  const after = await raisedAndNot()
  expect(after.filter(({ state }) => state === 'confirmed')).toMatchObject([ended, ended, ended])
  expect(after.filter(({ state }) => state !== 'confirmed')).toMatchObject([{ ...RAISED, trouble: null }])
})

test('to sign one again it is asked of no more that are leaving than have to be over, and of none that takes nothing', async () => {
  await openSolanaReserve(4n * (FEE + RENT))
  await planSweep('SOL:SOL')
  await work(solanaOnPaper(), 'deposits')
  await planPayouts(USDC, ETHER, 4)
  await workJammed(solanaOnPaper(), [])
  expect(await outflows()).toMatchObject([SENT, SENT, SENT, SENT, SENT])
  const all = (await outflows()).map((each) => each.payout_id)
  const [slow = '', ...others] = all.filter((payoutId) => payoutId.startsWith('CB'))
  await stage.db.query('UPDATE outflows SET due_at_ms = $1 WHERE payout_id <> $2', [
    stage.world.clock.nowMs() + 2 * MINUTE_MS,
    slow,
  ])
  const asked: string[] = []
  await workJammed(solanaOnPaper(), all, asked)
  expect((await raisedAndNot())[0]).toMatchObject({ payoutId: slow, attempts: 2 })
  expect(asked.filter((payoutId) => payoutId !== slow)).toHaveLength(1)
  expect(others).toContain(asked.at(-1))
})

test('of two payouts of TRON that are signed again with twice the limit one waits', async () => {
  await openReserve(3n * FEE_LIMIT + BANDWIDTH)
  await planPayouts(USDT, ETHER, 2)
  await workJammed(tronOnPaper(), [])
  expect(await outflows()).toMatchObject([SENT, SENT])
  const all = (await outflows()).map((each) => each.payout_id)
  await workJammed(tronOnPaper(), all)
  expect(await raisedAndNot()).toMatchObject([RAISED, WAITS_AT_FIRST])
  stage.chain('TRX').move(81, 'TRX:TRX', RESERVE, FEE_LIMIT)
  await workJammed(tronOnPaper(), all)
  expect(await raisedAndNot()).toMatchObject([RAISED, RAISED])
})

test('a payout that is signed again leaves to another what that may still take, and counts nothing of its own', async () => {
  const chain = solanaOnPaper()
  await openSolanaReserve(2n * RENT + FEE + RAISED_FEE - 1n)
  await planPayouts(USDC, ETHER, 2)
  await workJammed(chain, [])
  const [{ payout_id: slow } = { payout_id: '' }] = await outflows()
  await workJammed(chain, [slow])
  expect((await raisedAndNot()).find(({ payoutId }) => payoutId === slow)).toMatchObject(WAITS_AT_FIRST)
  stage.chain('SOL').move(81, 'SOL:SOL', RESERVE, 1n)
  await workJammed(chain, [slow])
  expect((await raisedAndNot()).map(({ attempts }) => attempts)).toEqual([2, 1])
})

function eosOnPaper(): Chain {
  const paper = stage.chain('EOS')
  const reference = { id: 'ab'.repeat(32), timeMs: 1 }
  return {
    ...paper,
    balance: (asset, addresses, height) => paper.balance(asset, addresses, height ?? 1_000),
    isOver: async () => false,
    bid: async () => accept({ family: 'eos', reference, expirationMs: 180_000 }),
    draft: ({ payoutId, address: to, units }, _, funds) => {
      assert(funds.model === 'timed', 'EOS has no nonces')
      const what = {
        payoutId,
        attempt: 1,
        from: funds.from,
        account: RESERVE,
        payment: { to, memo: '', units },
      }
      const life = { reference, expirationMs: 180_000, netWordsMax: 1_000 }
      return accept({ family: 'eos', chain: 'EOS', chainId: 'on paper', ...what, ...life })
    },
    broadcast: async () => 'accepted',
  }
}

test('of two that are drafted at once where nothing takes a fee either, that leaves for which there is enough', async () => {
  await insertAddresses(stage.db, 'eos', 'reserve', 0, [RESERVE])
  await fundReserve(stage, 'ETH:ETH', ETHER)
  await fundReserve(stage, 'EOS:EOS', 2n * ETHER - 1n)
  await planPayouts('EOS:EOS', ETHER, 2)
  // Both know what there is before either is drafted.
  let asked = 0
  const met = Promise.withResolvers<void>()
  const chain = eosOnPaper()
  const balance: Chain['balance'] = async (...question) => {
    asked += 1
    if (asked === 2) met.resolve()
    await met.promise
    return chain.balance(...question)
  }
  await work({ ...chain, balance })
  expect(await outflows()).toMatchObject([
    SENT,
    { state: 'planned', trouble: expect.stringContaining(`of which ${ETHER} are leaving`) },
  ])
})
