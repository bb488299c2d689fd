import { readdirSync, readFileSync } from 'node:fs'

const TICK_MICROSECONDS = 10_000

/** Processor time that a PostgreSQL server took so far, with all its backends, living and gone. Linux only. */
export function postgresCpuMicroseconds(postmaster: number): number {
  const own = statOf(postmaster)
  if (own === null) throw new Error('PostgreSQL is gone')
  let microseconds = ranMicroseconds(postmaster) + own.goneChildrenTicks * TICK_MICROSECONDS
  for (const name of readdirSync('/proc')) {
    const pid = /^\d+$/.test(name) ? Number(name) : 0
    if (pid !== 0 && statOf(pid)?.parent === postmaster) microseconds += ranMicroseconds(pid)
  }
  return microseconds
}

/** https://docs.kernel.org/scheduler/sched-stats.html: the first number is nanoseconds on a processor. */
function ranMicroseconds(pid: number): number {
  const [nanoseconds = '0'] = readOrNothing(`/proc/${pid}/schedstat`).split(' ')
  return Number(nanoseconds) / 1_000
}

function statOf(pid: number): { readonly parent: number; readonly goneChildrenTicks: number } | null {
  const text = readOrNothing(`/proc/${pid}/stat`)
  // The name in brackets may hold anything; the fields after it are counted from the state on.
  const rest = text.slice(text.lastIndexOf(')') + 2).split(' ')
  if (rest.length < 15) return null
  return { parent: Number(rest[1]), goneChildrenTicks: Number(rest[13]) + Number(rest[14]) }
}

/** A process may end while it is looked at. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
