import { defineConfig } from 'vitest/config'

/** The tests of the domain alone, for `npm run mutation`: a mutant that none of them sees has survived. */
export default defineConfig({
  test: {
    include: ['service/src/domain/**/*.test.ts'],
    setupFiles: ['service/test/fail_at_once.ts'],
    testTimeout: 20_000,
  },
})
