import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type AssetId, assets } from '../../domain/catalog/assets.ts'
import { type CurrencyCode, currencyCodes } from '../../domain/catalog/currencies.ts'
import { chainFacts, chainIds } from '../../domain/catalog/networks.ts'
import { powerOfTen } from '../../domain/money/decimal.ts'
import { sandboxPrices } from '../../prices/index.ts'
import { defaultPolicy } from '../default_policy.ts'
import { marketBoard } from '../market.ts'
import type { DeskWorld } from '../world.ts'
import type { RateRequest, RateView } from './desk.ts'
import { rateDesk } from './rate_desk.ts'

/**
 * What: a market is current exactly as long as it would give every float rate again; http answers from that.
 * How: the real board and desk over rows that the test moves, in random histories of prices, reserves, costs of a
 * payout, silent chains and refreshes; every answer ever given is held against that of a desk that remembers nothing.
 */
const START_MS = 1_800_000_000_000
/** In the native coin's own units. */
const PAYOUT_COST = {
  bitcoin: 2_000n,
  evm: powerOfTen(15),
  xrp: 15n,
  stellar: 200n,
  tron: 1_100_000n,
  eos: 0n,
  solana: 10_000n,
}

async function openStage(configured: readonly AssetId[] = assets.map(({ id }) => id)) {
  let nowMs = START_MS
  const clock = { nowMs: () => nowMs, wallMs: () => nowMs, endOfTurn: async () => {} }
  const prices = sandboxPrices()
  const reserves = new Map<AssetId, { spendable: bigint; payout_cost: bigint }>(
    assets.map(({ id, maxAmount, chain }) => [
      id,
      { spendable: maxAmount * 3n, payout_cost: PAYOUT_COST[chainFacts[chain].family] },
    ]),
  )
  const lookedMs = new Map(chainIds.map((chain) => [chain, START_MS]))
  const readRows = () => ({
    reserves: [...reserves].map(([asset, row]) => ({ asset, at_ms: nowMs, ...row })),
    heads: [...lookedMs].map(([chain, at]) => ({ chain, height: 1, hash: '', looked_wall_ms: at })),
  })
  /** Of each that was stored its id, rate, fee and end. */
  const locks: unknown[] = []
  // What the last refresh read.
  let rows = readRows()
  const openDesk = () => {
    const query = async (text: string, values: readonly unknown[] = []) => {
      if (!text.includes('INTO rate_locks'))
        return text.includes('FROM reserves') ? rows.reserves : rows.heads
      const [rateId, , , , , rate, , feeShare, , expiresAtMs] = values
      locks.push([rateId, rate, feeShare, expiresAtMs])
      return []
    }
    const db = { query } as unknown as DeskWorld['db']
    const market = marketBoard({
      ...{ db, clock: clock as DeskWorld['clock'], prices, policy: defaultPolicy },
      assets: new Set(configured),
    })
    const randomId = () => 'lock'
    const desk = rateDesk({ db, clock, market, policy: defaultPolicy, randomId } as unknown as DeskWorld)
    const ask = (request: RateRequest) => {
      const outcome = desk.rate(request)
      if (outcome instanceof Promise) throw new Error('a float rate is answered at once')
      return outcome.ok ? outcome.value : null
    }
    return { market, desk, ask }
  }
  const { market, desk, ask } = openDesk()
  await market.refresh()
  return {
    ...{ prices, reserves, lookedMs, ask, desk, locks },
    nowMs: () => nowMs,
    advance: (ms: number) => {
      nowMs += ms
    },
    refresh: async () => {
      rows = readRows()
      await market.refresh()
    },
    isCurrent: (view: RateView) => desk.isCurrent(view.market),
    begin: async () => {
      const fresh = openDesk()
      await fresh.market.refresh()
      return fresh
    },
  }
}

type Stage = Awaited<ReturnType<typeof openStage>>

const pairs = assets.flatMap((from) => assets.filter((to) => to !== from).map((to) => ({ from, to })))
const requests = pairs.map(
  ({ from, to }): RateRequest => ({
    from: from.currency,
    fromNetwork: from.network,
    to: to.currency,
    toNetwork: to.network,
    amount: { BTC: '0.5', ETH: '5', BNB: '20', SOL: '50' }[from.currency as string] ?? '5000',
    rateType: 'float',
    direction: 'from',
  }),
)

const change: fc.Arbitrary<(stage: Stage) => void> = fc.oneof(
  fc.constant(() => {}),
  fc.constantFrom(...assets).map(
    ({ currency }) =>
      ({ prices }: Stage) =>
        void prices.change(currency, '1'),
  ),
  fc
    .tuple(fc.constantFrom(...assets), fc.constantFrom(0n, 1n))
    .map(([{ id, maxAmount }, share]) => (stage: Stage) => {
      const row = stage.reserves.get(id)
      if (row !== undefined) row.spendable = (maxAmount * share) / 2n
    }),
  fc.constantFrom(...assets).map(({ id }) => ({ reserves }: Stage) => {
    const row = reserves.get(id)
    if (row !== undefined) row.payout_cost *= 2n
  }),
  fc
    .constantFrom(...chainIds)
    .map((chain) => (stage: Stage) => void stage.lookedMs.set(chain, stage.nowMs())),
  fc.integer({ min: 1, max: defaultPolicy.chainTroubleMs }).map(
    (ms) =>
      ({ advance }: Stage) =>
        advance(ms),
  ),
)

test('a market is current only as long as it would answer the same again', async () => {
  let stood = 0
  let fell = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(change, fc.boolean()), { minLength: 1, maxLength: 6 }),
      async (steps) => {
        const stage = await openStage()
        const given = requests.flatMap((request) => {
          const view = stage.ask(request)
          return view === null ? [] : [{ request, view }]
        })
        expect(given).toHaveLength(requests.length)
        for (const [move, isRefreshed] of steps) {
          move(stage)
          if (isRefreshed) await stage.refresh()
          const { ask: askNewcomer } = await stage.begin()
          for (const { request, view } of given) {
            if (stage.isCurrent(view)) {
              expect(askNewcomer(request)).toEqual(view)
              stood += 1
            } else fell += 1
          }
        }
      },
    ),
  )
  expect(stood).toBeGreaterThan(1_000)
  expect(fell).toBeGreaterThan(1_000)
})

test('reading the same figures again leaves a market current; a change of any of them does not', async () => {
  const stage = await openStage()
  const [request] = requests.filter(({ from, to }) => from === 'BTC' && to === 'ETH')
  const ask = () => {
    const view = request === undefined ? null : stage.ask(request)
    if (view === null) throw new Error('there is a rate')
    return view
  }
  const first = ask()
  await stage.refresh()
  expect(stage.isCurrent(first)).toBe(true)
  expect(ask().market, 'the same object').toBe(first.market)

  for (const currency of ['BTC', 'ETH'] as const) {
    const before = ask()
    stage.prices.change(currency, '0.5')
    expect(stage.isCurrent(before), `the price of ${currency}`).toBe(false)
  }
  for (const field of ['spendable', 'payout_cost'] as const) {
    const before = ask()
    const row = stage.reserves.get('ETH:ETH')
    if (row !== undefined) row[field] -= 1n
    await stage.refresh()
    expect(stage.isCurrent(before), field).toBe(false)
  }
  const last = ask()
  stage.advance(defaultPolicy.chainTroubleMs)
  expect(stage.isCurrent(last), 'nobody looks at the chains').toBe(false)
  expect(request && stage.ask(request)).toBeNull()
})

const few: readonly AssetId[] = ['BTC:BTC', 'ETH:ETH', 'USDT:ERC20', 'USDT:BEP20', 'BNB:BNB']

type Asked = readonly [from: string, fromNetwork: string | null, to: string, toNetwork: string | null]

test('a currency is there as long as one of its networks is', async () => {
  const stage = await openStage(few)
  stage.reserves.delete('USDT:ERC20')
  await stage.refresh()
  expect(await stage.desk.currencies()).toMatchObject({ USDT: { enabled: true }, BTC: { enabled: true } })
})

test('a currency without a price is listed as long as a chain may be silent, and again with its first price', async () => {
  const stage = await openStage()
  const usd = stage.prices.usd
  const isPriced = { EOS: true }
  const change = { usd: (code: CurrencyCode) => (code === 'EOS' && !isPriced.EOS ? null : usd(code)) }
  Object.assign(stage.prices, change)
  const all = Object.fromEntries(currencyCodes.map((code) => [code, true]))
  const enabledAfter = async (ms: number) => {
    stage.advance(ms)
    for (const chain of chainIds) stage.lookedMs.set(chain, stage.nowMs())
    await stage.refresh()
    const listed = Object.entries(await stage.desk.currencies())
    return Object.fromEntries(listed.map(([code, { enabled }]) => [code, enabled]))
  }
  const mostMs = defaultPolicy.chainTroubleMs
  expect(await enabledAfter(mostMs)).toEqual(all)
  isPriced.EOS = false
  expect(await enabledAfter(mostMs - 1), 'a jump is weighed').toEqual(all)
  expect(await enabledAfter(1)).toEqual({ ...all, EOS: false })
  expect(await enabledAfter(mostMs)).toEqual({ ...all, EOS: false })
  isPriced.EOS = true
  expect(await enabledAfter(0)).toEqual(all)
  isPriced.EOS = false
  expect(await enabledAfter(mostMs - 1), 'its time begins anew').toEqual(all)
  expect(await enabledAfter(1)).toEqual({ ...all, EOS: false })
})

test('a process that has seen no price yet waits for one as long, and a clock that is set back keeps none on the list', async () => {
  const stage = await openStage(few)
  Object.assign(stage.prices, { usd: () => null })
  const fresh = await stage.begin()
  const isListedAfter = async (ms: number) => {
    stage.advance(ms)
    for (const chain of chainIds) stage.lookedMs.set(chain, stage.nowMs())
    await stage.refresh()
    await fresh.market.refresh()
    return (await fresh.desk.currencies()).BTC?.enabled
  }
  expect(await isListedAfter(defaultPolicy.chainTroubleMs - 1)).toBe(true)
  expect(await isListedAfter(1)).toBe(false)
  expect(await isListedAfter(-3 * defaultPolicy.chainTroubleMs)).toBe(false)
})

test('what is promised of a fixed rate is written down as it is told, at the fee of fixed rates, before it is told', async () => {
  const stage = await openStage(few)
  const request = { from: 'BTC', fromNetwork: null, to: 'ETH', toNetwork: null, amount: '0.5' }
  const told = await stage.desk.rate({ ...request, rateType: 'fixed', direction: 'from' })
  if (!told.ok) throw new Error('there is a rate')
  const { fees, lockMs } = defaultPolicy
  const { rate_id: rateId, expires_at: expiresAtMs, rate } = told.value
  expect([rateId, expiresAtMs]).toEqual(['lock', START_MS + lockMs])
  expect(stage.locks).toEqual([['{lock}', `{${rate}}`, `{${fees.fixed}}`, `{${expiresAtMs}}`]])
})

async function refusalOf(stage: Stage, [from, fromNetwork, to, toNetwork]: Asked) {
  const asked = { from, fromNetwork, to, toNetwork }
  const told = await stage.desk.rate({ ...asked, amount: '1', rateType: 'float', direction: 'from' })
  if (told.ok) throw new Error('it is refused')
  const { code, message } = told.rejection
  return [code, message]
}

test('of each currency only the networks that are configured are listed, and none that has no such network', async () => {
  const { desk } = await openStage(few)
  const listed = Object.entries(await desk.currencies())
  expect(listed.map(([code, { networks, enabled }]) => [code, networks, enabled])).toEqual([
    ['BTC', ['BTC'], true],
    ['ETH', ['ETH'], true],
    ['USDT', ['ERC20', 'BEP20'], true],
    ['BNB', ['BNB'], true],
  ])
  const all = Object.values(await (await openStage()).desk.currencies())
  expect(all.flatMap(({ networks }) => networks)).toHaveLength(assets.length)
})

test('what is not configured is no pair, and no network of its currency: trying again would not help', async () => {
  const stage = await openStage(few)
  const choose = 'choose from BTC, ETH, USDT, BNB'
  const xrp = ['INVALID_PAIR', `XRP is not a currency we exchange; ${choose}`]
  expect(await refusalOf(stage, ['BTC', null, 'XRP', null])).toEqual(xrp)
  expect(await refusalOf(stage, ['XRP', 'XRP', 'BTC', 'BTC'])).toEqual(xrp)
  const usdc = ['INVALID_PAIR', `USDC is not a currency we exchange; ${choose}`]
  expect(await refusalOf(stage, ['BTC', 'nowhere', 'USDC', 'ERC20']), 'the pair comes first').toEqual(usdc)

  const tron = ['NETWORK_MISMATCH', 'USDT is not exchanged on TRC20; choose from ERC20, BEP20']
  expect(await refusalOf(stage, ['BTC', null, 'USDT', 'TRC20'])).toEqual(tron)
  expect(await refusalOf(stage, ['USDT', 'TRC20', 'BTC', null])).toEqual(tron)
  expect(await refusalOf(stage, ['BTC', 'ERC20', 'ETH', null])).toEqual([
    'NETWORK_MISMATCH',
    'BTC is not exchanged on ERC20; choose from BTC',
  ])
  const missing = 'is required for USDT: one of ERC20, BEP20'
  expect(await refusalOf(stage, ['BTC', null, 'USDT', null])).toEqual([
    'INVALID_PARAMETER',
    `to_network ${missing}`,
  ])
  const asked = { from: 'USDT', fromNetwork: null, to: 'USDT', toNetwork: null, amount: '1' }
  expect(await stage.desk.rate({ ...asked, rateType: 'float', direction: 'from' }), 'both').toMatchObject({
    rejection: {
      code: 'INVALID_PARAMETER',
      message: `from_network ${missing}; to_network ${missing}`,
      details: [
        { field: 'from_network', message: missing },
        { field: 'to_network', message: missing },
      ],
    },
  })
  expect(await refusalOf(stage, ['BTC', 'TRC20', 'USDT', null]), 'for different reasons: the first').toEqual([
    'NETWORK_MISMATCH',
    'BTC is not exchanged on TRC20; choose from BTC',
  ])
})

test('what is configured stays listed while its chain is silent or was never looked at: that is MAINTENANCE', async () => {
  const stage = await openStage(few)
  stage.lookedMs.delete('BNB')
  stage.reserves.delete('USDT:ERC20')
  await stage.refresh()
  const currencies = await stage.desk.currencies()
  expect(currencies.USDT).toMatchObject({ networks: ['ERC20', 'BEP20'], enabled: false })
  expect(currencies.BNB).toMatchObject({ networks: ['BNB'], enabled: false })
  for (const [to, network] of [
    ['BNB', null],
    ['USDT', 'BEP20'],
    ['USDT', 'ERC20'],
  ] as const) {
    expect((await refusalOf(stage, ['BTC', null, to, network]))[0], `${to} ${network}`).toBe('MAINTENANCE')
  }
})
