import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removePostgres, startPostgres } from '@cambist/devnet'
import { byFile } from '../harness/by_file.ts'

export type ScratchPostgres = { readonly url: string; stop(): Promise<void> }

/**
 * The real server, told to forget everything in a crash, because here only connections are lost and never the machine.
 * Plans are made once and not by what a statement was asked before, so that nothing depends on the schedules before.
 */
export async function startScratchPostgres(): Promise<ScratchPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'cambist-simulation-'))
  const dataDir = join(folder, 'postgres')
  const { settings: apart, reach } = byFile(join(folder, 'sockets'))
  const server = await startPostgres({
    dataDir,
    settings: {
      fsync: 'off',
      full_page_writes: 'off',
      autovacuum: 'off',
      jit: 'off',
      max_wal_size: '4GB',
      ...apart,
      plan_cache_mode: 'force_generic_plan',
      // Whoever waits for somebody who waits is found by us, at once and always the same way.
      deadlock_timeout: '1h',
    },
  })
  return {
    url: reach(server.url),
    stop: async () => {
      await server.stop()
      removePostgres(dataDir)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
