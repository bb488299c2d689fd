/** https://solana.com/docs/core/programs: what the main network begins with, as far as this simulator has to know of it. */
export const SYSTEM_PROGRAM = '1'.repeat(32)
export const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
export const TOKEN_2022_PROGRAM = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'
export const COMPUTE_BUDGET_PROGRAM = 'ComputeBudget111111111111111111111111111111'

/** A byte costs so much for ever, and so do 128 beside those that an account has: https://solana.com/docs/core/fees#rent */
const LAMPORTS_PER_BYTE = 6_960n
const BYTES_OF_EVERY_ACCOUNT = 128n

export function rentExemptMinimum(dataBytes: number): bigint {
  return (BigInt(dataBytes) + BYTES_OF_EVERY_ACCOUNT) * LAMPORTS_PER_BYTE
}
