import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Outside node_modules, so that `npm ci` does not throw away what took a download or a compiler run. */
export function cacheDir(): string {
  const base = process.env.XDG_CACHE_HOME
  const dir = join(base?.startsWith('/') ? base : join(homedir(), '.cache'), 'cambist')
  mkdirSync(dir, { recursive: true })
  return dir
}
