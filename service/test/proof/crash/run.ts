import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from '../../harness/chance.ts'
import { eventually } from '../../harness/eventually.ts'
import { findUnended, findViolations, type Inspected } from '../../harness/invariants.ts'
import { type Counter, type Customer, newCustomer, serveCustomer, type Wish } from './customers.ts'
import { type Settled, settle } from './settled.ts'
import type { Ground, Stage } from './stage.ts'
import { buryFollowed, openBoard, openMine, openWallets, repeat, untilAnswered } from './trade.ts'

/** So many customers are served at a time. */
const OPEN_MAX = 60
const LOOK_REST_MS = 200

export type Plan = {
  readonly chance: Chance
  /** The next customer, or null: no more come. */
  next(number: number): Wish | null
  /** True once for every reorganisation that somebody waits for. */
  takeReorgWish(): boolean
  /** Nobody dies any more; what is left has to come to its end. */
  calm(): void
  /** Ends as soon as something is certainly wrong. */
  readonly isHasty: boolean
  /** How long the last orders may take to their end. */
  readonly patienceMs: number
}

export type Run = {
  readonly customers: readonly Customer[]
  readonly settled: Settled
  /** Everything that is wrong, a sentence each. */
  readonly problems: readonly string[]
}

/** Lets customers in, a few at a time, serves them until all have what is theirs, and then looks at everything. */
export async function runTrade(ground: Ground, stage: Stage, plan: Plan): Promise<Run> {
  const { devnet } = ground
  const { fleet, inspected, client } = stage
  const customers: Customer[] = []
  const open = new Set<Customer>()
  const failures: string[] = []
  let certain: readonly string[] = []
  const isOpen = () => failures.length + fleet.faults.length + certain.length === 0
  const fail = (error: unknown) => void failures.push(String(error))
  const board = openBoard(inspected, () => [...open].flatMap(({ order }) => order?.order_id ?? []), fail)
  const counter: Counter = { devnet, client, board, isOpen }
  const background = [
    board,
    repeat(openMine(devnet, inspected, plan.takeReorgWish), 200, fail),
    repeat(
      openWallets(devnet, () => [...open]),
      1_000,
      fail,
    ),
    repeat(async () => fleet.rearm('the patient'), 250, fail),
    repeat(
      async () => {
        if (plan.isHasty) certain = (await settle(devnet, inspected, customers)).certain
      },
      300,
      fail,
    ),
  ]
  fleet.rearm('all')
  const serve = (customer: Customer) => {
    customers.push(customer)
    open.add(customer)
    serveCustomer(counter, customer).then(() => open.delete(customer), fail)
  }
  for (let wish = plan.next(0); wish !== null && isOpen(); wish = plan.next(customers.length)) {
    serve(await newCustomer(wish, devnet, plan.chance))
    while (open.size >= OPEN_MAX && isOpen()) await pause(20)
  }
  plan.calm()
  fleet.rearm('all')
  const untilMs = performance.now() + plan.patienceMs
  while (isOpen() && open.size > 0 && performance.now() < untilMs) await pause(20)
  for (const one of background) await one.stop()
  // The last death may have been its own, and nobody may have been told yet.
  await eventually('PostgreSQL is back', () => inspected.rows('SELECT 1'), {
    timeoutMs: 120_000,
    context: () => [...fleet.faults, ...failures].join('\n'),
  })
  const problems = isOpen()
    ? await findProblems(ground, stage, plan.patienceMs)
    : [...certain, ...fleet.faults, ...failures]
  const settled = await untilAnswered(() => settle(devnet, inspected, customers), LOOK_REST_MS)
  return { customers, settled, problems: [...problems, ...settled.problems] }
}

/** What is still wrong when nothing is on its way any more, or when patience is over. */
async function findProblems({ devnet }: Ground, stage: Stage, patienceMs: number): Promise<string[]> {
  const { inspected, fleet } = stage
  await fleet.allUp()
  const untilMs = performance.now() + patienceMs
  for (;;) {
    const isOver = performance.now() > untilMs
    const problems = await untilAnswered(async () => {
      await buryFollowed(devnet, inspected)
      const left = await findLive(inspected)
      return left.length > 0 && !isOver ? left : [...left, ...(await findViolations(inspected))]
    }, LOOK_REST_MS)
    if (problems.length === 0) return []
    if (isOver) return [...(await findUnended(inspected)), ...problems]
    await pause(LOOK_REST_MS)
  }
}

/** What is on its way, for how long, and what it says of itself: a queue that moves looks otherwise than one that stands. */
async function findLive({ rows }: Inspected): Promise<string[]> {
  const live = await rows<{ payout_id: string; state: string; trouble: string | null; seconds: number }>(
    `SELECT payout_id, state, trouble, round(extract(epoch FROM now()) - planned_at_ms / 1000)::int AS seconds
     FROM outflows WHERE state IN ('planned', 'signed', 'broadcast')`,
  )
  return live.map(
    ({ payout_id, state, trouble, seconds }) =>
      `${payout_id} is still ${state} after ${seconds} s${trouble === null ? '' : `: ${trouble}`}`,
  )
}
