import { defineConfig } from 'vitest/config'
import LongestFirst from './service/test/longest_first.ts'

/** 64 MB for young objects, which are then collected less often: a twentieth of what tests cost. */
const execArgv = ['--max-semi-space-size=64']
/** What is polled for comes in a moment, or on a busy machine in many; one second is what Vitest would wait. */
const polling = { poll: { timeout: 60_000 } }

/**
 * Unit and property tests lie beside their source and run in parallel.
 * Functional tests each bring up real nodes, so their files run a few at a time and have longer limits.
 * Proofs run in their short form here; `npm run prove` runs the long one.
 */
export default defineConfig({
  test: {
    globalSetup: './service/test/harness/run_folder.ts',
    reporters: ['default', './service/test/closing_line.ts'],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{service,devnet,sdk}/src/**/*.test.ts', 'service/test/tidy/**/*.test.ts'],
          // For what hangs: the longest take five seconds, and a machine that has other work takes several times as long.
          testTimeout: 120_000,
          // Many begin with a PostgreSQL of their own, which takes its time on a machine that is busy with others.
          hookTimeout: 120_000,
          maxWorkers: 8,
          // What all of them load, each worker loads once: a fourth of their time.
          isolate: false,
          expect: polling,
          execArgv,
        },
      },
      {
        test: {
          name: 'nodes',
          include: ['service/test/{contract,functional}/**/*.test.ts', 'devnet/test/**/*.test.ts'],
          testTimeout: 240_000,
          hookTimeout: 240_000,
          maxWorkers: 8,
          isolate: false,
          expect: polling,
          execArgv,
        },
      },
      {
        test: {
          name: 'proofs',
          include: ['service/test/{proof,simulation}/**/*.test.ts'],
          provide: { proof: { size: 'short', seed: 1, part: null } },
          testTimeout: 240_000,
          hookTimeout: 240_000,
          maxWorkers: 4,
          expect: polling,
          execArgv,
          // After all others: a proof says more when everything smaller holds.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
