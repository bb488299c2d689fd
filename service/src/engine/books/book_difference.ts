import type { Chain } from '../../chains/chain.ts'
import type { Clock } from '../../clock.ts'
import { appendAudit, type By, houseChain } from '../../db/audit_log.ts'
import { countOperatorEntries, lockOperatorEntries, operatorEntryKey, postForHouse } from '../../db/books.ts'
import { type FreeCoin, findFreeCoins, markLeft } from '../../db/coins.ts'
import type { Database } from '../../db/database.ts'
import { type Comparison, makeComparisonDue } from '../../db/reconciliations.ts'
import { type AssetId, assetOf } from '../../domain/catalog/assets.ts'
import type { ChainId } from '../../domain/catalog/networks.ts'
import { operatorBooked } from '../../domain/ledger/postings.ts'
import { amountOf, exactAmount, fromChainUnits } from '../../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { atOnce } from '../at_once.ts'
import { MovedOn, unlessMovedOn } from '../payouts/moved_on.ts'
import { untilConclusive } from './audit_chain.ts'
import { show } from './audit_order.ts'
import { compareChain } from './compare.ts'
import { DIFFERENCES_TO_STOP } from './stopped_outflows.ts'

export type BooksPlace = {
  readonly db: Database
  readonly chains: ReadonlyMap<ChainId, Chain>
  readonly clock: Clock
}

/** An operator's word: a chain holds so many ledger units more than the books say or, negative, less, why, and who says so. */
export type Word = {
  readonly asset: AssetId
  readonly units: bigint
  readonly because: string
  readonly by: By
}

export type BookedDifference = {
  readonly entryKey: string
  readonly asset: AssetId
  readonly units: bigint
  /** The block at which the chain was asked. */
  readonly height: number
  /** Coin chains: how many coins left by another program, and how many of those are back. */
  readonly coinsLeft: number
  readonly coinsBack: number
  /** Where the audit log has it. */
  readonly auditChain: string
}

/**
 * Books against the operator's capital what left, or came, without the books being told (docs/decisions/0048): the whole difference
 * that all addresses of ours show now, and nothing else, so that whoever gives the same word twice books it once.
 */
export async function bookDifference(place: BooksPlace, word: Word): Promise<Outcome<BookedDifference>> {
  const { db, chains } = place
  const { asset } = word
  const chain = chains.get(assetOf(asset).chain)
  if (chain?.assets.includes(asset) !== true) {
    return refuse({ code: 'no_node', message: `No node that tells of ${asset} is configured here.` })
  }
  const entryCount = await countOperatorEntries(db, asset)
  const seen = await lookAgain(place, chain, word)
  if (!seen.ok) return seen
  const booked = await write(place, chain.id, word, seen.value, entryCount)
  if (booked !== null) return accept(booked)
  return refuse({
    code: 'moved_on',
    message:
      'Somebody else changed the books of it meanwhile. Nothing was booked; run `cambist ledger audit` and try again.',
  })
}

const BETWEEN_LOOKS_MS = 1_000

/**
 * As often as a difference has to show to stop outflows: of several nodes behind one address, one may lie for a moment. One that is a
 * block behind does not have that block's coins either, so the same coins have to be gone, or back, each time.
 */
async function lookAgain({ db, clock }: BooksPlace, chain: Chain, word: Word): Promise<Outcome<Seen>> {
  let before: Seen | null = null
  for (let looks = 1; ; looks += 1) {
    const seen: Look = await untilConclusive(clock, () => look(db, chain, word.asset))
    if (seen.kind === 'inconclusive') return refuse(inconclusive(chain, seen.why))
    const mismatch = findMismatch(seen.comparison, word) ?? findUnknownCoins(chain, seen, word)
    if (mismatch !== null) return refuse(mismatch)
    if (before !== null && !areSameCoins(before, seen)) {
      return refuse(inconclusive(chain, 'its node told of other coins from one look to the next'))
    }
    if (looks === DIFFERENCES_TO_STOP) return accept(seen)
    before = seen
    await clock.sleep(BETWEEN_LOOKS_MS)
  }
}

function inconclusive({ id }: Pick<Chain, 'id'>, why: string) {
  const message = `${id} could not be compared with the books: ${why}. Nothing was booked; try again.`
  return { code: 'inconclusive', message }
}

function areSameCoins(one: Seen, other: Seen): boolean {
  return namesOf(one.left) === namesOf(other.left) && namesOf(one.back) === namesOf(other.back)
}

/** They are read in one sequence. */
function namesOf(coins: readonly FreeCoin[]): string {
  return coins.map(({ txHash, index }) => `${txHash}:${index}`).join()
}

function findMismatch({ difference, height }: Comparison, { asset, units }: Word) {
  if (difference === 0n) {
    return {
      code: 'no_difference',
      message: `Books and chain agree about ${asset} at block ${height}: there is nothing to book.`,
    }
  }
  if (difference === units) return null
  return {
    code: 'other_difference',
    message:
      `At block ${height} the chain less the books is ${show(asset, difference)}, and nothing else can be booked. ` +
      'Book it when you can account for all of it.',
  }
}

/**
 * What is in the books and in no coin of ours would be paid out by nobody. Whether there is such a coin, or a node calls one gone that is
 * there, cannot be told apart, and not by the sign of the difference either.
 */
function findUnknownCoins({ id }: Chain, { comparison, listed, left, back }: Seen, { asset }: Word) {
  if (listed === null) return null
  const satoshi = sumOf(back) - sumOf(left)
  const lacking = comparison.chainUnits - listed - fromChainUnits(asset, satoshi).units
  if (lacking <= 0n) return null
  return {
    code: 'unknown_coins',
    message:
      `${id} has ${show(asset, lacking)} more than our list of coins without those that its node calls gone. Nothing was booked. Either the ` +
      'node, or one of several behind its address, calls coins gone that are there: try again. Or, if that stays, so much lies in coins at ' +
      'addresses of ours that nobody told the service of, and no payout would spend them: send them to the ' +
      "reserve's address with the words. Then they are booked by themselves, and `cambist ledger audit` names what still differs.",
  }
}

function sumOf(coins: readonly FreeCoin[]): bigint {
  return coins.reduce((sum, { satoshi }) => sum + satoshi, 0n)
}

type Seen = {
  readonly kind: 'compared'
  readonly comparison: Comparison
  /** Coin chains: what our list of coins adds up to. */
  readonly listed: bigint | null
  readonly left: readonly FreeCoin[]
  readonly back: readonly FreeCoin[]
}

type Look = Seen | { readonly kind: 'inconclusive'; readonly why: string }

/** Everything at one block: the comparison and, on a coin chain, which coins of nobody it has. */
async function look(db: Database, chain: Chain, asset: AssetId): Promise<Look> {
  const { hash } = await chain.head()
  const compared = await compareChain(db, chain, { kind: 'all' })
  if (compared.kind === 'inconclusive') return compared
  const comparison = compared.comparisons.find((one) => one.asset === asset)
  if (comparison === undefined) return { kind: 'inconclusive', why: `${asset} was not opened yet` }
  const coins = await lookForCoins(db, chain, comparison.height)
  if (chain.model === 'coins' && (await chain.head()).hash !== hash) {
    return { kind: 'inconclusive', why: `${chain.id} moved on while it was asked` }
  }
  return { kind: 'compared', comparison, listed: compared.coins?.units ?? null, ...coins }
}

const QUESTIONS_AT_ONCE = 16

async function lookForCoins(
  db: Database,
  { id, isUnspent }: Chain,
  height: number,
): Promise<Pick<Seen, 'left' | 'back'>> {
  if (isUnspent === undefined) return { left: [], back: [] }
  const told = await atOnce(QUESTIONS_AT_ONCE, await findFreeCoins(db, id, height), async (coin) => ({
    coin,
    isThere: await isUnspent(coin),
  }))
  const left = told.flatMap(({ coin, isThere }) => (coin.spentBy === null && !isThere ? [coin] : []))
  const back = told.flatMap(({ coin, isThere }) => (coin.spentBy !== null && isThere ? [coin] : []))
  return { left, back }
}

/** Null: what was seen no longer holds, and nothing is written. */
async function write(
  { db, clock }: BooksPlace,
  chain: ChainId,
  { asset, units, because, by }: Word,
  { comparison, left, back }: Seen,
  entryCount: number,
): Promise<BookedDifference | null> {
  const entryKey = operatorEntryKey(asset, entryCount + 1)
  const auditChain = houseChain(asset)
  const postings = operatorBooked(amountOf(asset, units))
  const isBooked = await unlessMovedOn(() =>
    db.transaction(async (tx) => {
      if ((await lockOperatorEntries(tx, asset)) !== entryCount) throw new MovedOn()
      await postForHouse(tx, entryKey, postings, clock.nowMs())
      if (!(await markLeft(tx, chain, left, entryKey))) throw new MovedOn()
      if (!(await markLeft(tx, chain, back, null))) throw new MovedOn()
      await makeComparisonDue(tx, chain)
      await appendAudit(tx, {
        chain: auditChain,
        atMs: clock.wallMs(),
        act: 'difference_booked',
        by,
        subject: asset,
        detail: { amount: exactAmount(amountOf(asset, units)), because, entry: entryKey },
      })
    }),
  )
  if (!isBooked) return null
  const { height } = comparison
  return { entryKey, asset, units, height, coinsLeft: left.length, coinsBack: back.length, auditChain }
}
