import type { FeeBid } from '../../chains/chain.ts'
import { assert } from '../../domain/assert.ts'

/**
 * In the native coin's own units. `most`: the most that a transaction of this bid may cost. `bringing`: the most that bringing the coin for
 * it may cost.
 */
export type GasCost = { readonly most: bigint; readonly bringing: bigint }

/** A transfer of TRX to an address that is no account yet makes it one: https://developers.tron.network/docs/account */
export const NEW_ACCOUNT_SUN = 1_100_000n

export function gasCostOf(bid: FeeBid): GasCost {
  switch (bid.family) {
    case 'evm':
      return {
        most: bid.gasLimit * bid.maxFeePerGasWei,
        bringing: (bid.bringingGas ?? 0n) * bid.maxFeePerGasWei,
      }
    case 'tron':
      return { most: bid.feeLimitSun + bid.otherSun, bringing: NEW_ACCOUNT_SUN }
    case 'solana':
      // The reserve pays for a token that leaves a deposit address.
      return { most: bid.feeLamports, bringing: 0n }
    case 'bitcoin':
    case 'xrp':
    case 'stellar':
    case 'eos':
      assert(false, 'deposits that are swept lie on addresses of their own')
  }
}

/** Whether coin, in its chain's units, is less than `multiple` times what moving it may cost: nobody waits for a sweep of that. */
export function isTooDearToMove(held: bigint, bid: FeeBid, multiple: bigint): boolean {
  return held < multiple * gasCostOf(bid).most
}
