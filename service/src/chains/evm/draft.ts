import { assert } from '../../domain/assert.ts'
import type { ChainId } from '../../domain/catalog/networks.ts'
import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import { larger } from '../../domain/money/larger.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { EvmIntent, Intent, Outflow } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid, Funds } from '../chain.ts'
import { type GasPrice, gasWithin, raisedPrice } from './fees.ts'

export type Drafter = {
  readonly chain: ChainId
  readonly evmChainId: number
  readonly capWei: bigint
  readonly gasLimitMax: bigint
  /** The contract of a token asset, or null for the native coin; throws for an asset of another chain. */
  readonly contractOf: (asset: Outflow['asset']) => string | null
  readonly parseAddress: (text: string) => Outcome<string>
}

/** `units` of the intent are the chain's: wei, or raw token units. */
export function draft(
  drafter: Drafter,
  outflow: Outflow,
  bid: FeeBid,
  funds: Funds,
): Outcome<Intent, DraftRejection> {
  assert(bid.family === 'evm' && funds.model === 'account', 'an EVM payout has an EVM bid and an EVM nonce')
  assert(Number.isSafeInteger(funds.nonce) && funds.nonce >= 0, 'a nonce counts from 0')
  const contract = drafter.contractOf(outflow.asset)
  if (outflow.kind === 'filler') {
    assert(outflow.units === 0n && contract === null, 'a filler pays nothing, in the native coin')
  } else {
    assert(outflow.units > 0n, 'a payout pays something')
  }
  const to = drafter.parseAddress(outflow.address)
  if (!to.ok) return refuse({ code: 'destination', message: to.rejection.message })
  const paid = amountAndPrice(outflow, contract, bidOver(funds.outbids, bid, drafter.capWei), funds)
  if (!paid.ok) return paid
  return accept({
    family: 'evm',
    chain: drafter.chain,
    evmChainId: drafter.evmChainId,
    payoutId: outflow.payoutId,
    attempt: 1,
    from: funds.from,
    nonce: funds.nonce,
    to: to.value,
    token: contract,
    gasLimit: bid.gasLimit,
    ...paid.value,
  })
}

type EvmBid = FeeBid & { readonly family: 'evm' }
type EvmFunds = Funds & { readonly model: 'account' }

/** Where that takes more than the cap it bids as ever: what it would have to outbid may wait nowhere. */
function bidOver(outbids: EvmIntent | undefined, bid: EvmBid, capWei: bigint): EvmBid {
  if (outbids === undefined) return bid
  const price = raisedPrice(outbids, bid, capWei)
  return price.ok ? { ...bid, ...price.value } : bid
}

function amountAndPrice(
  outflow: Outflow,
  contract: string | null,
  { gasLimit, maxFeePerGasWei, maxPriorityFeePerGasWei }: EvmBid,
  { heldWei }: EvmFunds,
): Outcome<GasPrice & { readonly units: bigint }, DraftRejection> {
  const units = toChainUnits(amountOf(outflow.asset, outflow.units))
  if (outflow.from === undefined) return accept({ units, maxFeePerGasWei, maxPriorityFeePerGasWei })
  assert(heldWei !== undefined, 'whoever drafts a sweep says what its address holds')
  if (contract === null) {
    const left = heldWei - gasLimit * maxFeePerGasWei
    if (left <= 0n) return refuse({ code: 'funds', message: `${heldWei} wei are not worth their own gas` })
    return accept({ units: left, maxFeePerGasWei, maxPriorityFeePerGasWei })
  }
  const affordableWei = heldWei / gasLimit
  if (affordableWei < leastFeeWei({ maxFeePerGasWei, maxPriorityFeePerGasWei })) {
    return refuse({ code: 'funds', message: `${heldWei} wei do not pay for ${gasLimit} gas` })
  }
  return accept({
    units,
    maxFeePerGasWei: affordableWei < maxFeePerGasWei ? affordableWei : maxFeePerGasWei,
    maxPriorityFeePerGasWei,
  })
}

/** A bid has room for the base fee to double. The gas was brought blocks ago: a quarter of the base fee is room enough. */
function leastFeeWei({ maxFeePerGasWei, maxPriorityFeePerGasWei }: GasPrice): bigint {
  return maxPriorityFeePerGasWei + ((maxFeePerGasWei - maxPriorityFeePerGasWei) * 5n) / 8n
}

/** The same payment under the same nonce, so that at most one of the attempts can ever be mined. */
export function raise(
  drafter: Drafter,
  previous: Intent,
  bid: FeeBid,
  heldWei?: bigint,
): Outcome<EvmIntent, DraftRejection> {
  assert(previous.family === 'evm' && bid.family === 'evm', 'an EVM attempt follows an EVM attempt')
  assert(previous.chain === drafter.chain, `a transaction of ${previous.chain} stays on ${previous.chain}`)
  const price = raisedPrice(previous, bid, drafter.capWei)
  const gas = gasWithin(drafter.gasLimitMax, larger(bid.gasLimit, previous.gasLimit))
  if (!gas.ok) return gas
  const gasLimit = gas.value
  const attempt = previous.attempt + 1
  if (previous.from.purpose === 'reserve') {
    return price.ok ? accept({ ...previous, attempt, gasLimit, ...price.value }) : price
  }
  // A token's gas was brought in the right amount.
  if (previous.token !== null) {
    return refuse({ code: 'funds', message: 'the address has no more wei for a higher fee' })
  }
  const spentWei = previous.units + previous.gasLimit * previous.maxFeePerGasWei
  const isCovered = heldWei === undefined || heldWei >= spentWei
  // One that is not covered waits in no mempool, so there is nothing to be outbid.
  if (!price.ok && isCovered) return price
  const { maxFeePerGasWei, maxPriorityFeePerGasWei } = price.ok ? price.value : previous
  const units = (isCovered ? spentWei : heldWei) - gasLimit * maxFeePerGasWei
  return units > 0n
    ? accept({ ...previous, attempt, gasLimit, maxFeePerGasWei, maxPriorityFeePerGasWei, units })
    : refuse({ code: 'funds', message: `${heldWei ?? spentWei} wei are not worth their own gas` })
}
