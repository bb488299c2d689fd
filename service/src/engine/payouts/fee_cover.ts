import type { Chain, FeeBid } from '../../chains/chain.ts'
import type { Sql } from '../../db/database.ts'
import { findDraftedOutflows, leavingIntents } from '../../db/leaving_outflows.ts'
import { lockAccount } from '../../db/nonces.ts'
import { assert } from '../../domain/assert.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import type { Intent, KeyPath, Outflow, PayoutId, TronIntent } from '../../domain/payouts/intent.ts'
import { solanaFeeOf } from '../../domain/payouts/solana_fee.ts'
import { heldDeep } from '../deep_height.ts'
import { spendableBalance } from '../reserves.ts'
import { NEW_ACCOUNT_SUN } from '../sweeps/gas_cost.ts'
import type { Over } from './over.ts'

/** The native coin of the reserve, which all that it pays for takes a fee of. In the chain's units: sun, lamports. */
export type FeePurse = {
  readonly address: string
  /** In the newest final block: what was drafted and is not final has taken nothing of it yet. */
  readonly held: bigint
  /** Noted before that was asked: what these take may be in it or not. */
  readonly leaving: readonly PayoutId[]
}

/** Null: on other chains what cannot pay its fee is kept out of blocks, and fails in none. Or a deposit address pays. */
export async function readFeePurse(
  sql: Sql,
  chain: Chain,
  { from, asset }: Outflow,
  reserve: string,
): Promise<FeePurse | null> {
  const { id: native } = nativeAsset(chain.id)
  // On Solana the reserve pays for a token that leaves a deposit address.
  const isOurs = from === undefined || (chain.family === 'solana' && asset !== native)
  if (!isOurs || (chain.family !== 'tron' && chain.family !== 'solana')) return null
  const leaving = await findDraftedOutflows(sql, chain.id)
  // All that Solana tells is final.
  const held =
    chain.family === 'tron'
      ? await heldDeep(sql, chain, reserve)
      : await spendableBalance(chain, native, [reserve])
  return { address: reserve, held: toChainUnits(amountOf(native, held)), leaving }
}

/** Why, and how much more it would take, in the chain's units. */
export type LackOfFee = { readonly message: string; readonly missing: bigint }

/**
 * Why the reserve might not have the coin for this transaction, or null. A call of a token on TRON gets no more energy than its owner can
 * pay for when it is in a block, and burns all of that when it is too little; on Solana a transfer fails for whose account there are no
 * lamports left. So the most that everything drafted before it may take is taken off. All others that are drafted wait for this one.
 * `over`: attempts that take nothing any more. A first draft counts them all the same, because they are to be signed again.
 */
export async function findLackOfFee(
  tx: Sql,
  intent: Intent,
  bid: FeeBid,
  { address, held, leaving }: FeePurse,
  over: Over = new Map(),
): Promise<LackOfFee | null> {
  await lockAccount(tx, intent.chain, address)
  const before = await leavingIntents(tx, intent.chain, leaving)
  const promising = before.filter(({ payoutId, attempt }) => over.get(payoutId) !== attempt)
  const promised = promising.reduce((sum, each) => sum + takenBy(each, bid), 0n)
  const needed = neededBy(intent, bid)
  if (held - promised >= needed) return null
  const unit = bid.family === 'tron' ? 'sun' : 'lamports'
  const message = `with its fee it takes up to ${needed} ${unit}: the reserve holds ${held} that are final, of which ${promised} are promised`
  return { message, missing: needed + promised - held }
}

/** Of the reserve by this one, of which is known what is bid beside the fee limit. */
function neededBy(intent: Intent, bid: FeeBid): bigint {
  if (intent.family !== 'tron') return takenBy(intent, bid)
  assert(bid.family === 'tron', 'what is bid there is of TRON')
  return limitAndCoinOf(intent) + bid.otherSun
}

/**
 * Of the reserve by another one, at most. On TRON without the bandwidth, which is little beside the room that a fee limit has; but who is
 * paid in TRX may have no account, and is made one.
 */
export function takenBy(intent: Intent, bid: FeeBid): bigint {
  switch (intent.family) {
    case 'tron':
      if (!isReserve(intent.from)) return 0n
      return limitAndCoinOf(intent) + (intent.token === null ? NEW_ACCOUNT_SUN : 0n)
    case 'solana': {
      if (!isReserve(intent.payer)) return 0n
      // The reserve, which tokens of deposit addresses go to, has an account for them.
      if (!isReserve(intent.from)) return solanaFeeOf(intent)
      assert(bid.family === 'solana', 'what is bid there is of Solana')
      // Who is paid may have no account for the token, or close it until then.
      return solanaFeeOf(intent) + (intent.token === null ? intent.units : bid.holdingRentLamports)
    }
    default:
      assert(false, 'what takes a fee of the reserve is of TRON or Solana')
  }
}

function limitAndCoinOf({ feeLimitSun, token, units }: TronIntent): bigint {
  return feeLimitSun + (token === null ? units : 0n)
}

function isReserve({ purpose }: KeyPath): boolean {
  return purpose === 'reserve'
}
