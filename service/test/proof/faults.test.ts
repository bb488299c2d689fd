import type { CreatedOrder, Order } from '@cambist/sdk'
import { expect } from 'vitest'
import {
  type ChainId,
  chainFacts,
  depositsLie,
  type NetworkId,
  networkChains,
} from '../../src/domain/catalog/networks.ts'
import { balanceOf, chainUnits } from '../harness/amounts.ts'
import { type Chance, chanceFrom } from '../harness/chance.ts'
import { findUnended } from '../harness/invariants.ts'
import {
  bnbToEth,
  btcToUsdt,
  createOrder,
  ethToUsdc,
  type Pair,
  quickPair,
  usdcToBnb,
  usdtToBtc,
} from '../harness/orders.ts'
import { EVERY_NETWORK, type TestSandbox } from '../harness/test_sandbox.ts'
import { type BadLines, openBadLines } from './faults/bad_lines.ts'
import { openWeather, type Weather } from './faults/weather.ts'
import { inSandbox } from './in_sandbox.ts'
import { type Proof, prove } from './prove.ts'

/**
 * What: while every line to nodes, database and venues fails in every way, nonces are missing and fees rise twentyfold,
 * no payout is made twice, none is lost, and every order ends.
 * How: the real service on real nodes, simulated ones where there are none, and a real PostgreSQL, each behind a line that
 * fails by a seeded chance; the nodes themselves are asked in the end, over lines of the test's own.
 */
prove('with every line failing in every way, no payout is made twice and every order ends', async (proof) => {
  const networks = networksOf(proof)
  const lines = await openBadLines(proof.seed, networks)
  try {
    const options = { ...lines.options, networks, policy: { poolSize: 120, restMs: 100 } }
    await inSandbox(options, (sandbox) => live(sandbox, lines, proof))
  } finally {
    await lines.stop()
  }
})

/** Of the last four the short form has one, by its seed: each more takes its share of a small machine. */
function networksOf({ size, seed }: Proof): readonly ChainId[] {
  if (size === 'long') return EVERY_NETWORK
  const last = (['SOL', 'XLM', 'TRX', 'EOS'] as const)[seed % 4] ?? 'SOL'
  return ['BTC', 'ETH', 'BNB', 'XRP', last]
}

const usdcToUsdt: Pair = { from: 'USDC', from_network: 'BEP20', to: 'USDT', to_network: 'ERC20' }
const xrpToEth: Pair = { from: 'XRP', from_network: 'XRP', to: 'ETH', to_network: 'ETH' }
const usdtToXrp: Pair = { from: 'USDT', from_network: 'ERC20', to: 'XRP', to_network: 'XRP' }
const xlmToEth: Pair = { from: 'XLM', from_network: 'XLM', to: 'ETH', to_network: 'ETH' }
const usdcToXlm: Pair = { from: 'USDC', from_network: 'BEP20', to: 'XLM', to_network: 'XLM' }
const trxToUsdc: Pair = { from: 'TRX', from_network: 'TRX', to: 'USDC', to_network: 'BEP20' }
const ethToUsdt: Pair = { from: 'ETH', from_network: 'ETH', to: 'USDT', to_network: 'TRC20' }
const usdtToTrx: Pair = { from: 'USDT', from_network: 'TRC20', to: 'TRX', to_network: 'TRX' }
const eosToBnb: Pair = { from: 'EOS', from_network: 'EOS', to: 'BNB', to_network: 'BNB' }
const usdtToEos: Pair = { from: 'USDT', from_network: 'ERC20', to: 'EOS', to_network: 'EOS' }
const solToUsdt: Pair = { from: 'SOL', from_network: 'SOL', to: 'USDT', to_network: 'ERC20' }
const bnbToUsdc: Pair = { from: 'BNB', from_network: 'BNB', to: 'USDC', to_network: 'SOL' }
const usdcToSol: Pair = { from: 'USDC', from_network: 'SOL', to: 'SOL', to_network: 'SOL' }
const allPairs = [
  ...[usdtToBtc, usdcToUsdt, quickPair, bnbToEth, usdcToBnb],
  ...[btcToUsdt, ethToUsdc, xrpToEth, usdtToXrp],
  ...[xlmToEth, usdcToXlm, trxToUsdc, ethToUsdt, usdtToTrx],
  ...[eosToBnb, usdtToEos, solToUsdt, bnbToUsdc, usdcToSol],
] as const

const chainOf = (network: string) => networkChains[network as NetworkId]

/** Those between networks that run, in any order. */
function pairsOn({ devnet: { networks } }: TestSandbox, chance: Chance): readonly Pair[] {
  const run = ({ from_network, to_network }: Pair) =>
    [from_network, to_network].every((network) => chainOf(network) in networks)
  return chance.shuffled(allPairs.filter(run))
}

async function live(sandbox: TestSandbox, lines: BadLines, proof: Proof): Promise<void> {
  for (const told of LINE_WORDS) sandbox.expectError(told)
  const chance = chanceFrom(proof.seed + 1)
  const weather = openWeather(sandbox, lines, chance)
  const waves = proof.sized({ short: 1, long: 20 })
  const payouts = proof.sized({ short: 30, long: 2_000 })
  const pairs = pairsOn(sandbox, chance)
  for (let wave = 0; wave < waves; wave += 1) {
    await surviveWave({ sandbox, lines, weather, chance, pairs }, wave, payouts / waves)
  }
  weather.clear()
  sandbox.log('what has not happened yet on some line does')
  lines.failAsNeverBefore()
  await weather.until(
    () => `every fault has happened on every line: ${missing(lines).join(', ')} did not`,
    async () => missing(lines).length === 0,
    false,
  )
  lines.turnGood()
  await checkEverything(sandbox, lines, proof, weather, payouts)
}

/** What a request that needs the database logs when its line fails. */
const LINE_WORDS = [
  'Connection terminated',
  'Query read timeout',
  'ECONNRESET',
  'timeout exceeded',
  'invalid response',
  'canceling statement due to statement timeout',
]

function missing(lines: BadLines): string[] {
  const happened = lines.happened()
  return lines.expected.filter((fault) => !happened.has(fault))
}

type Stage = {
  readonly sandbox: TestSandbox
  readonly lines: BadLines
  readonly weather: Weather
  readonly chance: Chance
  readonly pairs: readonly Pair[]
}

/** So many gaps a wave: 16 in the short form, 200 in the long one. */
const GAPS = { dropped: 5, refused: 3, forgotten: 2 } as const
const BUMP_SECONDS = 4 * 60
const STALL_SECONDS = 31 * 60

async function surviveWave(stage: Stage, wave: number, size: number): Promise<void> {
  const { sandbox, lines, weather, chance } = stage
  sandbox.log(`wave ${wave}: ${size} orders are made and paid`)
  const orders = await createOrders(stage, size)
  const ids = orders.map(({ order_id }) => order_id)
  await Promise.all(orders.map((order) => pay(sandbox, order)))
  const onEvm = chance.shuffled(
    orders.filter(({ destination }) => destination.startsWith('0x')).map(({ destination }) => destination),
  )
  for (const destination of onEvm.slice(0, GAPS.refused)) weather.refuse(destination, 'refused')
  sandbox.log('from now on every line fails; the deposits are buried')
  weather.forgetNext()
  const outlived = timed.filter((chain) => lines.chains.includes(chain))
  const forgetful = outlived[wave % outlived.length]
  if (forgetful !== undefined) weather.forgetAll(forgetful)
  lines.turnBad()
  await Promise.all(lines.chains.map((chain) => sandbox.bury(chain)))
  await weather.until('every payout was tried', async () => (await countUntried(sandbox, ids)) === 0, false)

  sandbox.log('the nodes forget payouts, and some of them for good')
  const dropped = await weather.drop(ids, GAPS.dropped + GAPS.forgotten)
  for (const destination of dropped.slice(0, GAPS.forgotten)) weather.refuse(destination, 'forgotten')
  sandbox.log('fees rise: what waits is raised, or waits until they are below the cap')
  const chain = wave % 2 === 0 ? 'ETH' : 'BNB'
  await weather.spike('BTC')
  await weather.spike(chain)
  weather.jump(BUMP_SECONDS)
  await weather.until(`payouts on ${chain} feel the fees`, () => feelsFees(sandbox, ids, chain))
  await weather.endSpikes()
  if (forgetful !== undefined) await outlive(stage, ids, forgetful)
  sandbox.log('what waited for too long is given up')
  weather.jump(STALL_SECONDS)
  let looks = 0
  await weather.until('every order has ended', async () => {
    looks += 1
    if (looks % 50 === 0) weather.jump(looks % 100 === 0 ? STALL_SECONDS : BUMP_SECONDS)
    return (await countOpen(sandbox, ids)) === 0
  })
  lines.turnGood()
}

/** Where nothing but time keeps two attempts of a payout apart. */
const timed = ['TRX', 'EOS', 'SOL'] as const

/** Where a node forgets all payouts, blocks come until no block can take them any more, and they are signed anew. */
async function outlive(
  { sandbox, weather }: Stage,
  orderIds: readonly string[],
  chain: (typeof timed)[number],
): Promise<void> {
  sandbox.log(`${chain} forgets payouts until their time is over`)
  const isOver = async () => {
    const [row] = await sandbox.rows<{ waiting: number; anew: number }>(
      `SELECT count(*) FILTER (WHERE attempt > 1) AS anew, count(*) AS waiting
       FROM outflows o JOIN attempts USING (bucket, payout_id)
       WHERE order_id = ANY($1) AND chain = $2 AND state IN ('signed', 'broadcast')`,
      [orderIds, chain],
    )
    return row === undefined || row.anew > 0 || row.waiting === 0
  }
  await weather.until(`the time of payouts on ${chain} is over`, isOver)
  weather.remember(chain)
}

function createOrders({ sandbox, chance, pairs }: Stage, count: number) {
  return Promise.all(
    Array.from({ length: count }, (_, at) => {
      const pair = pairs[at % pairs.length] ?? quickPair
      const { family } = chainFacts[chainOf(pair.to_network)]
      return createOrder(sandbox, pair, {
        rate_type: chance.happens(0.3) ? 'float' : 'fixed',
        ...(depositsLie[family] === 'tags' && { destination_tag: '7' }),
      })
    }),
  )
}

/** As the sandbox pays, but without asking the service: what it gives up in the middle may have been paid, and is not asked again. */
function pay({ devnet }: TestSandbox, order: CreatedOrder) {
  const [currency, network] = [order.deposit_currency as Currency, order.deposit_network as Network]
  const units = chainUnits(order.deposit_amount, currency, network)
  // Elsewhere the address carries the tag.
  const memo = network === 'EOS' ? (order.deposit_tag ?? undefined) : undefined
  return devnet.send(chainOf(network), currency, order.deposit_address, units, 1, memo)
}

/** Where the next one is refused for good, its higher fee is as well, and those behind it get none. */
async function feelsFees(
  { rows }: TestSandbox,
  orderIds: readonly string[],
  chain: string,
): Promise<boolean> {
  const felt = await rows(
    `SELECT 1 FROM outflows o WHERE order_id = ANY($1) AND chain = $2 AND (o.trouble LIKE '%the cap is%'
       OR EXISTS (SELECT FROM attempts a WHERE a.payout_id = o.payout_id AND attempt > 1 AND answer IS NOT NULL))`,
    [orderIds, chain],
  )
  return felt.length > 0
}

/** What waits its turn on Stellar, where no ledger closes yet, is not tried before. */
async function countUntried({ rows }: TestSandbox, orderIds: readonly string[]): Promise<number> {
  const [row] = await rows<{ count: number }>(
    `SELECT count(*) AS count FROM orders o WHERE order_id = ANY($1) AND status IN ('NEW', 'PENDING', 'EXCHANGE')
       AND NOT EXISTS (SELECT FROM outflows f JOIN attempts a USING (bucket, payout_id)
         WHERE f.order_id = o.order_id AND a.answer IS NOT NULL)
       AND NOT EXISTS (SELECT FROM outflows f JOIN outflows next USING (chain)
         WHERE f.order_id = o.order_id AND chain = 'XLM' AND f.state = 'planned' AND next.state = 'broadcast')`,
    [orderIds],
  )
  return row?.count ?? 0
}

async function countOpen({ rows }: TestSandbox, orderIds: readonly string[]): Promise<number> {
  const [row] = await rows<{ count: number }>(
    `SELECT count(*) AS count FROM orders WHERE order_id = ANY($1) AND status NOT IN ('DONE', 'REFUNDED')`,
    [orderIds],
  )
  return row?.count ?? 0
}

async function checkEverything(
  sandbox: TestSandbox,
  lines: BadLines,
  { figure, sized }: Proof,
  weather: Weather,
  payouts: number,
): Promise<void> {
  expect(await findUnended(sandbox)).toEqual([])
  const arrived = await checkArrivals(sandbox)
  expect(arrived.done + arrived.refunded).toBe(payouts)
  expect(missing(lines)).toEqual([])
  for (const chain of lines.chains) expect(lines.sends(chain), `sends to ${chain}`).toBeGreaterThan(0)
  const happened = lines.happened()
  const { gaps, counts } = weather
  expect(gaps.dropped + gaps.refused).toBeGreaterThanOrEqual(sized({ short: 6, long: 200 }))
  figure('payouts', arrived.done)
  figure('refunds', arrived.refunded)
  figure(
    'nonces missing',
    `${gaps.dropped} forgotten by the node, ${gaps.refused} never taken, ${gaps.forgotten} refused after that`,
  )
  figure('fee spikes', counts.spikes)
  const { anew } = await tellAttempts(sandbox, figure)
  expect(anew).toBeGreaterThanOrEqual(sized({ short: 0, long: 1 }))
  for (const part of [...lines.chains, 'database', 'venue']) figure(`faults: ${part}`, sumOf(happened, part))
  figure('prices looked at', counts.prices)
  figure('of these none', counts.noPrice)
}

function sumOf(happened: ReadonlyMap<string, number>, part: string): number {
  return [...happened].reduce((sum, [name, times]) => (name.startsWith(`${part} `) ? sum + times : sum), 0)
}

async function tellAttempts({ rows }: TestSandbox, figure: Proof['figure']): Promise<{ anew: number }> {
  const [row] = await rows<{ raised: number; anew: number; fillers: number; transactions: number }>(
    `SELECT count(*) FILTER (WHERE attempt > 1 AND chain NOT IN ('TRX', 'EOS', 'SOL')) AS raised,
       count(*) FILTER (WHERE attempt > 1 AND chain IN ('TRX', 'EOS', 'SOL')) AS anew, count(*) AS transactions,
       count(DISTINCT payout_id) FILTER (WHERE kind = 'filler' AND state = 'confirmed') AS fillers
     FROM attempts JOIN outflows USING (bucket, payout_id)`,
  )
  figure('transactions signed', row?.transactions ?? 0)
  figure('of these at a higher fee', row?.raised ?? 0)
  figure('of these because the time of the earlier was over', row?.anew ?? 0)
  figure('fillers', row?.fillers ?? 0)
  return { anew: row?.anew ?? 0 }
}

/** Asks the nodes what every destination and refund address holds: each was made for one order. */
async function checkArrivals(sandbox: TestSandbox): Promise<{ done: number; refunded: number }> {
  const ids = await sandbox.rows<{ order_id: string }>('SELECT order_id FROM orders ORDER BY order_id')
  const counts = { done: 0, refunded: 0 }
  for (const { order_id: id } of ids) {
    const order = await sandbox.client.getOrder(id)
    const isDone = order.status === 'DONE'
    counts[isDone ? 'done' : 'refunded'] += 1
    await expectHeld(sandbox, order, isDone ? order.receive_final_amount : 0)
    if (order.refund !== undefined) await expectRefund(sandbox, order, order.refund)
  }
  return counts
}

type Currency = Parameters<typeof balanceOf>[2]
type Network = Parameters<typeof balanceOf>[3]

async function expectHeld(sandbox: TestSandbox, order: Order, amount: number | string): Promise<void> {
  const [currency, network] = [order.receive_currency as Currency, order.receive_network as Network]
  const held = await balanceOf(sandbox, order.destination, currency, network)
  expect(held, `${order.order_id} (${order.status}) at ${order.destination}`).toBe(
    chainUnits(amount, currency, network),
  )
}

async function expectRefund(
  sandbox: TestSandbox,
  order: Order,
  refund: NonNullable<Order['refund']>,
): Promise<void> {
  const [currency, network] = [order.deposit_currency as Currency, order.deposit_network as Network]
  const held = await balanceOf(sandbox, refund.address, currency, network)
  expect(held, `the refund of ${order.order_id}`).toBe(chainUnits(refund.amount, currency, network))
}
