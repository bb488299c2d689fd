import { listIn, objectIn, textIn } from './replies.ts'
import { NoAnswer } from './rpc.ts'

/** What a block gives to an account by itself, in none of its transactions. */
export type Reward = {
  /** Which of the block's rewards. */
  readonly at: number
  readonly address: string
  /** As JSON tells it: beyond 2^53 it is not exact, and not ours. Negative where something is taken. */
  readonly lamports: number
  /** Fees are given when all transactions have run, everything else before the first. */
  readonly isAtEnd: boolean
}

/**
 * With `rewards: true`: https://solana.com/docs/rpc/http/getblock. Whoever has a validator may name an account that gets what it earns,
 * and that nobody has to agree to (SIMD-0232).
 */
export function readRewards(value: unknown): readonly Reward[] {
  return listIn(value, 'getBlock rewards').map((reward, at): Reward => {
    const { pubkey, lamports, rewardType } = objectIn(reward, 'reward')
    if (typeof lamports !== 'number') throw new NoAnswer('reward lamports', 'it should be a number')
    return { at, address: textIn(pubkey, 'reward pubkey'), lamports, isAtEnd: rewardType === 'Fee' }
  })
}
