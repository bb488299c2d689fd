import type { SolanaIntent } from './intent.ts'

/**
 * A transaction may be in so many blocks after the one that it refers to. MAX_PROCESSING_AGE of Agave (sdk/clock) is 150, counted from
 * zero and before a block has noted its own hash: https://github.com/anza-xyz/agave, runtime/src/bank.rs, check_age.
 */
export const SOLANA_BLOCKS_OF_LIFE = 151

/** The last block that it can be in. What was drafted while the service knew of one block less says so in `lastHeight`. */
export function lastBlockOf({ reference }: Pick<SolanaIntent, 'reference'>): number {
  return reference.height + SOLANA_BLOCKS_OF_LIFE
}
