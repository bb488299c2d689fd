import { createHash } from 'node:crypto'

/** The 20 bytes that stand in an address of ours; the node and the watcher agree on them. */
export function ownProgram(chain: string, index: number): Buffer {
  return createHash('sha256').update(`${chain} ${index}`).digest().subarray(0, 20)
}

/** Which keys are paid in a block. */
export const PAID_A_BLOCK = 3

export function paidIn(height: number): readonly number[] {
  return Array.from({ length: PAID_A_BLOCK }, (_, ordinal) => height * PAID_A_BLOCK + ordinal)
}
