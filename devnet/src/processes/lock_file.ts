import { randomBytes } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { identify, isAlive, type ProcessIdentity } from './identity.ts'
import { waitFor } from './wait.ts'

export type LockFile = { release(): void }

/**
 * Takes the lock, or returns the live process that holds it.
 * A lock whose owner is dead is taken over: the pid alone would not do, pids are reused.
 */
export function tryLock(path: string): LockFile | { heldBy: ProcessIdentity } {
  const me = identify(process.pid)
  if (me === undefined) throw new Error('this process cannot see itself')
  const nonce = randomBytes(8).toString('hex')
  const draft = `${path}.${nonce}`
  writeFileSync(draft, JSON.stringify({ ...me, nonce }))
  try {
    for (;;) {
      if (linkIfAbsent(draft, path)) return { release: () => releaseIfMine(path, nonce) }
      const owner = readOwner(path)
      if (owner === undefined) continue
      if (isAlive(owner)) return { heldBy: { pid: owner.pid, startedAt: owner.startedAt } }
      removeStale(path, owner.nonce)
    }
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Waits for the lock while its owner lives. */
export async function withLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const lock = await waitFor(
    `lock ${path}`,
    () => {
      const attempt = tryLock(path)
      return 'release' in attempt ? attempt : undefined
    },
    { timeoutMs: 120_000, everyMs: 50 },
  )
  try {
    return await work()
  } finally {
    lock.release()
  }
}

type Owner = ProcessIdentity & { nonce: string }

/** link(2) either creates the name with its whole content or fails: no half-written lock is ever seen. */
function linkIfAbsent(draft: string, path: string): boolean {
  try {
    linkSync(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Of what a cut of the power left of a lock: nobody who was then lives. */
const NOBODY: Owner = { pid: 0, startedAt: '', nonce: '' }

function readOwner(path: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Owner
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    if (error instanceof SyntaxError) return NOBODY
    throw error
  }
}

/** Moves it aside first: if somebody else was quicker, what we moved is theirs and goes back. */
function removeStale(path: string, nonce: string): void {
  const aside = `${path}.stale.${randomBytes(8).toString('hex')}`
  try {
    renameSync(path, aside)
  } catch {
    return
  }
  if (readOwner(aside)?.nonce !== nonce) linkIfAbsent(aside, path)
  rmSync(aside, { force: true })
}

function releaseIfMine(path: string, nonce: string): void {
  if (readOwner(path)?.nonce === nonce) rmSync(path, { force: true })
}
