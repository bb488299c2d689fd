import { readdirSync, readFileSync } from 'node:fs'

/** Processor time of a process and all its children, dead ones included, in microseconds; from Linux's /proc. */
export function familyMicroseconds(pid: number): number {
  const parents = new Map(
    readdirSync('/proc')
      .filter(isPid)
      .map((name) => [Number(name), statOf(Number(name))]),
  )
  const ofFamily = (one: number): number => {
    const stat = parents.get(one)
    if (stat === undefined) return 0
    const living = [...parents].filter(([, other]) => other?.parent === one).map(([child]) => child)
    return living.reduce((sum, child) => sum + ofFamily(child), stat.ownTicks + stat.deadTicks)
  }
  return ofFamily(pid) * MICROSECONDS_A_TICK
}

/** What children of this process used that have ended. */
export function endedChildrenMicroseconds(): number {
  return (statOf(process.pid)?.deadTicks ?? 0) * MICROSECONDS_A_TICK
}

const MICROSECONDS_A_TICK = 10_000

function isPid(name: string): boolean {
  return /^\d+$/.test(name)
}

/** https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html; the name in brackets may hold anything. */
function statOf(pid: number): { parent: number; ownTicks: number; deadTicks: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [, parent = 0] = fields
    const [user = 0, system = 0, deadUser = 0, deadSystem = 0] = fields.slice(11)
    return { parent, ownTicks: user + system, deadTicks: deadUser + deadSystem }
  } catch {
    return undefined
  }
}
