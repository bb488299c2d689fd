import { assert } from '../../domain/assert.ts'
import type { ChainId } from '../../domain/catalog/networks.ts'
import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { EvmIntent, Intent, Outflow } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid, Funds } from '../chain.ts'
import { larger, raisedPrice } from './fees.ts'

export type Drafter = {
  readonly chain: ChainId
  readonly evmChainId: number
  readonly capWei: bigint
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
  assert(bid.family === 'evm' && funds.family === 'evm', 'an EVM payout has an EVM bid and an EVM nonce')
  assert(Number.isSafeInteger(funds.nonce) && funds.nonce >= 0, 'a nonce counts from 0')
  const contract = drafter.contractOf(outflow.asset)
  if (outflow.kind === 'filler') {
    assert(outflow.units === 0n && contract === null, 'a filler pays nothing, in the native coin')
  } else {
    assert(outflow.units > 0n, 'a payout pays something')
  }
  const to = drafter.parseAddress(outflow.address)
  if (!to.ok) return refuse({ code: 'destination', message: to.rejection.message })
  return accept({
    family: 'evm',
    chain: drafter.chain,
    evmChainId: drafter.evmChainId,
    payoutId: outflow.payoutId,
    attempt: 1,
    from: funds.from,
    nonce: funds.nonce,
    to: to.value,
    units: toChainUnits(amountOf(outflow.asset, outflow.units)),
    token: contract,
    gasLimit: bid.gasLimit,
    maxFeePerGasWei: bid.maxFeePerGasWei,
    maxPriorityFeePerGasWei: bid.maxPriorityFeePerGasWei,
  })
}

/** The same payment under the same nonce, so that at most one of the attempts can ever be mined. */
export function raise(drafter: Drafter, previous: Intent, bid: FeeBid): Outcome<EvmIntent, DraftRejection> {
  assert(previous.family === 'evm' && bid.family === 'evm', 'an EVM attempt follows an EVM attempt')
  assert(previous.chain === drafter.chain, `a transaction of ${previous.chain} stays on ${previous.chain}`)
  const price = raisedPrice(previous, bid, drafter.capWei)
  if (!price.ok) return price
  return accept({
    ...previous,
    attempt: previous.attempt + 1,
    gasLimit: larger(bid.gasLimit, previous.gasLimit),
    ...price.value,
  })
}
