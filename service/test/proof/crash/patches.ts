import { readFileSync } from 'node:fs'

/** Text of the service that is replaced as it is loaded. `find` stands in the file exactly once, or nothing starts. */
export type Patch = {
  /** Below service/src. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

export const SOURCE = new URL('../../../src/', import.meta.url).href

/** A lease and a claim run out after 6 s; a run in which a hundred processes die waits a fifth of that. */
export const quickSuccession: readonly Patch[] = [
  { file: 'engine/lease.ts', find: 'const HOLD_MS = 6_000', replace: 'const HOLD_MS = 1_200' },
  { file: 'engine/payouts/claim.ts', find: 'const CLAIM_MS = 6_000', replace: 'const CLAIM_MS = 1_200' },
  // Ledgers come five times as fast here, and so the last one of a payout does.
  { file: 'engine/default_policy.ts', find: 'XRP: 45 * SECOND_MS', replace: 'XRP: 3 * SECOND_MS' },
  { file: 'engine/default_policy.ts', find: 'XLM: 60 * SECOND_MS', replace: 'XLM: 3 * SECOND_MS' },
]

/** Nobody rings across processes, and a good part of what five of them cost is asking whether something is due. */
export const seldomAsking: Patch = {
  file: 'engine/default_policy.ts',
  find: 'restMs: 200',
  replace: 'restMs: 500',
}

/** Why a patch does not fit the code as it is, in words; null where it does. */
export function misfitOf({ file, find }: Patch): string | null {
  const count = readFileSync(new URL(file, SOURCE), 'utf8').split(find).length - 1
  return count === 1 ? null : `the patch of ${file} does not fit the code: there ${count} times is\n${find}`
}
