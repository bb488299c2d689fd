import { readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A virtual machine that is stuck in native code as long as the folder still has a folder in it that it can take away: a pipe to which
 * nobody writes is opened for ever. Otherwise the true one.
 */
const folder = process.env.STUCK_FOLDER ?? ''

function isStuck(): boolean {
  for (const name of ['1', '2', '3']) {
    try {
      rmdirSync(join(folder, name))
      return true
    } catch {
      // Another one has taken it, or it was never there.
    }
  }
  return false
}

if (isStuck()) readFileSync(join(folder, 'pipe'))
await import('../src/solana/vm_thread.ts')
