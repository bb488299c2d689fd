import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** A fresh checkout does not know yet which files take long, and the longest must not be left alone at the end. */
const LONGEST = ['crash', 'crash_controls', 'simulation', 'faults', 'canary_secrets', 'reconciler', 'reorgs']

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => rank(one) - rank(other))
  }
}

function rank({ moduleId }: TestSpecification): number {
  const found = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
  return found < 0 ? LONGEST.length : found
}
