import type { Chain } from '../../chains/chain.ts'
import { type BooksOfChain, readBooksOfChain } from '../../db/books_of_chain.ts'
import type { Database } from '../../db/database.ts'
import type { AddressScope, Holders } from '../../db/holders.ts'
import type { Comparison } from '../../db/reconciliations.ts'
import type { RestingBalance } from '../../db/resting.ts'
import { assert } from '../../domain/assert.ts'
import { type AssetId, nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { paysSomebody } from '../../domain/payouts/intent.ts'
import { atOnce } from '../at_once.ts'

const QUESTIONS_AT_ONCE = 16

export type ComparedChain =
  | {
      readonly kind: 'compared'
      readonly comparisons: readonly Comparison[]
      /** Coin chains: what our own list of coins adds up to, in ledger units; what payouts are made from. */
      readonly coins: { readonly asset: AssetId; readonly units: bigint } | null
      readonly holders: Holders
      /** What the quiet holders hold, to be remembered; zeros are left out. */
      readonly quietBalances: readonly RestingBalance[]
      /** Account chains: those in turn that hold something else than what was known of them. */
      readonly strange: readonly string[]
    }
  /** Nothing can be said now, and why; another look in a moment will tell. */
  | { readonly kind: 'inconclusive'; readonly why: string }

/**
 * Ledger against chain, every asset to the unit, at one block. Changes nothing.
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
 * 4. A booked outflow is mined at H or below, which the books themselves say. Otherwise: inconclusive. How far the node is ahead
 *    makes no difference to account chains, as long as it still knows what was held at H: where one block is deep enough, and
 *    several come a second, the watcher is always a little behind.
 * 5. Who holds money and cannot have moved it since it was asked last is not asked again, but for a few each time
 *    (docs/decisions/0021).
 * 6. An asset that is listed and not opened yet (`openAssets`) is left out: what is held of it is in no book.
 */
export async function compareChain(db: Database, chain: Chain, scope: AddressScope): Promise<ComparedChain> {
  const books = await readBooksOfChain(db, chain.id, scope)
  if (books === null) return { kind: 'inconclusive', why: `${chain.id} was never looked at` }
  const before = await whyUnsettled(chain, books, 'before')
  if (before !== null) return { kind: 'inconclusive', why: before }
  const left = await readLeaving(chain, books)
  const held = await askHolders(chain, books)
  const comparisons = held.map(({ asset, units }) =>
    compareAsset(books, asset, units, left.units.get(asset) ?? 0n),
  )
  const quietBalances = await askQuiet(chain, books, held)
  const strange = await findStrange(chain, books, held)
  const after = await whyUnsettled(chain, books, 'after')
  if (after !== null) return { kind: 'inconclusive', why: after }
  const coins = chain.model === 'coins' ? coinsOf(chain, books, left) : null
  return { kind: 'compared', comparisons, coins, holders: books.holders, quietBalances, strange }
}

function compareAsset(
  { head, wallet, arriving }: BooksOfChain,
  asset: AssetId,
  chainUnits: bigint,
  leaving: bigint,
): Comparison {
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

/** What everybody holds of an asset, and of that the quiet and those in turn, who are asked apart on account chains. */
type Held = {
  readonly asset: AssetId
  readonly units: bigint
  readonly quiet: bigint
  readonly inTurn: bigint
}

async function askHolders(chain: Chain, { head, holders, opened }: BooksOfChain): Promise<readonly Held[]> {
  const { awake, inTurn, known } = holders
  const quietOnes = holders.quiet.map(({ address }) => address)
  const held: Held[] = []
  for (const asset of chain.assets.filter((one) => opened.has(one))) {
    const resting = known.get(asset) ?? 0n
    if (chain.model === 'coins') {
      // A scan of all coins takes as long for many addresses as for one, so those in turn are not asked apart.
      const units = resting + (await chain.balance(asset, [...awake, ...inTurn]))
      held.push({ asset, units, quiet: 0n, inTurn: 0n })
      continue
    }
    const ask = async (addresses: readonly string[]) =>
      addresses.length === 0 ? 0n : chain.balance(asset, addresses, head.height)
    const [quiet, ofTurn] = [await ask(quietOnes), await ask(inTurn)]
    held.push({ asset, units: resting + (await ask(awake)) + quiet + ofTurn, quiet, inTurn: ofTurn })
  }
  return held
}

/** Most hold nothing, or only what was left of the gas: an address is asked by itself only for what they hold at all. */
async function askQuiet(
  chain: Chain,
  { head, holders }: BooksOfChain,
  held: readonly Held[],
): Promise<readonly RestingBalance[]> {
  const addresses = holders.quiet.map(({ address }) => address)
  const balances: RestingBalance[] = []
  for (const { asset, quiet } of held) {
    if (quiet !== 0n) balances.push(...(await askEach(chain, asset, addresses, head.height)))
  }
  return balances.filter(({ units }) => units !== 0n)
}

async function findStrange(
  chain: Chain,
  { head, holders }: BooksOfChain,
  held: readonly Held[],
): Promise<readonly string[]> {
  const strange = new Set<string>()
  for (const { asset, inTurn } of held) {
    const known = new Map(
      holders.knownInTurn.filter((one) => one.asset === asset).map(({ address, units }) => [address, units]),
    )
    if (inTurn === [...known.values()].reduce((sum, units) => sum + units, 0n)) continue
    for (const { address, units } of await askEach(chain, asset, holders.inTurn, head.height)) {
      if (units !== (known.get(address) ?? 0n)) strange.add(address)
    }
  }
  return [...strange]
}

function askEach(
  chain: Chain,
  asset: AssetId,
  addresses: readonly string[],
  height: number,
): Promise<readonly RestingBalance[]> {
  return atOnce(QUESTIONS_AT_ONCE, addresses, async (address) => {
    const units = await chain.balance(asset, [address], height)
    return { address, asset, units }
  })
}

/** Of older blocks not every node knows what was held there. */
const BEHIND_MAX = 32

/** Null: the block of the books is what the node answers for, and everything booked is at or below it. */
async function whyUnsettled(
  chain: Chain,
  { head, isAhead }: BooksOfChain,
  when: 'before' | 'after',
): Promise<string | null> {
  const node = await chain.head()
  if (chain.model === 'coins') {
    return node.hash === head.hash
      ? null
      : `${chain.id} is at block ${node.height}, the books at ${head.height}`
  }
  if (isAhead) return `an outflow of ${chain.id} is booked above block ${head.height} of the books`
  const behind = node.height - head.height
  if (behind < 0) return `the node of ${chain.id} is ${-behind} blocks behind the books`
  if (when === 'before' && behind > BEHIND_MAX) return `the books are ${behind} blocks behind ${chain.id}`
  const hash = await chain.blockHash(head.height)
  return hash === head.hash ? null : `${chain.id} no longer has block ${head.height} of the books`
}

type Leaving = { readonly units: ReadonlyMap<AssetId, bigint>; readonly coinsGone: ReadonlySet<string> }

/** What mined transactions of unbooked outflows took from the chain already. */
async function readLeaving(chain: Chain, { attempts, head }: BooksOfChain): Promise<Leaving> {
  const native = nativeAsset(chain.id).id
  const units = new Map<AssetId, bigint>()
  const minedOutflows = new Set<string>()
  const coinsGone = new Set<string>()
  const take = (asset: AssetId, taken: bigint) => units.set(asset, (units.get(asset) ?? 0n) + taken)
  const found = await atOnce(QUESTIONS_AT_ONCE, attempts, async (attempt) => ({
    attempt,
    tx: await chain.lookup(attempt.txHash, attempt.intent),
  }))
  for (const { attempt, tx } of found) {
    if (tx.where !== 'block' || tx.block.height > head.height || minedOutflows.has(attempt.payoutId)) continue
    assert(tx.cost.asset === native, `${chain.id} is paid in ${native}`)
    minedOutflows.add(attempt.payoutId)
    // The coins stay those of the outflow that was stuck until the filler is deep, for either may yet be mined.
    coinsGone.add(attempt.fills ?? attempt.payoutId)
    take(native, tx.cost.units)
    if (tx.succeeded && paysSomebody(attempt)) take(attempt.asset, attempt.units)
  }
  return { units, coinsGone }
}

function coinsOf(chain: Chain, { coins }: BooksOfChain, { coinsGone }: Leaving) {
  const unspent = [...coins].filter(([spentBy]) => spentBy === null || !coinsGone.has(spentBy))
  const satoshi = unspent.reduce((sum, [, units]) => sum + units, 0n)
  return fromChainUnits(nativeAsset(chain.id).id, satoshi)
}
