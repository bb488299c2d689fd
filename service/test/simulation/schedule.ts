import type { Database } from '../../src/db/database.ts'
import { LIVE } from '../../src/db/outflows.ts'
import { assert } from '../../src/domain/assert.ts'
import { type AssetId, assetOf } from '../../src/domain/catalog/assets.ts'
import { chainFacts } from '../../src/domain/catalog/networks.ts'
import { fromChainUnits } from '../../src/domain/money/amount.ts'
import { AWAITED_MS } from '../../src/domain/orders/lock_held.ts'
import { defaultPolicy } from '../../src/engine/default_policy.ts'
import { findUnended, findViolations } from '../harness/invariants.ts'
import { findWrongAmounts } from './amounts_due.ts'
import { findBrokenPromises, findOwed } from './chain_promises.ts'
import { connectSimulated, directLines } from './chains/simulated_chains.ts'
import {
  askFor,
  choose,
  drawAction,
  emergencyActions,
  findTroubled,
  namedForRefund,
  pay,
  type Wanted,
  wantOrder,
} from './customers.ts'
import type { Ground } from './ground.ts'
import type { Step } from './life.ts'
import { findDearPayouts } from './mined_costs.ts'
import { blocksToConfirm, depthMax, type Happening, natureOf, overtake, reorganise, topUp } from './nature.ts'
import { waitForBlocks } from './open_world.ts'
import { judgeViolations } from './owed.ts'
import { type Flaw, Play, type Process } from './play.ts'
import { type Beginning, beginnings, isSwept, type Watched } from './profile.ts'
import { Recorder } from './recorder.ts'
import { findWrongTags, type Names } from './tags.ts'

export type Outcome = {
  readonly seed: number
  /** Of everything that happened, in its order. */
  readonly digest: string
  /** What is wrong at the end; nothing, for an engine that keeps its promises. */
  readonly problems: readonly string[]
  readonly counts: ReadonlyMap<string, number>
}

/**
 * One schedule: processes, clients, chains and faults in an order that the seed decides; then everything is left in
 * peace until it has ended, and whatever was promised is looked at.
 */
export async function runSchedule(
  ground: Ground,
  seed: number,
  options: { readonly flaw?: Flaw; readonly print?: (line: string) => void } = {},
): Promise<Outcome> {
  const recorder = new Recorder(options.print ?? null)
  const play = await openPlay(ground, seed, recorder, options.flaw ?? {})
  const wanted = Array.from({ length: play.profile.orders }, (_, number) => wantOrder(play, number))
  await begin(play, wanted)
  await disturb(play, wanted)
  const problems = [...(await calmDown(play, wanted)), ...(await lookAtEnd(play, wanted))]
  await noteEnd(play)
  return {
    seed,
    digest: recorder.digest(),
    problems: [...play.unexpected, ...problems],
    counts: recorder.counts,
  }
}

async function openPlay(ground: Ground, seed: number, recorder: Recorder, flaw: Flaw): Promise<Play> {
  const play = new Play(ground, seed, recorder, flaw)
  waitForBlocks(play.profile.confirmations)
  play.nodes = await ground.reset(() => play.time.nowMs)
  play.tariffs.look()
  recorder.note('schedule', seed, play.profile)
  for (let number = 1; number <= play.profile.processes; number += 1) {
    const process = play.begin(`p${number}`)
    play.isCalm = true
    await lookNow(play, process, 'market')
    play.isCalm = false
  }
  return play
}

/** Many schedules are about what comes later: until then all goes well. */
async function begin(play: Play, wanted: readonly Wanted[]): Promise<void> {
  const { chance, profile, scheduler } = play
  const [first] = play.processes
  assert(first !== undefined, 'there is a process')
  const isPast = (beginning: Beginning) =>
    beginnings.indexOf(profile.beginsWith) >= beginnings.indexOf(beginning)
  play.isCalm = true
  if (isPast('created')) for (const one of wanted) await askFor(play, first.life, one)
  await scheduler.finish()
  if (isPast('paid')) for (const one of wanted) if (chance.isHit(0.8)) pay(play, one, firstWay(play, one))
  if (profile.beginsWith === 'overtaken') addYoungCoins(play)
  if (profile.beginsWith === 'awaited') await keepWaiting(play, first, wanted)
  if (isPast('confirmed')) await mineAll(play, first, blocksToConfirm)
  if (isPast('exchanged')) await lookNow(play, first, 'exchange')
  if (['unsigned', 'overtaken', 'sent'].includes(profile.beginsWith)) {
    play.isSignerAway = profile.beginsWith === 'unsigned'
    await finishClients(play, first, wanted)
    await lookNow(play, first, 'exchange')
    for (const id of profile.chains) await lookNow(play, first, `payouts ${id}`)
  }
  // Before anybody has looked: what is about to be paid out for, or is written down to be signed, is gone.
  if (profile.beginsWith === 'orphaned' || profile.beginsWith === 'unsigned') {
    for (const id of profile.chains) {
      const depth = play.nodes[id].depth()
      if (depth <= Math.min(chainFacts[id].confirmations, depthMax(id))) reorganise(play, id, depth)
    }
  }
  // What was sent has nothing to spend any more.
  if (profile.beginsWith === 'overtaken') overtake(play)
  play.isCalm = false
}

/** Of who waits not all has come; who has asked for a little less than what is large sends so much. */
function firstWay({ profile: { beginsWith, largeBtc } }: Play, { request }: Wanted) {
  if (beginsWith === 'awaited') return 'under'
  return largeBtc === '0.1' && request.from === 'BTC' && request.amount === '0.08' ? 'over' : null
}

/** Part of it becomes deep enough, what came in time after that stays in a mempool, and the time to wait for it goes by. */
async function keepWaiting(play: Play, first: Process, wanted: readonly Wanted[]): Promise<void> {
  await mineAll(play, first, () => 1)
  for (const one of wanted) pay(play, one)
  await mineAll(play, first, () => 0)
  await mineAll(play, first, blocksToConfirm, () => false)
  play.pass(Math.max(defaultPolicy.lockMs, defaultPolicy.floatOpenMs) + AWAITED_MS)
}

/** So many blocks on each chain, which take everything if nothing else is said, and a look at it. */
async function mineAll(
  play: Play,
  first: Process,
  blocks: (id: Watched) => number,
  takes?: () => boolean,
): Promise<void> {
  for (const id of play.profile.chains) {
    play.nodes[id].mine(blocks(id), takes)
    play.bump(id)
    await lookNow(play, first, `watch ${id}`)
  }
}

/** Each fits a usual payout better than what the reserve has had for long. */
function addYoungCoins({ nodes, ground }: Play): void {
  for (const satoshi of [2_000_000n, 9_000_000n, 15_000_000n, 23_000_000n])
    nodes.BTC.pay([{ address: ground.reserve.bitcoin, satoshi }])
}

/** Turn by turn: somebody who waits goes on, a process begins a look, or something happens outside. */
async function disturb(play: Play, wanted: readonly Wanted[]): Promise<void> {
  const { chance, profile, scheduler } = play
  for (let turn = 0; turn < profile.turns; turn += 1) {
    const waiting = scheduler.waiting()
    const next = waiting[chance.between(0, waiting.length - 1)]
    if (next !== undefined && chance.isHit(0.65)) await next.open()
    else if (!chance.isHit(0.75) || !(await beginStep(play))) await happen(play, wanted)
    await play.bury()
  }
}

/** False: nobody has anything new to look at. */
async function beginStep(play: Play): Promise<boolean> {
  const all = play.processes.flatMap((process) =>
    play.steps(process).map(({ step, hasNews }) => ({ process, step, weight: hasNews ? step.weight : 0 })),
  )
  const chosen = play.chance.weigh(all)
  if (chosen === null) return false
  await play.look(chosen.process, chosen.step)
  return true
}

async function happen(play: Play, wanted: readonly Wanted[]): Promise<void> {
  const chosen = play.chance.weigh([...happeningsWithClients(play, wanted), ...natureOf(play)])
  assert(chosen !== null, 'something can happen')
  play.recorder.note('—', chosen.name)
  await chosen.happen()
  play.tariffs.look()
}

function happeningsWithClients(play: Play, wanted: readonly Wanted[]): Happening[] {
  const { chance, processes } = play
  const alive = processes.filter(({ life }) => life.diedAt === null)
  const [some] = chance.shuffle(alive)
  const dead = processes.filter(({ life }) => life.diedAt !== null)
  const unasked = wanted.find(({ order, asking }) => order === null && asking < 2)
  const unpaid = chance.shuffle(wanted).find((one) => one.order !== null && one.payments < one.paymentsMax)
  return [
    {
      name: 'a client creates',
      weight: some === undefined || unasked === undefined ? 0 : unasked.asking === 0 ? 3 : 0.5,
      happen: async () => {
        if (some !== undefined && unasked !== undefined) await askFor(play, some.life, unasked)
      },
    },
    {
      name: 'a customer pays',
      weight: unpaid === undefined ? 0 : 6,
      happen: () => {
        if (unpaid !== undefined) pay(play, unpaid)
      },
    },
    {
      name: 'clients choose',
      weight: some === undefined ? 0 : 0.7,
      happen: () => chooseTogether(play),
    },
    { name: 'a race', weight: play.profile.races * 0.5, happen: () => race(play) },
    {
      name: 'a process is started again',
      weight: dead.length * 4,
      happen: () => dead[0]?.restart(),
    },
  ]
}

const RACE_TURNS = 120

/**
 * All processes begin most of what they could, and clients choose; then they go on in turns, statement by statement.
 * Whatever is looked at and done without a lock in between comes apart here.
 */
async function race(play: Play): Promise<void> {
  const { chance, scheduler } = play
  play.isRacing = true
  await chooseTogether(play)
  for (const process of play.processes) {
    for (const { step, hasNews } of play.steps(process)) {
      if (hasNews && chance.isHit(0.6)) await play.look(process, step)
    }
  }
  for (let turn = 0; turn < RACE_TURNS; turn += 1) {
    const waiting = scheduler.waiting()
    await waiting[chance.between(0, waiting.length - 1)]?.open()
    await play.bury()
  }
  play.isRacing = false
}

/** Whatever waits for its customer is chosen by several at once. */
async function chooseTogether(play: Play): Promise<void> {
  const { chance, processes } = play
  for (const troubled of await findTroubled(play)) {
    for (let left = chance.between(1, 3); left > 0; left -= 1) {
      const [process] = chance.shuffle(processes.filter(({ life }) => life.diedAt === null))
      if (process === undefined) return
      await choose(play, process.life, troubled, drawAction(chance))
    }
  }
}

const ROUNDS_MAX = 60

const pricesOfPeace = {
  BTC: '65000',
  ETH: '3500',
  USDT: '1',
  USDC: '1',
  BNB: '600',
  XRP: '2',
  XLM: '0.4',
  TRX: '0.3',
  EOS: '0.8',
  SOL: '150',
}

/** No more faults; what is down comes up, what is dry is filled. Everything has to end. */
async function calmDown(play: Play, wanted: readonly Wanted[]): Promise<string[]> {
  const { scheduler, recorder, nodes } = play
  recorder.note('— peace')
  play.isCalm = true
  await scheduler.finish()
  for (const one of wanted) one.isRefused = false
  play.hopeless.clear()
  for (const { status } of await play.ground.rows<{ status: string }>('SELECT status FROM orders'))
    recorder.count(`when peace comes: ${status}`)
  play.hasPrices = true
  play.isSignerAway = false
  play.prices.load(pricesOfPeace)
  for (const id of play.profile.chains) nodes[id].calm()
  play.tariffs.look()
  play.pass(61_000)
  const last = play.begin('last')
  if (nodes.BTC.hasForgotten()) await waitInVain(play, last)
  nodes.BTC.recall()
  for (let round = 1; round <= ROUNDS_MAX; round += 1) {
    const before = await findOpen(play)
    await workOnce(play, last, round, before)
    await finishClients(play, last, wanted)
    await scheduler.finish()
    const open = await findOpen(play)
    if (open.all === 0 && wanted.every(({ order, isRefused }) => order !== null || isRefused)) return []
    goOn(play, round, open)
  }
  return [...(await findUnended(play.ground)), 'it never came to rest']
}

/** What is only forgotten is not given up, however long that lasts and however deep the chain becomes. */
async function waitInVain(play: Play, process: Process): Promise<void> {
  for (let round = 1; round <= 3; round += 1) {
    await workOnce(play, process, round, await findOpen(play))
    play.nodes.BTC.mine(chainFacts.BTC.confirmations)
    play.bump('BTC')
    play.pass(1_900_000)
  }
}

type Open = {
  readonly all: number
  readonly fresh: number
  readonly exchanges: number
  /** Chains on which something arrives or leaves. */
  readonly chains: readonly string[]
}

async function findOpen({ ground, nodes, hopeless }: Play): Promise<Open> {
  const sweeps = await ground.rows<{
    payout_id: string
    asset: AssetId
    units: string
    from_address: string
  }>(
    `SELECT payout_id, asset, units::text AS units, from_address FROM outflows
     WHERE kind = 'sweep' AND from_address IS NOT NULL AND state IN ${LIVE}`,
  )
  // The deposit has left the chain for good: it waits until there is another one at its address, which may be never.
  const empty = sweeps.filter(({ asset, units, from_address }) => {
    const { chain } = assetOf(asset)
    assert(chain !== 'BTC', 'coins are not swept')
    const { units: held } = fromChainUnits(asset, nodes[chain].holds(asset, [from_address]))
    return held < BigInt(units)
  })
  const [open] = await ground.rows<Open>(
    `WITH moving AS (
       SELECT chain FROM outflows WHERE state IN ${LIVE} AND payout_id <> ALL ($1)
       UNION ALL SELECT chain FROM deposits WHERE state IN ('seen', 'mined')
       UNION ALL SELECT chain FROM house_deposits WHERE state = 'mined')
     SELECT (count(*) + (SELECT count(*) FROM moving))::int AS all,
       (count(*) FILTER (WHERE status = 'NEW'))::int AS fresh,
       (count(*) FILTER (WHERE status = 'EXCHANGE'))::int AS exchanges,
       ARRAY(SELECT DISTINCT chain FROM moving) AS chains
     FROM orders WHERE status NOT IN ('DONE', 'REFUNDED', 'EXPIRED') AND (status <> 'EMERGENCY' OR order_id <> ALL ($2))`,
    [empty.map(({ payout_id }) => payout_id), [...hopeless]],
  )
  assert(open !== undefined, 'a count is a row')
  return open
}

/** Looks where there is something to see. */
async function workOnce(play: Play, process: Process, round: number, open: Open): Promise<void> {
  const { chains, sweeps } = play.profile
  await lookNow(play, process, 'market')
  for (const id of chains) await lookNow(play, process, `watch ${id}`)
  if (open.fresh > 0) await lookNow(play, process, 'expire')
  await lookNow(play, process, 'exchange')
  const swept = sweeps ? chains.filter(isSwept) : []
  for (const id of swept) await lookNow(play, process, `sweep plans ${id}`)
  const leaving = [...chains.map((id) => `payouts ${id}`), ...swept.map((id) => `sweeps ${id}`)]
  for (const name of leaving) await workOff(play, process, name)
  if (round % 6 === 0) for (const id of chains) await lookNow(play, process, `reconcile ${id}`)
}

/** Drafted, sent, followed: as long as something is due within a moment. */
async function workOff(play: Play, process: Process, name: string): Promise<void> {
  const calls = () => play.recorder.counts.get('calls') ?? 0
  for (let looks = 0, before = -IDLE_CALLS; looks < 4 && calls() - before > IDLE_CALLS; looks += 1) {
    if (looks > 0) play.pass(1_100)
    before = calls()
    await lookNow(play, process, name)
  }
}

/** What it takes to see that nothing is due. */
const IDLE_CALLS = 3

async function lookNow(play: Play, process: Process, name: string): Promise<void> {
  const found = play.steps(process).find(({ step }) => step.name === name)
  assert(found !== undefined, `${name} is no step under way`)
  if (!found.hasNews) return
  await repeat(play, process, found.step)
}

/** As long as it has more to do, at once. */
async function repeat(play: Play, process: Process, step: Step): Promise<void> {
  do {
    await play.look(process, step)
    await play.scheduler.finish()
  } while (!process.seen.has(step.name))
}

async function finishClients(play: Play, { life }: Process, wanted: readonly Wanted[]): Promise<void> {
  for (const one of wanted) if (one.order === null && !one.isRefused) await askFor(play, life, one)
  for (const troubled of await findTroubled(play)) {
    for (const action of play.chance.shuffle(emergencyActions)) {
      if (await choose(play, life, troubled, action)) break
      await play.scheduler.finish()
    }
  }
}

/** Blocks for what waits, time for what rests; and when that does not help, money and much time. */
function goOn(play: Play, round: number, open: Open): void {
  if (round % 5 === 2) topUp(play)
  for (const id of play.profile.chains) {
    if (!open.chains.includes(id) && play.nodes[id].mempool().length === 0) continue
    play.nodes[id].mine(blocksToConfirm(id) + (round % 3 === 0 ? 4 : 0))
    play.bump(id)
  }
  const isMoving = open.chains.length > 0 || open.exchanges > 0
  play.pass(isMoving && round % 6 !== 0 ? 11_000 : 1_900_000)
}

/** Everything that is promised, asked of the tables and of the chains themselves. */
async function lookAtEnd(play: Play, wanted: readonly Wanted[]): Promise<string[]> {
  const { ground, nodes, profile } = play
  const chains = connectSimulated(directLines(nodes), async () => 'nobody pays any more')
  const watched = new Map(profile.chains.map((id) => [id, chains.get(id)] as const))
  const found = await ground.rows<{ bucket: number }>(
    'SELECT DISTINCT bucket FROM journal UNION SELECT bucket FROM orders',
  )
  const buckets = new Set([0, ...found.map(({ bucket }) => bucket)])
  const violations = await findViolations({
    db: onlyBuckets(ground.db, buckets),
    chains: watched as never,
    clock: {
      nowMs: () => 0,
      wallMs: () => 0,
      fromWallMs: (ms) => ms,
      sleep: async () => {},
      endOfTurn: async () => {},
    },
    rows: ground.rows,
  })
  // A payout that was final and can never be mined again stays owed.
  const owed = await findOwed(ground.rows)
  play.recorder.count('orders that are owed what they were paid', owed.length)
  return [
    ...judgeViolations(violations, owed),
    ...(await findBrokenPromises(ground.rows, nodes, play.witness, wanted)),
    ...(await findWrongAmounts(play, wanted, owed)),
    ...(await findDearPayouts(ground.rows, nodes, play.tariffs)),
    ...(await findWrongTags(ground.rows, nodes, namesOf(wanted), play.recorder)),
  ]
}

function namesOf(wanted: readonly Wanted[]): Names {
  const byOrder = new Map(wanted.map((one) => [one.order?.order_id, one]))
  return {
    payout: (orderId) => {
      const one = byOrder.get(orderId)
      return one === undefined ? null : { address: one.request.destination, told: one.told }
    },
    refund: namedForRefund,
  }
}

/** Answers for buckets in which there is nothing without asking. */
function onlyBuckets(db: Database, buckets: ReadonlySet<number>): Database {
  return {
    ...db,
    transaction: (work) =>
      db.transaction((tx) =>
        work({
          query: async (text, values) => {
            const isElsewhere = /bucket = \$1/.test(text) && !buckets.has(Number(values?.[0]))
            return isElsewhere ? [] : tx.query(text, values)
          },
        }),
      ),
  }
}

/** The end is part of what happened. */
async function noteEnd({ ground, recorder, scheduler }: Play): Promise<void> {
  const events = await ground.rows<{ order_id: string; move: string }>(
    `SELECT order_id, coalesce(previous_status, '') || '→' || status AS move FROM events ORDER BY order_id, sequence`,
  )
  for (const { move } of events) recorder.count(`move: ${move}`)
  recorder.note(events)
  const facts = await ground.rows<{ fact_key: string; outcome: string }>(
    'SELECT order_id, fact_key, kind, outcome, at_ms FROM facts ORDER BY 1, 2',
  )
  for (const { fact_key, outcome } of facts)
    if (fact_key.startsWith('awaited:')) recorder.count(`judged by time: ${outcome}`)
  recorder.note(facts)
  recorder.note(
    await ground.rows(
      'SELECT owner, entry_key, line, asset, debit, credit, units::text, at_ms FROM journal ORDER BY 1, 2, 3',
    ),
  )
  const outflows = await ground.rows<{ kind: string; chain: string; state: string; attempts: number }>(
    `SELECT kind, chain, state, count(a.attempt)::int AS attempts FROM outflows LEFT JOIN attempts a USING (bucket, payout_id)
     GROUP BY bucket, payout_id ORDER BY bucket, payout_id`,
  )
  for (const { kind, chain, state, attempts } of outflows) {
    recorder.count(`outflow: ${kind} ${state}`)
    if (attempts > 1) recorder.count(`raised outflows: ${chain}`)
    if (kind === 'payout' && state === 'confirmed') recorder.count(`payouts: ${chain}`)
  }
  recorder.count('waits for locks', scheduler.waits)
}
