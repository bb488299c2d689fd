import type { Chain, DraftRejection, FeeBid } from '../../chains/chain.ts'
import { attemptsOf, insertAttempt } from '../../db/attempts.ts'
import { readHead } from '../../db/chain_heads.ts'
import { type ClaimedOutflow, lockClaimed } from '../../db/claim_outflows.ts'
import { markSpent } from '../../db/coins.ts'
import type { Sql } from '../../db/database.ts'
import { lockOrder, markOutflowCommitted } from '../../db/orders.ts'
import { forgetTrouble, setOutflowNonce } from '../../db/outflows.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { coinsOf, nonceOf, paysSomebody } from '../../domain/payouts/intent.ts'
import { apply } from '../apply.ts'
import { isHouseAddress } from '../house_addresses.ts'
import { cancelSweep } from '../sweeps/end.ts'
import { isTooDearToMove } from '../sweeps/gas_cost.ts'
import type { SigningWorld } from '../world.ts'
import { claimKeeper } from './claim.ts'
import { findLackOfFee } from './fee_cover.ts'
import { DraftRefused, type Purse, readPurse, takeFunds } from './funds.ts'
import { MovedOn, unlessMovedOn } from './moved_on.ts'
import { type Progress, troubled } from './progress.ts'
import { type CountedRoom, findLackOfRoom, readRoom } from './room.ts'
import { isAnothersTurn, isBehindAnother, untilItsTurn } from './turn.ts'
import { findForgotten, findUnwritten, tellUnwritten } from './unwritten.ts'
import { isAccountOnItsWay, untilThereIsAnAccount } from './wait_for_account.ts'
import { whyWaitForSource } from './wait_for_source.ts'

const LOOK_AGAIN_MS = 500
const WAIT_FOR_FUNDS_MS = 2_000
const WAIT_FOR_ROOM_MS = 5_000
const ASK_OF_PAYEE_AGAIN_MS = 2_000
/** Longer than an outflow rests after its node gave no answer: once the node answers again, the stuck outflow is tried before its filler. */
const BEFORE_FILLING_MS = 2_000

/**
 * Writes down the first exact transaction of an outflow: coins or nonce are taken and the intent stored in one database
 * transaction, so a crash before it took nothing and a crash after it goes on with the same transaction.
 */
export async function draftOutflow(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
): Promise<Progress> {
  const head = await readHead(world.db, chain.id)
  // A node that is another network's, say: its nonces and balances are none of ours.
  if (head !== null && head.trouble !== null) return troubled(`${chain.id} is in trouble: ${head.trouble}`)
  if (await isAnothersTurn(world, chain, outflow)) return untilItsTurn
  const keep = claimKeeper(world, outflow)
  const waits = await whyWaitForSource(world, outflow, keep)
  if (waits !== null) return waits
  const forgotten = await findForgotten(world, outflow)
  if (forgotten !== null) {
    const { why, needsSomebody } = forgotten
    // It goes from us to us: planned anew, under the next name, it pays nobody twice.
    if (outflow.kind === 'sweep' && needsSomebody) {
      // The first that is heard, perhaps, of a database that is older than the signer's.
      world.log.warn({ payout: outflow.payoutId, trouble: why }, 'a sweep goes under the next name')
      return refused(world, outflow, { code: 'network', message: why })
    }
    await tellUnwritten(world, outflow, forgotten)
    return troubled(why)
  }
  if (await paysOurselves(world, chain, outflow)) {
    return endUnpayable(world, outflow, 'the address is our own')
  }
  const room = await readRoom(world, outflow)
  const lack = room === null ? null : await findLackOfRoom(world.db, outflow, room)
  if (lack !== null) return { kind: 'trouble', message: lack, inMs: WAIT_FOR_ROOM_MS }
  const lookedHeight = head?.block.height ?? 0
  if (await isAccountOnItsWay(world.db, chain, outflow, lookedHeight)) return untilThereIsAnAccount
  const bid = await chain.bid(outflow)
  if (!bid.ok) return refused(world, outflow, bid.rejection)
  await keep()
  // Asked before the transaction, because nothing inside one waits for a node.
  const purse = await readPurse(world, chain, outflow, keep)
  const dear = findDearness(world, outflow, bid.value, purse)
  if (dear !== null) return refused(world, outflow, { code: 'fee_cap', message: dear })
  try {
    const asked = { bid: bid.value, purse, room, lookedHeight }
    const isDrafted = await world.db.transaction((tx) => draft(world, chain, outflow, asked, tx))
    if (!isDrafted) return { kind: 'done' }
    return { kind: 'again', inMs: outflow.kind === 'filler' ? BEFORE_FILLING_MS : 0, isDraft: true }
  } catch (error) {
    if (error instanceof DraftRefused) return refused(world, outflow, error.rejection)
    if (error instanceof AccountOnItsWay) return untilThereIsAnAccount
    if (error instanceof BehindAnother) return untilItsTurn
    throw error
  }
}

/** Thrown so that whatever the transaction took is given back, like `DraftRefused`. */
class AccountOnItsWay extends Error {}
class BehindAnother extends Error {}

/** Nobody may name an address of ours, but one may be derived that an order had named before. */
async function paysOurselves(world: SigningWorld, chain: Chain, outflow: ClaimedOutflow): Promise<boolean> {
  return paysSomebody(outflow) && isHouseAddress(world.db, chain.family, outflow.address)
}

/** Why coin stays where it is: it was worth a sweep when that was planned, perhaps hours ago, and is not at what is bid now. Or null. */
function findDearness(
  { policy }: SigningWorld,
  { from, asset, chain }: ClaimedOutflow,
  bid: FeeBid,
  purse: Purse,
): string | null {
  if (purse === null || from === undefined || asset !== nativeAsset(chain).id) return null
  if (!isTooDearToMove(purse.held, bid, policy.sweepCostMultiple)) return null
  return `the ${purse.held} units of ${asset} at ${from.address} are not worth what moving them costs at present`
}

/** What was asked outside the transaction. */
type Asked = {
  readonly bid: FeeBid
  readonly purse: Purse
  readonly room: CountedRoom | null
  /** Up to where the chain had been looked at by then. */
  readonly lookedHeight: number
}

async function draft(
  world: SigningWorld,
  chain: Chain,
  claimed: ClaimedOutflow,
  { bid, purse, room, lookedHeight }: Asked,
  tx: Sql,
): Promise<boolean> {
  // The order before the outflow: `apply` locks in the same sequence.
  const belongsToOrder = paysSomebody(claimed)
  if (belongsToOrder) await lockOrder(tx, claimed.orderId)
  const outflow = await lockClaimed(tx, claimed)
  if (outflow === null || outflow.state !== 'planned') return false
  if ((await attemptsOf(tx, outflow.payoutId)).length > 0) return false
  const nowMs = world.clock.nowMs()
  const funds = await takeFunds(world, chain, outflow, purse, tx)
  // Asked again: now that it has its nonce all other drafts wait for this one, but one of them may have come before it.
  const makesAccount = bid.family === 'stellar' && bid.creates
  if (makesAccount && (await isAccountOnItsWay(tx, chain, outflow, lookedHeight))) throw new AccountOnItsWay()
  const lack = room === null ? null : await findLackOfRoom(tx, outflow, room)
  if (lack !== null) throw new DraftRefused({ code: 'funds', message: lack })
  const intent = chain.draft(outflow, bid, funds)
  if (!intent.ok) throw new DraftRefused(intent.rejection)
  const fees = purse?.fees ?? null
  const lackOfFee = fees === null ? null : await findLackOfFee(tx, intent.value, bid, fees)
  if (lackOfFee !== null) throw new DraftRefused({ code: 'funds', message: lackOfFee.message })
  // Last of all: what would keep it from leaving in its turn is told now.
  if (await isBehindAnother(tx, chain, claimed, purse?.minedNonce ?? null)) throw new BehindAnother()
  const coins = coinsOf(intent.value)
  if (coins.length > 0 && outflow.fills === null) await markSpent(tx, chain.id, coins, outflow.payoutId)
  const nonce = nonceOf(intent.value)
  if (nonce !== null) await setOutflowNonce(tx, outflow.payoutId, nonce)
  await insertAttempt(tx, intent.value, nowMs)
  if (belongsToOrder) await markOutflowCommitted(tx, outflow.orderId)
  // What kept it from being drafted says nothing of how long it may take to be sent.
  if (outflow.troubleSinceMs !== null) await forgetTrouble(tx, outflow.payoutId)
  return true
}

async function refused(
  world: SigningWorld,
  outflow: ClaimedOutflow,
  rejection: DraftRejection,
): Promise<Progress> {
  if (outflow.kind === 'sweep' && (await cancelSweep(world, outflow))) return { kind: 'done' }
  const { code, message } = rejection
  if (code === 'destination' && outflow.kind !== 'sweep') {
    if (isRefusedForLong(world, outflow)) return endUnpayable(world, outflow, message)
    return { kind: 'trouble', message, inMs: ASK_OF_PAYEE_AGAIN_MS, isPayeeRefused: true }
  }
  const inMs = code === 'funds' ? WAIT_FOR_FUNDS_MS : LOOK_AGAIN_MS
  return { kind: 'trouble', message, inMs }
}

/**
 * One look ends nothing. Several nodes may be behind one address, and to one that is a few blocks behind a payee's account, or what the
 * reserve got a moment ago to pay with, is not there yet, while the others know it.
 */
function isRefusedForLong({ clock, policy }: SigningWorld, { payeeRefusedSinceMs }: ClaimedOutflow): boolean {
  return payeeRefusedSinceMs !== null && clock.nowMs() - payeeRefusedSinceMs >= policy.payeeRefusedMs
}

async function endUnpayable(world: SigningWorld, outflow: ClaimedOutflow, why: string): Promise<Progress> {
  const unwritten = await findUnwritten(world, outflow, [])
  if (unwritten !== null) {
    await tellUnwritten(world, outflow, unwritten)
    return { ...troubled(`${unwritten.why}; ${why}`), isPayeeRefused: true }
  }
  await failUndrafted(world, outflow, why)
  return { kind: 'done' }
}

/**
 * The destination cannot be paid, as a node says for long. It took its time: should another worker have been told otherwise meanwhile
 * and have written down a transaction, the payout may be on its way, and only the chain can say that it failed.
 */
async function failUndrafted(world: SigningWorld, outflow: ClaimedOutflow, why: string): Promise<void> {
  const { payoutId, orderId } = outflow
  const fact = { kind: 'PayoutFailed', payoutId, problem: 'DESTINATION_PROBLEM', cost: null } as const
  const isFailed = await unlessMovedOn(() =>
    apply(world, orderId, `${payoutId}:failed`, fact, async (tx) => {
      if ((await attemptsOf(tx, payoutId)).length > 0) throw new MovedOn()
    }),
  )
  if (isFailed) world.log.warn({ payout: payoutId, why }, 'the destination cannot be paid')
}
