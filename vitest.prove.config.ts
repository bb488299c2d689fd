import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import ProofTable from './service/test/proof/proof_table.ts'
import type { Part } from './service/test/proof/prove.ts'

// Gigabytes of temporary files belong on a disk; the run's folder is in memory where nobody says otherwise.
process.env.TMPDIR ??= tmpdir()

/**
 * The long form of every proof, one file at a time, because each wants the machine for itself.
 * `npm run prove -- crash` runs the files whose path has that word; `PROOF_SEED=7` repeats the choices of a run, and
 * `PROOF_PART=2/4` does the second of four parts of those that take hours.
 */
export default defineConfig({
  test: {
    globalSetup: './service/test/harness/run_folder.ts',
    reporters: ['default', new ProofTable({ page: inDocs('proof.md'), runs: inDocs('proof_runs.json') })],
    include: ['service/test/{proof,simulation}/**/*.test.ts'],
    provide: { proof: { size: 'long', seed: Number(process.env.PROOF_SEED ?? 1), part: part() } },
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
})

function inDocs(name: string): string {
  return join(import.meta.dirname, `docs/${name}`)
}

function part(): Part | null {
  const text = process.env.PROOF_PART
  if (text === undefined) return null
  const [number = 0, of = 0] = (/^(\d+)\/(\d+)$/.exec(text) ?? []).slice(1).map(Number)
  if (number < 1 || number > of) throw new Error('PROOF_PART has to be like 2/4, the second of four')
  return { number, of }
}
