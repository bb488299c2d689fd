import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { BITCOIN_INPUTS_CHARGED } from '../../domain/payouts/bitcoin_inputs.ts'
import type { Outflow } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid, PayoutEstimate } from '../chain.ts'
import { isObject } from '../replies.ts'
import { inputsWithin, isWithinTotal } from './coin_selection.ts'
import { parsePayment, rateWithin } from './draft.ts'
import { objectIn, satoshiIn } from './replies.ts'
import { NoAnswer, type Rpc, RpcRefusal } from './rpc.ts'
import { BITCOIN, type BitcoinSettings } from './settings.ts'
import { costOfInput, feeFor, highest, vbytesOf } from './sizes.ts'

/** The node is asked what is mined within so many blocks; one is not estimated. */
const TARGET_BLOCKS = 2

/**
 * What the network asks at present: the node's estimate or, where it has none, the configured fallback; never below
 * what its mempool lets in. The node speaks of BTC per 1000 vbytes: in satoshi, that number is millisatoshi per vbyte.
 */
async function milliSatPerVbNow(rpc: Rpc, settings: BitcoinSettings): Promise<bigint> {
  const [estimated, mempool] = await rpc.batch([['estimatesmartfee', TARGET_BLOCKS], ['getmempoolinfo']])
  if (!mempool?.ok) throw mempool?.rejection ?? new NoAnswer('getmempoolinfo', 'no reply')
  const info = objectIn(mempool.value, 'getmempoolinfo')
  const estimate = estimated?.ok && isObject(estimated.value) ? estimated.value.feerate : undefined
  return [
    estimate === undefined ? settings.milliSatPerVbFallback : satoshiIn(estimate, 'estimatesmartfee feerate'),
    satoshiIn(info.mempoolminfee, 'mempoolminfee'),
    satoshiIn(info.minrelaytxfee, 'minrelaytxfee'),
  ].reduce(highest)
}

export async function estimatePayout(
  rpc: Rpc,
  settings: BitcoinSettings,
  asset: AssetId,
): Promise<PayoutEstimate> {
  assert(asset === BITCOIN, `the bitcoin chain pays ${asset}`)
  return estimateAt(await milliSatPerVbNow(rpc, settings), settings)
}

/** A payout out of as many coins as are charged for to the largest kind of output with change, at what the network asks up to the caps. */
export function estimateAt(
  milliSatPerVb: bigint,
  rules: Pick<BitcoinSettings, 'milliSatPerVbMax' | 'feeSatoshiMax'>,
): PayoutEstimate {
  const within = rateWithin(milliSatPerVb, rules)
  const rate = within.ok ? within.value : rules.milliSatPerVbMax
  const feeSatoshi = feeFor(vbytesOf(BITCOIN_INPUTS_CHARGED, ['wsh', 'wpkh']), rate)
  const isWithin = isWithinTotal(feeSatoshi, rules)
  return {
    cost: amountOf(BITCOIN, isWithin ? feeSatoshi : rules.feeSatoshiMax),
    isAboveFeeCap: !(within.ok && isWithin),
    coins: {
      countMax: inputsWithin({ milliSatPerVb: rate, feeSatoshiMax: rules.feeSatoshiMax }),
      costSatoshi: costOfInput(rate),
    },
  }
}

export async function bid(
  rpc: Rpc,
  settings: BitcoinSettings,
  outflow: Outflow,
): Promise<Outcome<FeeBid, DraftRejection>> {
  if (outflow.kind !== 'filler') {
    const payable = parsePayment(settings.network, outflow)
    if (!payable.ok) return payable
  }
  try {
    const rate = rateWithin(await milliSatPerVbNow(rpc, settings), settings)
    return rate.ok ? accept({ family: 'bitcoin', milliSatPerVb: rate.value }) : rate
  } catch (error) {
    if (!(error instanceof NoAnswer || error instanceof RpcRefusal)) throw error
    return refuse({ code: 'network', message: error.message })
  }
}
