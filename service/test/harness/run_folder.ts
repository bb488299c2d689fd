import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removePostgres } from '@cambist/devnet'
import type { TestProject } from 'vitest/node'
import { madeOnce } from './made_once.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder that the tests of a run share, gone when the run is over. */
    runFolder: string
  }
}

/** Vitest's global setup: its folder is there before the first test and gone after the last. */
export default function openRunFolder({ provide }: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'cambist-run-'))
  // A PostgreSQL in it may run as somebody else.
  chmodSync(folder, 0o755)
  provide('runFolder', folder)
  return () => {
    for (const { name, postgres } of madeOnce) removePostgres(join(folder, name, postgres))
    rmSync(folder, { recursive: true, force: true })
  }
}
