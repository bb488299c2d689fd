import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { type Amount, amountOf } from '../../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { BITCOIN_INPUTS_CHARGED } from '../../domain/payouts/bitcoin_inputs.ts'
import type { Outflow } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid } from '../chain.ts'
import { parsePayment, refuseAboveCap } from './draft.ts'
import { objectIn, satoshiIn } from './replies.ts'
import { isObject, NoAnswer, type Rpc, RpcRefusal } from './rpc.ts'
import type { BitcoinSettings } from './settings.ts'
import { feeFor, highest, vbytesOf } from './sizes.ts'

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

/** A payout out of as many coins as are charged for to the largest kind of output with change, at what the network asks up to the caps. */
export async function estimateCost(rpc: Rpc, settings: BitcoinSettings, asset: AssetId): Promise<Amount> {
  assert(asset === 'BTC:BTC', `the bitcoin chain pays ${asset}`)
  const asked = await milliSatPerVbNow(rpc, settings)
  const isCapped = asked > settings.milliSatPerVbMax
  const rate = isCapped ? settings.milliSatPerVbMax : asked
  const feeSatoshi = feeFor(vbytesOf(BITCOIN_INPUTS_CHARGED, ['wsh', 'wpkh']), rate)
  return amountOf(asset, feeSatoshi > settings.feeSatoshiMax ? settings.feeSatoshiMax : feeSatoshi)
}

/** Above the cap nothing is bid: a payout that pays too little would be stuck where it can only be raised. */
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
    const milliSatPerVb = await milliSatPerVbNow(rpc, settings)
    if (milliSatPerVb > settings.milliSatPerVbMax) return refuseAboveCap(milliSatPerVb, settings)
    return accept({ family: 'bitcoin', milliSatPerVb })
  } catch (error) {
    if (!(error instanceof NoAnswer || error instanceof RpcRefusal)) throw error
    return refuse({ code: 'network', message: error.message })
  }
}
