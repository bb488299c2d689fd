import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/**
 * What tells one process from a later one that got the same pid: the moment it started.
 * On Linux in clock ticks since boot, elsewhere whatever `ps` prints.
 */
export type ProcessIdentity = { readonly pid: number; readonly startedAt: string }

/** The identity of a live process, or undefined when there is none (a zombie counts as none). */
export function identify(pid: number): ProcessIdentity | undefined {
  const startedAt = process.platform === 'linux' ? linuxStart(pid) : psStart(pid)
  return startedAt === undefined ? undefined : { pid, startedAt }
}

/** True while exactly this process lives; a reused pid does not fool it. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startedAt === identity.startedAt
}

/** The command line, arguments separated by a space, or '' when it cannot be read. */
export function commandLine(pid: number): string {
  if (process.platform !== 'linux') return ps(pid, 'command=')
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}

/** https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: field 3 is the state, field 22 the start. */
function linuxStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot}:${fields[19]}`
  } catch {
    return undefined
  }
}

function psStart(pid: number): string | undefined {
  const text = ps(pid, 'lstart=')
  return text === '' ? undefined : text
}

function ps(pid: number, format: string): string {
  return spawnSync('ps', ['-p', String(pid), '-o', format], { encoding: 'utf8' }).stdout?.trim() ?? ''
}
