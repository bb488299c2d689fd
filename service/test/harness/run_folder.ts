import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removePostgres } from '@cambist/devnet'
import type { TestProject } from 'vitest/node'
import { madeOnce } from './made_once.ts'
import { memoryFolder } from './memory_folder.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder that the tests of a run share, gone when the run is over. */
    runFolder: string
  }
}

/** Several times what a whole run has there at once. */
const ROOM_BYTES = 3 * 1024 ** 3

/**
 * Vitest's global setup: its folder is there before the first test and gone after the last. It is where tests and all that they
 * start have their temporary files, in memory if nobody has said where (`TMPDIR`).
 */
export default function openRunFolder({ provide }: TestProject): () => void {
  const base = process.env.TMPDIR === undefined ? memoryFolder(ROOM_BYTES) : null
  const folder = mkdtempSync(join(base ?? tmpdir(), 'cambist-'))
  // A PostgreSQL in it may run as somebody else.
  chmodSync(folder, 0o755)
  provide('runFolder', folder)
  // Workers are started with it, and start what they start with it.
  const before = process.env.TMPDIR
  process.env.TMPDIR = folder
  return () => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    for (const { name, postgres } of madeOnce) removePostgres(join(folder, name, postgres))
    rmSync(folder, { recursive: true, force: true })
  }
}
