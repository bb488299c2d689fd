import { isDeepStrictEqual } from 'node:util'
import { excludesOnChain } from '../domain/catalog/networks.ts'
import {
  type BitcoinIntent,
  type EosIntent,
  type EvmIntent,
  type Intent,
  isSameKey,
  type OutflowKind,
  type SolanaIntent,
  type StellarIntent,
  type TronIntent,
  validityOf,
  type XrpIntent,
} from '../domain/payouts/intent.ts'
import { lastBlockOf } from '../domain/payouts/solana_life.ts'

/**
 * Why `next` may not be signed after `earlier` for the same payout, or null when it may: it pays the same to the
 * same, and the chain can never accept both. It has to hold against every earlier attempt, not only the last:
 * with inputs {A}, {A,B}, {B} the first and third could both be mined.
 * A sweep of an account's coin and a filler on a coin chain pay their fee out of what they move, so a dearer attempt
 * brings less to the same payee, which is ours.
 */
export function findReplacementProblem(next: Intent, earlier: Intent, kind: OutflowKind): string | null {
  if (next.family === 'bitcoin' && earlier.family === 'bitcoin') return problemOnBitcoin(next, earlier, kind)
  if (next.family === 'evm' && earlier.family === 'evm') return problemOnEvm(next, earlier, kind)
  if (next.family === 'xrp' && earlier.family === 'xrp') return problemOnXrp(next, earlier)
  if (next.family === 'stellar' && earlier.family === 'stellar') return problemOnStellar(next, earlier)
  if (next.family === 'tron' && earlier.family === 'tron') return problemOnTron(next, earlier)
  if (next.family === 'eos' && earlier.family === 'eos') return problemOnEos(next, earlier)
  if (next.family === 'solana' && earlier.family === 'solana') return problemOnSolana(next, earlier)
  return 'an attempt stays on the chain of the earlier ones'
}

/** Whether two fillers exclude each other: by the nonce that both use up, or by a coin; back to which change address is all the same. */
export function fillsSame(one: Intent, other: Intent): boolean {
  if (!excludesOnChain[one.family]) return false
  if (one.family !== 'bitcoin' || other.family !== 'bitcoin')
    return findReplacementProblem(one, other, 'filler') === null
  return sharedCoins(one, other).length > 0
}

function problemOnEos(next: EosIntent, earlier: EosIntent): string | null {
  if (next.chainId !== earlier.chainId) return 'an attempt stays on the chain of the earlier ones'
  const paysSame =
    next.account === earlier.account &&
    isDeepStrictEqual(next.payment, earlier.payment) &&
    isDeepStrictEqual(next.from, earlier.from)
  if (!paysSame) return 'an attempt pays the same to the same address as the earlier ones'
  return problemInTime(next, earlier)
}

function paysSame(next: TronIntent | SolanaIntent, earlier: TronIntent | SolanaIntent): boolean {
  return (
    next.to === earlier.to &&
    next.units === earlier.units &&
    next.token === earlier.token &&
    isDeepStrictEqual(next.from, earlier.from)
  )
}

/** As in time, in blocks: `next` can be in none in which `earlier` can. */
function problemOnSolana(next: SolanaIntent, earlier: SolanaIntent): string | null {
  if (!paysSame(next, earlier)) return 'an attempt pays the same to the same address as the earlier ones'
  return next.reference.height >= lastBlockOf(earlier)
    ? null
    : 'an attempt is valid only when every earlier one no longer is'
}

function problemOnTron(next: TronIntent, earlier: TronIntent): string | null {
  if (!paysSame(next, earlier)) return 'an attempt pays the same to the same address as the earlier ones'
  return problemInTime(next, earlier)
}

/**
 * Where nothing on chain keeps attempts apart, their times do: `next` is valid only from when `earlier` no longer is.
 * That `earlier` was not taken before is for the engine to have seen; the two are never valid together.
 */
function problemInTime(next: Intent, earlier: Intent): string | null {
  const [later, before] = [validityOf(next), validityOf(earlier)]
  const isApart = later !== null && before !== null && later.fromMs >= before.untilMs
  return isApart ? null : 'an attempt is valid only when every earlier one no longer is'
}

function problemOnXrp(next: XrpIntent, earlier: XrpIntent): string | null {
  if (next.networkId !== earlier.networkId) return 'an attempt stays on the chain of the earlier ones'
  if (!isDeepStrictEqual(next.payment, earlier.payment))
    return 'an attempt pays the same to the same address as the earlier ones'
  return next.sequence === earlier.sequence && isDeepStrictEqual(next.from, earlier.from)
    ? null
    : 'an attempt keeps the sender and sequence of the earlier ones'
}

/** Whether the account has to be made first may have changed meanwhile; who gets how much has not. */
function problemOnStellar(next: StellarIntent, earlier: StellarIntent): string | null {
  if (next.passphrase !== earlier.passphrase) return 'an attempt stays on the chain of the earlier ones'
  const paid = ({ payment }: StellarIntent) =>
    payment && { to: payment.to, memo: payment.memo, stroops: payment.stroops }
  if (!isDeepStrictEqual(paid(next), paid(earlier)))
    return 'an attempt pays the same to the same address as the earlier ones'
  return next.sequence === earlier.sequence && isDeepStrictEqual(next.from, earlier.from)
    ? null
    : 'an attempt keeps the sender and sequence of the earlier ones'
}

function problemOnBitcoin(next: BitcoinIntent, earlier: BitcoinIntent, kind: OutflowKind): string | null {
  const paysSame =
    next.payment.satoshi === earlier.payment.satoshi ||
    (kind === 'filler' && next.payment.satoshi < earlier.payment.satoshi)
  // A filler goes back to us, to whichever change address: that it is ours is checked beside this.
  const isSamePayee = kind === 'filler' || next.payment.address === earlier.payment.address
  if (!isSamePayee || !paysSame) return 'an attempt pays the same to the same address as the earlier ones'
  const shared = sharedCoins(next, earlier)
  if (shared.length === 0) return 'an attempt spends an input of every earlier one'
  // Signatures commit to the amount of their own input only: two stories about one coin could hide a fee (BIP-341).
  return shared.every(({ coin, before }) => coin.satoshi === before.satoshi)
    ? null
    : 'a coin has another amount than in an earlier attempt'
}

function sharedCoins(next: BitcoinIntent, earlier: BitcoinIntent) {
  return next.inputs.flatMap((coin) => {
    const before = earlier.inputs.find((other) => other.txHash === coin.txHash && other.index === coin.index)
    return before === undefined ? [] : [{ coin, before }]
  })
}

function problemOnEvm(next: EvmIntent, earlier: EvmIntent, kind: OutflowKind): string | null {
  if (next.chain !== earlier.chain || next.evmChainId !== earlier.evmChainId) {
    return 'an attempt stays on the chain of the earlier ones'
  }
  const mayPayLess = kind === 'sweep' && next.from.purpose === 'deposit' && next.token === null
  const paysSame = next.units === earlier.units || (mayPayLess && next.units < earlier.units)
  if (next.to !== earlier.to || !paysSame || next.token !== earlier.token) {
    return 'an attempt pays the same to the same address as the earlier ones'
  }
  return isSameKey(next.from, earlier.from) && next.nonce === earlier.nonce
    ? null
    : 'an attempt keeps the sender and nonce of the earlier ones'
}
