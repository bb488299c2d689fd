import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { removePostgres, stopDevnetIn, stopPostgresIn } from '@cambist/devnet'
import { CommandRefused } from '../command_refused.ts'
import type { SandboxConfig } from '../config/sandbox_config.ts'
import { emptyFolder, ownFolder, refuseForeignFolder } from './own_folder.ts'

/** Stops whatever a killed sandbox left running and deletes everything it kept, in whatever state that is. */
export async function resetSandbox(config: SandboxConfig): Promise<void> {
  if (config.databaseUrl !== null) {
    throw new CommandRefused(
      '--reset deletes only what the sandbox made itself: drop and create the database that DATABASE_URL names, delete ' +
        `${config.dataDir}, and start without --reset.`,
    )
  }
  const dataDir = resolve(config.dataDir)
  if (!existsSync(dataDir)) return
  await refuseForeignFolder(dataDir)
  const lock = ownFolder(dataDir)
  try {
    await Promise.all([stopDevnetIn(join(dataDir, 'devnet')), stopPostgresIn(join(dataDir, 'postgres'))])
    removePostgres(join(dataDir, 'postgres'))
    await emptyFolder(dataDir)
  } finally {
    lock.release()
  }
}
