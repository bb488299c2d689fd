import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
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

/** As many as the signer signs in one transaction; a third of what nodes relay. */
const INPUTS_MAX = 500

/** What we expect to pay for spending change some quiet day; change worth less than that is not made. */
const QUIET_MILLI_SAT_PER_VB = 10_000n

/** The least change that is made: the node relays it and it is worth more than spending it costs. */
export function changeMin(need: Pick<Need, 'changeTo' | 'milliSatPerVb'>): bigint {
  const isQuiet = need.milliSatPerVb < QUIET_MILLI_SAT_PER_VB
  return highest(dustLimit(need.changeTo), costOfInput(isQuiet ? need.milliSatPerVb : QUIET_MILLI_SAT_PER_VB))
}

/**
 * The fewest coins that pay within the cap and leave change enough to double the fee later, because a raised attempt
 * may use these coins only; failing that, the fewest that pay within the cap at all. Of as many coins, the last is the
 * smallest that will do. The same coins in any order give the same selection. `funds` when the coins do not suffice,
 * `fee_cap` when they would at a lower rate, or if they were larger.
 */
export function selectCoins(coins: readonly Coin[], need: Need): Outcome<Selection, DraftRejection> {
  const worth = coins
    .filter(({ satoshi }) => satoshi > costOfInput(need.milliSatPerVb))
    .toSorted(largestFirst)
  const isWithin = ({ feeSatoshi }: Settlement) => feeSatoshi <= need.feeSatoshiMax
  const hasRoom = ({ changeSatoshi, feeSatoshi }: Settlement) => changeSatoshi >= changeMin(need) + feeSatoshi
  const selection =
    fewest(worth, need, (settlement) => isWithin(settlement) && hasRoom(settlement)) ??
    fewest(worth, need, isWithin)
  if (selection !== null) return accept(selection)
  // A larger coin may pass the cap where a smaller one does not: its rest goes to the miner, or is change that costs.
  const uncapped = fewest(worth, need, () => true)
  if (uncapped !== null)
    return isWithin(uncapped) ? accept(uncapped) : refuseAboveTotal(uncapped.feeSatoshi, need)
  return refuse({
    code: 'funds',
    message: `${coins.length} coins do not cover ${need.satoshi} satoshi and the fee`,
  })
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
    if (count > INPUTS_MAX) return null
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
