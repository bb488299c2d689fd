import type { Chain, DraftRejection, FeeBid, Funds } from '../../chains/chain.ts'
import { reserveAddresses } from '../../db/addresses.ts'
import { readHead } from '../../db/chain_heads.ts'
import { readOpened } from '../../db/opened_assets.ts'
import { planOutflow } from '../../db/outflows.ts'
import {
  beginSweep,
  claimUnswept,
  holdsOnlyGas,
  isAnyUnsweptDue,
  REST_MAX_MS,
  restUnswept,
  type UnsweptAddress,
} from '../../db/unswept.ts'
import { assert } from '../../domain/assert.ts'
import { type AssetId, assetOf, nativeAsset } from '../../domain/catalog/assets.ts'
import { type Amount, amountOf, fromChainUnits, toChainUnits } from '../../domain/money/amount.ts'
import { larger } from '../../domain/money/larger.ts'
import type { Outflow, OutflowSource } from '../../domain/payouts/intent.ts'
import { type Holding, nextSweepStep, sweepIdOf } from '../../domain/payouts/sweep.ts'
import { costIn } from '../../domain/quotes/quote.ts'
import { isOutflowStopped } from '../books/stopped_outflows.ts'
import { deepHeight } from '../deep_height.ts'
import { type FailureTeller, openTeller } from '../loop.ts'
import { excludesByTime } from '../payouts/over.ts'
import type { World } from '../world.ts'
import { gasCostOf } from './gas_cost.ts'

/**
 * Addresses that are looked at in a step, and live sweeps of a chain. Each of these is looked for with every block until it is in one;
 * with a hundred, Ethereum moves more than twenty thousand deposits of tokens a day, which take two each.
 */
const LIMITS = { step: 20, liveMax: 100 } as const
/** Prices creep, and bringing takes a third of what a token's transfer does: where a little is missing, a fourth of all is brought. */
const SHARE_BROUGHT_LEAST = 4n
/** What was swept a moment ago is looked at again after this: blocks have to pass that a balance may be older by. */
const TOO_SOON_MS = 5_000
/** A look is over long before; what a worker that died had taken is due again after this. */
const LOOK_MS = 60_000

/**
 * Plans what is worth moving from deposit addresses to the reserve, whatever becomes of their orders: the ledger's
 * `wallet` is all our addresses together, and what is owed is paid from the reserve. True: there may be more. Rejects when something
 * is due and the node does not answer.
 */
export async function planSweeps(
  world: World,
  chain: Chain,
  teller: FailureTeller = openTeller(world.clock),
): Promise<boolean> {
  const unseen: Unseen[] = []
  const hasMore = await planDue(world, chain, unseen)
  tellUnseen(world, chain, unseen, teller)
  return hasMore
}

async function planDue(world: World, chain: Chain, unseen: Unseen[]): Promise<boolean> {
  const { policy, clock, db } = world
  if (policy.sweepCostMultiple === 0n || (await isOutflowStopped(db, chain.id))) return false
  if (!(await isAnyUnsweptDue(db, chain.id, clock.nowMs(), LIMITS))) return false
  // A node that is away fails the step before anything is taken: the loop tells of it once and rests, and no address has to wait for it.
  // Each look asks anew all the same: how far back it reads is what it costs where a balance is worked out of the blocks since.
  await deepHeight(db, chain)
  const nowMs = clock.nowMs()
  const time = { nowMs, dueAtMs: nowMs + LOOK_MS }
  const claimed = await claimUnswept(db, chain.id, time, LIMITS)
  for (const taken of claimed) {
    const next = await lookSafely(world, chain, taken, unseen)
    if (next === 'too soon') await restUnswept(db, taken, nowMs + Math.min(TOO_SOON_MS, policy.sweepRestMs))
    else if (next === 'unknown') await restUnswept(db, taken, nowMs + policy.sweepRestMs)
    else if (next === null || !(await plan(world, taken, next))) await rest(world, taken)
  }
  return claimed.length === LIMITS.step
}

/** Whether the node is still on the branch that the watcher has read. */
async function standsOnOurBranch({ db }: World, chain: Chain): Promise<boolean> {
  const head = await readHead(db, chain.id)
  return head !== null && (await chain.blockHash(head.block.height)) === head.block.hash
}

/**
 * Null: nothing is worth it. Unknown: it could not be seen or moved, has no price, or is more than the reserve can pay for at present,
 * which says nothing about how soon it will be worth it. Too soon: what a node tells may still be of before it was swept last.
 */
type Next = Outflow | null | 'unknown' | 'too soon'

/** An address that could not be looked at, and why. */
type Unseen = { readonly address: string; readonly error: unknown }

async function lookSafely(
  world: World,
  chain: Chain,
  taken: UnsweptAddress,
  unseen: Unseen[],
): Promise<Next> {
  try {
    const next = await nextOutflow(world, chain, taken)
    // Asked after the look: on another branch a sweep of ours may be undone, and nobody has heard of it yet.
    return (await standsOnOurBranch(world, chain)) ? next : 'unknown'
  } catch (error) {
    // The money lies where it lay; the next look may find the node in a better mood.
    unseen.push({ address: taken.address, error })
    return 'unknown'
  }
}

/** A node may answer everything else and refuse what each of thousands of addresses holds: one of them is told of. */
function tellUnseen(
  { log }: World,
  chain: Chain,
  [first, ...others]: readonly Unseen[],
  teller: FailureTeller,
): void {
  if (first === undefined) {
    teller.succeeded()
    return
  }
  const { failures, isNews } = teller.failed()
  if (!isNews) return
  const facts = { chain: chain.id, address: first.address, others: others.length, failures, err: first.error }
  log.warn(facts, 'addresses could not be looked at')
}

async function nextOutflow(world: World, chain: Chain, taken: UnsweptAddress): Promise<Next> {
  const [reserve] = await reserveAddresses(world.db, chain.family)
  assert(reserve !== undefined, `the reserve address of ${chain.id} is known`)
  const from: OutflowSource = { key: { purpose: 'deposit', index: taken.keyIndex }, address: taken.address }
  const payoutId = sweepIdOf(chain.id, taken.keyIndex, taken.sweepCount + 1)
  const sweepOf = ({ asset, units }: Amount): Outflow => ({
    payoutId,
    kind: 'sweep',
    asset,
    units,
    address: reserve,
    tag: null,
    from,
  })
  const height = await deepHeight(world.db, chain)
  // Of several nodes behind one address one may be behind: it tells of money that has been swept, and of no gas that was brought.
  if (height < taken.sweptHeight)
    throw new Error(`the node of ${chain.id} is not as far yet as when ${taken.address} was swept last`)
  const wasSwept = taken.sweptHeight > 0
  if (wasSwept && height < taken.sweptHeight + (chain.balanceLagBlocks ?? 0)) return 'too soon'
  const { holdings, isHindered } = await readHoldings(world, chain, taken, height, sweepOf)
  const step = nextSweepStep(holdings, world.policy.sweepCostMultiple)
  const mayChange = isHindered || holdings.some(({ cost }) => cost === null)
  if (step === null) return mayChange ? 'unknown' : null
  // The token that gas was brought for may be moved in a moment: swept back meanwhile, it would be brought again.
  const isNative = step.amount.asset === nativeAsset(chain.id).id
  if (step.kind === 'sweep' && isNative && mayChange && (await holdsOnlyGas(world.db, taken)))
    return 'unknown'
  if (step.kind === 'sweep') return sweepOf(step.amount)
  const { asset, units } = step.amount
  const gas: Outflow = { payoutId, kind: 'sweep', asset, units, address: taken.address, tag: null }
  // A reserve that cannot spare it is asked again later, and takes no nonce meanwhile.
  return (await chain.bid(gas)).ok ? gas : 'unknown'
}

/**
 * What is deep at the address, as of `height`, tokens first, as far as it can be moved at present, and whether what keeps the rest may pass soon. An
 * asset that is not opened yet (`openAssets`) stays where it came: at the reserve it would be taken for capital.
 */
async function readHoldings(
  world: World,
  chain: Chain,
  { address }: UnsweptAddress,
  height: number,
  sweepOf: (amount: Amount) => Outflow,
): Promise<{ readonly holdings: readonly Holding[]; readonly isHindered: boolean }> {
  const native = nativeAsset(chain.id).id
  const heldOf = (asset: AssetId) => chain.balance(asset, [address], height)
  const heldGas = await heldOf(native)
  const holdings: Holding[] = []
  let isHindered = false
  const opened = await readOpened(world.db, chain.assets)
  for (const asset of [...chain.assets.filter((id) => id !== native && opened.has(id)), native]) {
    const amount = amountOf(asset, asset === native ? heldGas : await heldOf(asset))
    if (amount.units === 0n) continue
    const bid = await chain.bid(sweepOf(amount))
    if (bid.ok) holdings.push(toHolding(world, chain, sweepOf(amount), bid.value, heldGas))
    else if (mayPass(bid.rejection, asset === native)) isHindered = true
  }
  return { holdings, isHindered }
}

/** The node may answer in a moment, the token may move again, and whoever pays for a token (on Solana the reserve) may be funded. */
function mayPass({ code }: DraftRejection, isNative: boolean): boolean {
  return code === 'network' || (code === 'funds' && !isNative)
}

function toHolding(world: World, chain: Chain, sweep: Outflow, bid: FeeBid, heldGas: bigint): Holding {
  assert(sweep.from !== undefined, 'a sweep leaves a deposit address')
  const { id: native } = nativeAsset(chain.id)
  const isNative = sweep.asset === native
  const gas = gasCostOf(bid)
  const held = toChainUnits(amountOf(native, heldGas))
  const funds: Funds = excludesByTime(chain)
    ? { model: 'timed', from: sweep.from.key, held }
    : { model: 'account', from: sweep.from.key, nonce: 0, heldWei: held }
  const hasGas = isNative || chain.draft(sweep, bid, funds).ok
  const bringing = hasGas ? 0n : gas.bringing
  const missing = gas.most > held ? larger(gas.most - held, gas.most / SHARE_BROUGHT_LEAST) : 0n
  return {
    amount: amountOf(sweep.asset, sweep.units),
    cost: costOf(world, sweep.asset, fromChainUnits(native, gas.most + bringing)),
    hasGas,
    missingGas: fromChainUnits(native, missing),
  }
}

function costOf({ prices }: World, asset: AssetId, cost: Amount): Amount | null {
  if (asset === cost.asset) return cost
  const nativePrice = prices.usd(assetOf(cost.asset).currency)
  const price = prices.usd(assetOf(asset).currency)
  return nativePrice === null || price === null ? null : costIn(assetOf(asset), cost, nativePrice, price)
}

/** False: another worker was first. */
async function plan({ db, clock, log }: World, taken: UnsweptAddress, outflow: Outflow): Promise<boolean> {
  const isPlanned = await db.transaction(async (tx) => {
    if (!(await beginSweep(tx, taken, outflow.payoutId))) return false
    await planOutflow(tx, outflow, clock.nowMs())
    return true
  })
  const { payoutId, asset, from } = outflow
  if (isPlanned)
    log.info({ payout: payoutId, asset }, from === undefined ? 'gas is brought' : 'a deposit is swept')
  return isPlanned
}

/** Looked at again when the last booking is twice as long ago: what is never worth it costs ever less. */
async function rest({ db, clock, policy }: World, taken: UnsweptAddress): Promise<void> {
  const nowMs = clock.nowMs()
  const ageMs = Math.min(REST_MAX_MS, nowMs - taken.bookedAtMs)
  await restUnswept(db, taken, nowMs + Math.max(policy.sweepRestMs, ageMs))
}
