import { join } from 'node:path'
import { type LockFile, tryLock } from '@cambist/devnet'

/** Another sandbox runs on the folder. */
export class FolderTaken extends Error {
  override readonly name = 'FolderTaken'
}

/**
 * One sandbox a folder, taken before anything in it is touched: a second one would adopt the database of the first, and
 * stop it with itself. The lock of a process that was killed is taken over.
 */
export function ownFolder(dataDir: string): LockFile {
  const lock = tryLock(join(dataDir, 'sandbox.lock'))
  if ('release' in lock) return lock
  throw new FolderTaken(
    `A sandbox is running in ${dataDir} already (process ${lock.heldBy.pid}): stop that one first, or set CAMBIST_DATA_DIR to another folder.`,
  )
}
