import { accessSync, constants, readFileSync, statfsSync } from 'node:fs'

const MEMORY = '/dev/shm'

/**
 * A folder whose files are in memory, or null where it is too small, programs in it do not run, or there is none. Tests make
 * and remove a hundred database clusters of a thousand small files each. On a disk most of what those cost is finding room for
 * names: ext4 passes by the inodes that were freed in the last minutes, one by one.
 *
 * `bytes`: how much has to be free there, and twice that in the machine (or in the container that we are in).
 */
export function memoryFolder(bytes: number): string | null {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    const isRoomy = bavail * bsize >= bytes && process.availableMemory() >= 2 * bytes
    return isRoomy && runsPrograms() ? MEMORY : null
  } catch {
    // Another system than Linux, or a container without it.
    return null
  }
}

/** `/dev/shm` is often mounted `noexec` in containers. */
function runsPrograms(): boolean {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const mounted = mounts.map((line) => line.split(' ')).findLast(([, folder]) => folder === MEMORY)
  return mounted !== undefined && !(mounted[3] ?? '').split(',').includes('noexec')
}
