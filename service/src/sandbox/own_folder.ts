import { existsSync } from 'node:fs'
import { readdir, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type LockFile, tryLock } from '@cambist/devnet'
import { CommandRefused } from '../command_refused.ts'

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

/** What a sandbox keeps in its folder; drafts of these are named after them. */
const KEPT =
  /^(devnet|postgres|service\.log|sandbox\.lock(\.\w+)?|(demo_account|keystore|marker|sandbox)\.json(\.new)?)$/
/** What only a sandbox writes. Folders of earlier versions have no marker. */
const SIGNS = ['marker.json', 'demo_account.json']
/** What may be there before these. */
const BEFORE = /^(service\.log|sandbox\.lock(\.\w+)?|marker\.json\.new)$/

/**
 * A sandbox begins in a folder that is empty, or goes on in its own: in another it would write beside what is there, and `--reset`
 * would delete that with its own.
 */
export async function refuseForeignFolder(dataDir: string): Promise<void> {
  const entries = existsSync(dataDir) ? await readdir(dataDir) : []
  if (entries.some((name) => SIGNS.includes(name))) return
  const foreign = entries.find((name) => !BEFORE.test(name))
  if (foreign === undefined) return
  throw new CommandRefused(
    `${dataDir} is not empty, and no folder of a sandbox: ${foreign} is in it. ` +
      'Set CAMBIST_DATA_DIR to a folder that is empty, or that is not there yet.',
  )
}

/** Whether an entry of its folder is a sandbox's own. */
export function isKept(name: string): boolean {
  return KEPT.test(name)
}

/** Deletes what a sandbox keeps, and the folder where nothing else is in it. */
export async function emptyFolder(dataDir: string): Promise<void> {
  const entries = await readdir(dataDir)
  for (const name of entries.filter(isKept)) await rm(join(dataDir, name), { recursive: true, force: true })
  if (entries.every(isKept)) await rmdir(dataDir)
}
