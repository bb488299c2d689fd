import { defineConfig } from 'vitest/config'
import ProofTable from './service/test/proof/proof_table.ts'

/**
 * The long form of every proof, one file at a time, because each wants the machine for itself.
 * `npm run prove -- crash` runs the files whose path has that word; `PROOF_SEED=7` repeats the choices of a run.
 */
export default defineConfig({
  test: {
    reporters: ['default', new ProofTable(new URL('./docs/proof.md', import.meta.url).pathname)],
    include: ['service/test/{proof,simulation}/**/*.test.ts'],
    provide: { proof: { size: 'long', seed: Number(process.env.PROOF_SEED ?? 1) } },
    fileParallelism: false,
    hookTimeout: 600_000,
  },
})
