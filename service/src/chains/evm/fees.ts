import { larger } from '../../domain/money/larger.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { DraftRejection } from '../chain.ts'
import { decodeHeader, quantity } from './decode.ts'
import { isMethodMissing, type JsonRpc, NodeNonsense, unwrap } from './json_rpc.ts'

/** What the chain asks now, per gas. */
export type AskedFees = { readonly baseWei: bigint; readonly tipWei: bigint }

/** EIP-1559 prices, per gas. https://eips.ethereum.org/EIPS/eip-1559 */
export type GasPrice = { readonly maxFeePerGasWei: bigint; readonly maxPriorityFeePerGasWei: bigint }

/**
 * The base fee is the chain's own; the tip is the node's advice, because each chain has its own least one that
 * validators take (BNB Smart Chain has a base fee of nothing and lives by the tip alone).
 */
export async function askedFees(rpc: JsonRpc): Promise<AskedFees> {
  const [latest, tip, price] = await rpc.settle([
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
    { method: 'eth_maxPriorityFeePerGas', params: [] },
    { method: 'eth_gasPrice', params: [] },
  ])
  if (latest === undefined || tip === undefined || price === undefined) {
    throw new NodeNonsense('the node left a call unanswered')
  }
  const baseWei = decodeHeader(unwrap(latest)).baseFeePerGasWei
  if (baseWei === null) throw new NodeNonsense('the chain has no base fee: EIP-1559 is needed')
  if (tip.ok) return { baseWei, tipWei: atLeastOne(quantity(tip.value, 'advised tip')) }
  if (!isMethodMissing(tip.rejection)) throw tip.rejection
  return { baseWei, tipWei: atLeastOne(quantity(unwrap(price), 'gas price') - baseWei) }
}

/** A tip of nothing can never be raised by a percentage. */
function atLeastOne(wei: bigint): bigint {
  return wei > 0n ? wei : 1n
}

/** Room for the base fee to double (six full blocks in a row), within the cap; refused if even today's price is above it. */
export function priceWithin(
  capWei: bigint,
  { baseWei, tipWei }: AskedFees,
): Outcome<GasPrice, DraftRejection> {
  if (baseWei + tipWei > capWei) {
    return refuse({
      code: 'fee_cap',
      message: `the chain asks ${baseWei + tipWei} wei per gas and the cap is ${capWei}`,
    })
  }
  const roomyWei = 2n * baseWei + tipWei
  return accept({
    maxFeePerGasWei: roomyWei < capWei ? roomyWei : capWei,
    maxPriorityFeePerGasWei: tipWei,
  })
}

/**
 * Whether no block takes it now, and one at a higher price would be taken: it leaves less of the base fee than the tip, its own or the
 * advised one. Where the cap lets no higher price be, nothing is to be done about it.
 */
export function isPricedOut(price: GasPrice, asked: AskedFees, capWei: bigint): boolean {
  const { maxFeePerGasWei, maxPriorityFeePerGasWei } = price
  // Of a chain that lives by tips alone any wei more of advice would price out what blocks take.
  const tipWei = asked.tipWei < maxPriorityFeePerGasWei ? asked.tipWei : maxPriorityFeePerGasWei
  if (maxFeePerGasWei >= asked.baseWei + tipWei) return false
  const bid = priceWithin(capWei, asked)
  return bid.ok && raisedPrice(price, bid.value, capWei).ok
}

/**
 * The least price that takes the place of a transaction with the same nonce: nodes want 10 % more on both fees
 * (geth's txpool.pricebump), some a little more than that.
 */
export function raisedPrice(
  previous: GasPrice,
  asked: GasPrice,
  capWei: bigint,
): Outcome<GasPrice, DraftRejection> {
  const maxFeePerGasWei = larger(raiseByEighth(previous.maxFeePerGasWei), asked.maxFeePerGasWei)
  const tipWei = larger(raiseByEighth(previous.maxPriorityFeePerGasWei), asked.maxPriorityFeePerGasWei)
  if (maxFeePerGasWei > capWei) {
    return refuse({
      code: 'fee_cap',
      message: `replacing the earlier attempt takes ${maxFeePerGasWei} wei per gas and the cap is ${capWei}`,
    })
  }
  if (tipWei > maxFeePerGasWei) {
    return refuse({ code: 'fee_cap', message: `the tip of ${tipWei} wei per gas is above the whole price` })
  }
  return accept({ maxFeePerGasWei, maxPriorityFeePerGasWei: tipWei })
}

/** What a transaction is given, if the operator allows so much. */
export function gasWithin(gasLimitMax: bigint, gasLimit: bigint): Outcome<bigint, DraftRejection> {
  return gasLimit > gasLimitMax
    ? refuse({ code: 'fee_cap', message: `it takes ${gasLimit} gas and the cap is ${gasLimitMax}` })
    : accept(gasLimit)
}

/** 12.5 % more, rounded up, and always more. */
function raiseByEighth(wei: bigint): bigint {
  return larger((wei * 9n + 7n) / 8n, wei + 1n)
}
