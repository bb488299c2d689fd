import type { Chain } from '../chains/chain.ts'
import {
  type AddressScope,
  type BooksOfChain,
  readBooksOfChain,
  type UnbookedAttempt,
} from '../db/books_of_chain.ts'
import type { Database, Sql } from '../db/database.ts'
import { type Comparison, findDiffering, isComparisonDue, saveComparison } from '../db/reconciliations.ts'
import { assert } from '../domain/assert.ts'
import { type AssetId, nativeAsset } from '../domain/catalog/assets.ts'
import { type ChainId, chainFacts } from '../domain/catalog/networks.ts'
import { amountOf, exactAmount, fromChainUnits } from '../domain/money/amount.ts'
import { HOUR_MS } from '../domain/time.ts'
import type { World } from './world.ts'

/**
 * Ledger against chain, to the unit. A ledger that balances proves nothing by itself (every double payout balances
 * too), so the chain is asked what it holds and the two must agree.
 *
 * How a difference is told from money in flight, without guessing:
 * 1. The books are read in one snapshot, together with the block H that the watcher stands on. Everything that was
 *    mined up to H is in them: deposits that are deep are booked, others lie in the tables as `mined`. What was mined
 *    above H is left out of both sides.
 * 2. The chain is asked at H: account chains by height; a coin chain only knows "now", so a comparison counts only
 *    when its head is H before and after. Account chains must still have our H afterwards. Otherwise: inconclusive.
 * 3. An outflow is booked when it is deep. One that is not booked yet may be mined, so each of its transactions is
 *    looked up; if one is in a block up to H, its units and its cost are gone from the chain. At most one for each
 *    outflow: a second one that was mined as well is a double payment, and has to show as a difference.
 * 4. A booked outflow is mined at H or below, as long as the watcher is less than the required confirmations behind
 *    the node. Otherwise: inconclusive.
 * So what remains is no race of ours. Nodes may still lie for a moment (several behind one address): outflows stop
 * after `DIFFERENCES_TO_STOP` comparisons in a row and go on as soon as one finds no difference.
 */
export async function reconcileChain(world: World, chain: Chain): Promise<ComparedChain | null> {
  const startedWallMs = world.clock.wallMs()
  if (!(await isComparisonDue(world.db, chain.id, startedWallMs))) return null
  const givenSinceMs = world.clock.nowMs() - EMPTY_ADDRESS_MEMORY_MS
  const compared = await compareChain(world.db, chain, { kind: 'held', givenSinceMs })
  if (compared.kind === 'compared') {
    const wallMs = world.clock.wallMs()
    await saveComparisons(
      world,
      chain.id,
      compared.comparisons,
      wallMs + (wallMs - startedWallMs) * RESTS_PER_WORK,
    )
  }
  return compared
}

/** How long an address that never received anything is asked for continuously; the audit asks for all of them. */
const EMPTY_ADDRESS_MEMORY_MS = 7 * 24 * HOUR_MS
/** A comparison takes longer with every order; it never takes more than a tenth of the time. */
const RESTS_PER_WORK = 9
const DIFFERENCES_TO_STOP = 3

/** Whether so many differing comparisons in a row stop outflows. */
export function isStopping(differingCount: number): boolean {
  return differingCount >= DIFFERENCES_TO_STOP
}

/** Whether nothing new may be signed or sent on this chain, because it and the ledger disagree. */
export async function isOutflowStopped(sql: Sql, chain: ChainId): Promise<boolean> {
  return (await findDiffering(sql, chain, DIFFERENCES_TO_STOP)).length > 0
}

async function saveComparisons(
  world: World,
  chain: ChainId,
  comparisons: readonly Comparison[],
  dueWallMs: number,
): Promise<void> {
  const nowMs = world.clock.nowMs()
  const counts = await world.db.transaction(async (tx) => {
    const saved = []
    for (const comparison of comparisons) {
      saved.push({ comparison, ...(await saveComparison(tx, chain, comparison, { nowMs, dueWallMs })) })
    }
    return saved
  })
  for (const { comparison, before, now } of counts) tell(world, chain, comparison, before, now)
}

function tell(world: World, chain: ChainId, comparison: Comparison, before: number, now: number): void {
  const { asset, height, ledgerUnits, chainUnits, difference } = comparison
  const show = (units: bigint) => exactAmount(amountOf(asset, units))
  const facts = {
    chain,
    asset,
    height,
    ledger: show(ledgerUnits),
    onChain: show(chainUnits),
    difference: show(difference),
  }
  if (now === 1) world.log.warn(facts, 'ledger and chain differ')
  if (now === DIFFERENCES_TO_STOP) {
    world.log.error(
      facts,
      'ledger and chain differ and nothing explains it: outflows of the chain are stopped',
    )
  }
  if (now !== 0 || before === 0) return
  // As loud as the difference was: whoever read of the stop must read of its end.
  if (isStopping(before)) world.log.warn(facts, 'ledger and chain agree: outflows go on')
  else world.log.info(facts, 'ledger and chain agree again')
}

export type ComparedChain =
  | {
      readonly kind: 'compared'
      readonly comparisons: readonly Comparison[]
      /** Coin chains: what our own list of coins adds up to, in ledger units; what payouts are made from. */
      readonly coins: { readonly asset: AssetId; readonly units: bigint } | null
    }
  /** Nothing can be said now, and why; another look in a moment will tell. */
  | { readonly kind: 'inconclusive'; readonly why: string }

/** Compares every asset of the chain at one block; changes nothing. */
export async function compareChain(db: Database, chain: Chain, scope: AddressScope): Promise<ComparedChain> {
  const books = await readBooksOfChain(db, chain.id, scope)
  if (books === null) return { kind: 'inconclusive', why: `${chain.id} was never looked at` }
  const before = await whyUnsettled(chain, books)
  if (before !== null) return { kind: 'inconclusive', why: before }
  const left = await readLeaving(chain, books)
  const comparisons: Comparison[] = []
  for (const asset of chain.assets) {
    comparisons.push(await compareAsset(chain, books, asset, left.units.get(asset) ?? 0n))
  }
  const after = await whyUnsettled(chain, books)
  if (after !== null) return { kind: 'inconclusive', why: after }
  return {
    kind: 'compared',
    comparisons,
    coins: chain.model === 'coins' ? coinsOf(chain, books, left) : null,
  }
}

async function compareAsset(
  chain: Chain,
  { head, wallet, arriving, addresses }: BooksOfChain,
  asset: AssetId,
  leaving: bigint,
): Promise<Comparison> {
  const height = chain.model === 'account' ? [head.height] : []
  const chainUnits = await chain.balance(asset, addresses, ...height)
  const inFlight = (arriving.get(asset) ?? 0n) - leaving
  const ledgerUnits = (wallet.get(asset) ?? 0n) + inFlight
  return {
    asset,
    height: head.height,
    ledgerUnits,
    inFlight,
    chainUnits,
    difference: chainUnits - ledgerUnits,
  }
}

/** Null: the block of the books is what the node answers for, and everything booked is at or below it. */
async function whyUnsettled(chain: Chain, { head }: BooksOfChain): Promise<string | null> {
  const node = await chain.head()
  if (chain.model === 'coins') {
    return node.hash === head.hash
      ? null
      : `${chain.id} is at block ${node.height}, the books at ${head.height}`
  }
  const behind = node.height - head.height
  if (behind < 0) return `the node of ${chain.id} is ${-behind} blocks behind the books`
  if (behind >= chainFacts[chain.id].confirmations) return `the books are ${behind} blocks behind ${chain.id}`
  const hash = await chain.blockHash(head.height)
  return hash === head.hash ? null : `${chain.id} no longer has block ${head.height} of the books`
}

type Leaving = { readonly units: ReadonlyMap<AssetId, bigint>; readonly coinsGone: ReadonlySet<string> }

const LOOKUPS_AT_ONCE = 16

/** What mined transactions of unbooked outflows took from the chain already. */
async function readLeaving(chain: Chain, { attempts, head }: BooksOfChain): Promise<Leaving> {
  const native = nativeAsset(chain.id).id
  const units = new Map<AssetId, bigint>()
  const minedPayouts = new Set<string>()
  const coinsGone = new Set<string>()
  const take = (asset: AssetId, taken: bigint) => units.set(asset, (units.get(asset) ?? 0n) + taken)
  for (let first = 0; first < attempts.length; first += LOOKUPS_AT_ONCE) {
    const some = attempts.slice(first, first + LOOKUPS_AT_ONCE)
    const found = await Promise.all(
      some.map(async (attempt) => ({ attempt, tx: await chain.lookup(attempt.txHash) })),
    )
    for (const { attempt, tx } of found) {
      if (tx.where !== 'block' || tx.block.height > head.height || minedPayouts.has(attempt.payoutId))
        continue
      assert(tx.cost.asset === native, `${chain.id} is paid in ${native}`)
      minedPayouts.add(attempt.payoutId)
      // The coins stay those of the outflow that was stuck until the filler is deep, for either may yet be mined.
      coinsGone.add(attempt.fills ?? attempt.payoutId)
      take(native, tx.cost.units)
      if (tx.succeeded && leavesUs(attempt)) take(attempt.asset, attempt.units)
    }
  }
  return { units, coinsGone }
}

/** Fillers and sweeps pay ourselves: only their cost is gone. */
function leavesUs({ kind }: UnbookedAttempt): boolean {
  return kind === 'payout' || kind === 'refund'
}

function coinsOf(chain: Chain, { coins }: BooksOfChain, { coinsGone }: Leaving) {
  const unspent = [...coins].filter(([spentBy]) => spentBy === null || !coinsGone.has(spentBy))
  const satoshi = unspent.reduce((sum, [, units]) => sum + units, 0n)
  return fromChainUnits(nativeAsset(chain.id).id, satoshi)
}
