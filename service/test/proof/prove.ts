import { inject, type TestContext, test } from 'vitest'

/** `short` runs with every `npm test`; `long` is `npm run prove`, and what docs/proof.md tells of. */
export type ProofSize = 'short' | 'long'

/** One figure of a proof: what was counted, and what came out. */
export type Figure = { readonly what: string; readonly value: string }

/** What a proof hands to the table: its claim, the seed that repeats it, and its figures. */
export type ProofRecord = {
  readonly claim: string
  readonly size: ProofSize
  readonly seed: number
  readonly figures: readonly Figure[]
  /** Which part of the whole this was, when it was run in parts. */
  readonly part: Part | null
}

/** `PROOF_PART=2/4`: the second of four. */
export type Part = { readonly number: number; readonly of: number }

declare module 'vitest' {
  interface ProvidedContext {
    proof: { readonly size: ProofSize; readonly seed: number; readonly part: Part | null }
  }
  interface TaskMeta {
    proof?: ProofRecord
  }
}

export type Proof = {
  readonly size: ProofSize
  /** All chance of a proof comes from this; the same seed makes the same choices. */
  readonly seed: number
  /** The number for this size. */
  sized(sizes: Readonly<Record<ProofSize, number>>): number
  /** What this part of the proof is to do, of all of it: everything, when it is not run in parts. */
  share<Item>(items: readonly Item[]): readonly Item[]
  /** Notes a figure for the table. */
  figure(what: string, value: number | string): void
}

const DEADLINES_MS = { short: 1_800_000, long: 4 * 3_600_000 } as const

/**
 * A test of a promise of the service that can be shown at two sizes. `run` throws when the claim does not hold; what it
 * counted stands in the table of `npm run prove`, and a failure names the seed that repeats it.
 */
export function prove(claim: string, run: (proof: Proof) => Promise<void>): void {
  const { size, seed, part } = inject('proof')
  test(claim, { timeout: DEADLINES_MS[size] }, async ({ task, annotate }: TestContext) => {
    const figures: Figure[] = []
    task.meta.proof = { claim, size, seed, figures, part: null }
    try {
      await run({
        size,
        seed,
        sized: (sizes) => sizes[size],
        share: (items) => {
          task.meta.proof = { claim, size, seed, figures, part }
          return part === null ? items : shareOf(items, part)
        },
        figure: (what, value) => void figures.push({ what, value: show(value) }),
      })
    } catch (error) {
      await annotate(`the same again: PROOF_SEED=${seed}`)
      throw error
    }
  })
}

function shareOf<Item>(items: readonly Item[], { number, of }: Part): readonly Item[] {
  return items.slice(Math.floor(((number - 1) * items.length) / of), Math.floor((number * items.length) / of))
}

function show(value: number | string): string {
  return typeof value === 'string' ? value : value.toLocaleString('en-US', { maximumFractionDigits: 2 })
}
