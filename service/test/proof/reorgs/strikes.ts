import { CambistError } from '@cambist/sdk'
import { defaultPolicy } from '../../../src/engine/default_policy.ts'
import { bnbToEth, btcToUsdt, ethToUsdc, quickPair, usdcToBnb, usdtToBtc } from '../../harness/orders.ts'
import { type ForkingChain, forkingChains } from './chain_diary.ts'
import { bnbToUsdt, LARGE_BTC, type Scene, setScene, trxToEth } from './scenes.ts'
import {
  fillFaucetGaps,
  mine,
  notePayment,
  type Payment,
  pay,
  placeOrder,
  type Storm,
  type StormOrder,
  underWay,
  unitsOf,
} from './storm.ts'
import { reorganise } from './storm_reorg.ts'

export const replacements = ['another amount', 'another address', 'a higher fee'] as const

/** One thing that a chain does to those who rely on it. `scene`: what is made sure that it meets; null: what there is. */
export type Strike = { readonly chain: ForkingChain; readonly scene: Scene | null } & (
  | { readonly kind: 'reorg'; readonly depth: number }
  | { readonly kind: 'replacement'; readonly how: (typeof replacements)[number] }
)

const pairs = [btcToUsdt, usdtToBtc, ethToUsdc, usdcToBnb, bnbToEth, quickPair, trxToEth, bnbToUsdt]
const ORDERS_UNDER_WAY = 14

/** Life goes on: orders come, are paid in all manners and decided about, and blocks come. Then the strike. */
export async function strikeOnce(storm: Storm, strike: Strike): Promise<void> {
  const { sandbox, chance } = storm
  await placeOrders(storm)
  for (const order of await underWay(storm)) {
    if (order.stage === 'NEW' && chance.happens(0.6)) await payFirst(storm, order)
    if (order.stage === 'EMERGENCY' && chance.happens(0.5)) await chooseAction(storm, order)
  }
  for (const chain of forkingChains) {
    if (chance.happens(0.7)) await mine(storm, chain, chance.pick(chain === 'BTC' ? [1, 1, 2, 3] : [1, 4, 9]))
  }
  // Half of the strikes come while the service is still busy with what was before.
  if (chance.happens(0.5)) await sandbox.settle()
  if (strike.scene !== null) await setScene(storm, strike.chain, strike.scene)
  if (strike.kind === 'reorg') await reorganise(storm, strike.chain, strike.depth)
  else await replaceDeposit(storm, strike.how)
  // What rests until it looks again does so now.
  await sandbox.remote.advanceClock(1)
}

/**
 * The storm is over: everything that waits is mined and buried, and whoever is asked decides, until every order has ended.
 * Answers how many outflows were in trouble still after many rounds, and says of them what is known. They get the half hour after
 * which the service gives up what the network refuses: one whose coins were replaced below a deep reorganisation, say.
 */
export async function calmDown(storm: Storm): Promise<number> {
  const { sandbox } = storm
  let inTrouble = 0
  const untilMs = performance.now() + PATIENCE_MS
  for (let rounds = 0; ; rounds += 1) {
    for (const chain of ['ETH', 'BNB'] as const) await fillFaucetGaps(storm, chain)
    for (const chain of forkingChains) await mine(storm, chain, BURIED[chain])
    await sandbox.settle()
    await sandbox.remote.advanceClock(1)
    const left = (await underWay(storm)).filter(({ stage }) => stage !== 'NEW' && stage !== 'DONE')
    if (left.length === 0 && !(await isAnythingLeaving(storm))) break
    if (rounds > ROUNDS_ENOUGH && performance.now() > untilMs)
      throw new Error(
        `no calm: ${left.map((one) => `${one.created.order_id} ${one.stage}`)}\n${await tellLive(storm)}`,
      )
    for (const order of left) if (order.stage === 'EMERGENCY') await chooseAction(storm, order)
    if (rounds === ROUNDS_ENOUGH) {
      inTrouble = await countInTrouble(storm)
      if (inTrouble > 0) {
        console.warn(`in trouble still:\n${await tellLive(storm)}`)
        await sandbox.remote.advanceClock(defaultPolicy.stallMs / 1_000 + 60)
      }
    }
  }
  // What was never paid, or lost its payment for good, expires.
  await sandbox.remote.advanceClock(16 * 60)
  return inTrouble
}

/** Whatever waits is mined, and final. */
const BURIED = { BTC: 7, ETH: 14, BNB: 14, TRX: 21 } as const
/** What is on its way is looked at by workers of the service, which on a busy machine are slower than rounds. */
const ROUNDS_ENOUGH = 20
const PATIENCE_MS = 90_000

const IS_LIVE = `state IN ('planned', 'signed', 'broadcast', 'orphaned')`

async function isAnythingLeaving({ sandbox }: Storm): Promise<boolean> {
  const live = await sandbox.rows(`SELECT payout_id FROM outflows WHERE ${IS_LIVE} LIMIT 1`)
  return live.length > 0
}

async function countInTrouble({ sandbox }: Storm): Promise<number> {
  const [row] = await sandbox.rows<{ count: string }>(
    `SELECT count(*) FROM outflows WHERE trouble IS NOT NULL AND ${IS_LIVE}`,
  )
  return Number(row?.count ?? 0)
}

/** What has not come to its end, and all that is known of it. */
async function tellLive({ sandbox }: Storm): Promise<string> {
  const rows = await sandbox.rows<{ known: string }>(
    `SELECT jsonb_build_object('outflow', to_jsonb(o), 'attempts',
       (SELECT jsonb_agg(to_jsonb(a) - 'bytes' ORDER BY a.attempt) FROM attempts a WHERE a.payout_id = o.payout_id))::text AS known
     FROM outflows o WHERE ${IS_LIVE} ORDER BY planned_at_ms LIMIT 20`,
  )
  return rows.map(({ known }) => known).join('\n')
}

async function placeOrders(storm: Storm): Promise<void> {
  const { chance } = storm
  const free = ORDERS_UNDER_WAY - (await underWay(storm)).filter(({ stage }) => stage !== 'DONE').length
  for (let placed = 0; placed < free; placed += 1) {
    const pair = chance.pick(pairs)
    await placeOrder(storm, pair, {
      rate_type: chance.happens(0.7) ? 'fixed' : 'float',
      ...(pair.from === 'BTC' && chance.happens(0.4) && { amount: LARGE_BTC }),
    })
  }
}

/** As asked mostly; otherwise too little, too much, or in two halves. */
async function payFirst(storm: Storm, order: StormOrder): Promise<void> {
  const asked = unitsOf(order, order.created.deposit_amount)
  const way = storm.chance.below(10)
  if (way < 6) await pay(storm, order, asked)
  else if (way === 6) await pay(storm, order, (asked * 7n) / 10n)
  else if (way === 7) await pay(storm, order, (asked * 3n) / 2n)
  else for (const half of [asked / 2n, asked - asked / 2n]) await pay(storm, order, half)
}

async function chooseAction({ sandbox, chance }: Storm, { created }: StormOrder): Promise<void> {
  const action = chance.pick(['continue', 'recalculate', 'refund', 'refund'] as const)
  try {
    await sandbox.client.chooseEmergencyAction(created.order_id, { action })
  } catch (error) {
    // A reorganisation was quicker, or there is too little for this choice: another one comes.
    if (!(error instanceof CambistError) || !REFUSALS.has(error.code)) throw error
  }
}

const REFUSALS: ReadonlySet<string> = new Set(['NOT_EMERGENCY', 'INVALID_ACTION', 'MAINTENANCE'])

/** Replaces a deposit that waits in a mempool: one of the stage that was struck least so far. */
async function replaceDeposit(storm: Storm, how: (typeof replacements)[number]): Promise<void> {
  const targets = (await underWay(storm)).toSorted(
    (one, other) => storm.struck.replacement[one.stage] - storm.struck.replacement[other.stage],
  )
  for (const order of targets) {
    const waiting = order.payments.findLast(({ txHash }) => storm.diaries[order.chain].depthOf(txHash) === 0)
    const isReplaced =
      (waiting !== undefined && (await replace(storm, order, waiting, how))) ||
      (await replaceFurther(storm, order, how))
    if (!isReplaced) continue
    storm.struck.replacement[order.stage] += 1
    return
  }
  throw new Error('there was no deposit that could be replaced')
}

/** One more payment than was asked for, which the service may see before it is replaced. */
async function replaceFurther(
  storm: Storm,
  order: StormOrder,
  how: (typeof replacements)[number],
): Promise<boolean> {
  const units = unitsOf(order, order.created.deposit_amount) / 3n
  const txHash = await pay(storm, order, units)
  if (storm.chance.happens(0.5)) await storm.sandbox.settle(order.chain)
  return replace(storm, order, { txHash, units }, how)
}

/** False: the network does not have it any more, or something was built on it already. */
async function replace(
  { sandbox }: Storm,
  { payments }: StormOrder,
  { txHash, units }: Payment,
  how: (typeof replacements)[number],
): Promise<boolean> {
  const less = (units * 9n) / 10n
  const wanted =
    how === 'another amount' ? { units: less } : how === 'a higher fee' ? { feeBumpOnly: true } : {}
  try {
    const replaced = await sandbox.devnet.replace(txHash, wanted)
    if (how !== 'another address') {
      notePayment(payments, { txHash: replaced.txHash, units: how === 'another amount' ? less : units })
    }
    return true
  } catch {
    return false
  }
}
