import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { BITCOIN_INPUTS_CHARGED, BITCOIN_INPUTS_MAX } from '../../domain/payouts/bitcoin_inputs.ts'
import type { Coin } from '../../domain/payouts/intent.ts'
import type { DraftRejection } from '../chain.ts'
import type { OutputKind } from './addresses.ts'
import { costOfInput, dustLimit, feeFor, highest, vbytesOf } from './sizes.ts'

export type Need = {
  readonly satoshi: bigint
  readonly paidTo: OutputKind
  readonly changeTo: OutputKind
  readonly milliSatPerVb: bigint
  readonly feeSatoshiMax: bigint
}

/** inputs = payment + change + fee, exactly; change is 0 when there is none. */
export type Selection = {
  readonly inputs: readonly Coin[]
  readonly changeSatoshi: bigint
  readonly feeSatoshi: bigint
}

/** What we expect to pay for spending change some quiet day; change worth less than that is not made. */
const QUIET_MILLI_SAT_PER_VB = 10_000n

/** So many are kept: each payout takes one until its change is in a block, and several leave at the same time. */
const COINS_KEPT = 100
/** A small coin is spent for the sake of having fewer when it is worth so many times what that costs. */
const GATHERED_WORTH = 10n

function isQuiet({ milliSatPerVb }: Pick<Need, 'milliSatPerVb'>): boolean {
  return milliSatPerVb <= QUIET_MILLI_SAT_PER_VB
}

/** The least change that is made: the node relays it and it is worth more than spending it costs. */
export function changeMin(need: Pick<Need, 'changeTo' | 'milliSatPerVb'>): bigint {
  return highest(
    dustLimit(need.changeTo),
    costOfInput(isQuiet(need) ? need.milliSatPerVb : QUIET_MILLI_SAT_PER_VB),
  )
}

/**
 * The fewest coins that pay within the cap and leave change enough to double the fee later, because a raised attempt
 * may use these coins only; failing that, the fewest that pay within the cap at all. Of as many coins, the last is the
 * smallest that will do. Where there are many, small ones go along. The same coins in any order give the same selection. `funds`
 * when the coins do not suffice, `fee_cap` when they would at a lower rate, or if they were larger.
 */
export function selectCoins(coins: readonly Coin[], need: Need): Outcome<Selection, DraftRejection> {
  const worth = coins
    .filter(({ satoshi }) => satoshi > costOfInput(need.milliSatPerVb))
    .toSorted(largestFirst)
  const isWithin = ({ feeSatoshi }: Settlement) => isWithinTotal(feeSatoshi, need)
  const hasRoom = ({ changeSatoshi, feeSatoshi }: Settlement) => changeSatoshi >= changeMin(need) + feeSatoshi
  const selection =
    fewest(worth, need, (settlement) => isWithin(settlement) && hasRoom(settlement)) ??
    fewest(worth, need, isWithin)
  if (selection !== null) return accept(withSmallCoins(selection, worth, need))
  // A larger coin may pass the cap where a smaller one does not: its rest goes to the miner, or is change that costs.
  const uncapped = fewest(worth, need, () => true)
  if (uncapped !== null)
    return isWithin(uncapped) ? accept(uncapped) : refuseAboveTotal(uncapped.feeSatoshi, need)
  return refuse({
    code: 'funds',
    message: `${coins.length} coins do not cover ${need.satoshi} satoshi and the fee`,
  })
}

/**
 * So many of the largest coins a payout to whomever can spend within the cap. What they are worth less one fee can always be drafted:
 * the fewest that cover it leave either change, or less than the least change to the miner beside a fee with change.
 */
export function inputsWithin(need: Pick<Need, 'milliSatPerVb' | 'feeSatoshiMax'>): number {
  const leftToMiner = changeMin({ ...need, changeTo: 'wpkh' })
  const isWithin = (inputs: number) =>
    isWithinTotal(feeFor(vbytesOf(inputs, ['wsh', 'wpkh']), need.milliSatPerVb) + leftToMiner, need)
  let inputs = BITCOIN_INPUTS_MAX
  while (inputs > 0 && !isWithin(inputs)) inputs -= 1
  return inputs
}

export function isWithinTotal(feeSatoshi: bigint, { feeSatoshiMax }: Pick<Need, 'feeSatoshiMax'>): boolean {
  return feeSatoshi <= feeSatoshiMax
}

export function refuseAboveTotal(feeSatoshi: bigint, { feeSatoshiMax }: Pick<Need, 'feeSatoshiMax'>) {
  const message = `a fee of ${feeSatoshi} satoshi passes the cap of ${feeSatoshiMax} satoshi for one transaction`
  return refuse<DraftRejection>({ code: 'fee_cap', message })
}

type Settlement = Omit<Selection, 'inputs'>

function fewest(
  coins: readonly Coin[],
  need: Need,
  isGood: (settlement: Settlement) => boolean,
): Selection | null {
  let kept = 0n
  for (const [index, coin] of coins.entries()) {
    const count = index + 1
    if (count > BITCOIN_INPUTS_MAX) return null
    const withLast = (last: Coin) => settle(count, kept + last.satoshi, need)
    const isEnough = (settlement: Settlement | null) => settlement !== null && isGood(settlement)
    if (isEnough(withLast(coin))) {
      const last = coins.findLast((candidate, at) => at >= index && isEnough(withLast(candidate))) ?? coin
      const settlement = withLast(last)
      return settlement && { inputs: [...coins.slice(0, index), last], ...settlement }
    }
    kept += coin.satoshi
  }
  return null
}

/**
 * Every deposit leaves a coin, and the fewest pay: the small ones would be left and become ever more, until what is held no longer
 * fits into one transaction. So while fees are low a payout that needs fewer coins than it is charged for takes the smallest ones
 * along, and its change is larger by what they are worth.
 */
function withSmallCoins(selection: Selection, worth: readonly Coin[], need: Need): Selection {
  const places = BITCOIN_INPUTS_CHARGED - selection.inputs.length
  if (!isQuiet(need) || worth.length <= COINS_KEPT || places <= 0 || selection.changeSatoshi === 0n)
    return selection
  const least = GATHERED_WORTH * costOfInput(need.milliSatPerVb)
  const smallest = worth
    .filter((coin) => coin.satoshi >= least && !selection.inputs.includes(coin))
    .slice(-places)
  const inputs = [...selection.inputs, ...smallest]
  const settlement = settle(inputs.length, totalOf(inputs), need)
  return settlement !== null && isWithinTotal(settlement.feeSatoshi, need)
    ? { inputs, ...settlement }
    : selection
}

export function totalOf(coins: readonly Coin[]): bigint {
  return coins.reduce((sum, { satoshi }) => sum + satoshi, 0n)
}

/** Payment, fee and change out of a sum of inputs; a remainder too small to be change goes to the miner. */
function settle(inputs: number, total: bigint, need: Need): Settlement | null {
  const feeWithChange = feeFor(vbytesOf(inputs, [need.paidTo, need.changeTo]), need.milliSatPerVb)
  const change = total - need.satoshi - feeWithChange
  if (change >= changeMin(need)) return { changeSatoshi: change, feeSatoshi: feeWithChange }
  const remainder = total - need.satoshi
  return remainder >= feeFor(vbytesOf(inputs, [need.paidTo]), need.milliSatPerVb)
    ? { changeSatoshi: 0n, feeSatoshi: remainder }
    : null
}

function largestFirst(left: Coin, right: Coin): number {
  if (left.satoshi !== right.satoshi) return left.satoshi > right.satoshi ? -1 : 1
  if (left.txHash !== right.txHash) return left.txHash < right.txHash ? -1 : 1
  return left.index - right.index
}
