import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes long comes last, because the first test that fails ends the trial of a mutant. */
const SLOWEST = ['identifiers', 'quote', 'history']

class SlowestLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      SLOWEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
    return files.toSorted((one, other) => rank(one) - rank(other))
  }
}

/** The tests of the domain alone, for `npm run mutation`: a mutant that none of them sees has survived. */
export default defineConfig({
  test: {
    include: ['service/src/domain/**/*.test.ts'],
    setupFiles: ['service/test/fail_at_once.ts'],
    sequence: { sequencer: SlowestLast },
    testTimeout: 20_000,
  },
})
