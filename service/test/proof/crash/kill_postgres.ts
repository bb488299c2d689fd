import { readFileSync } from 'node:fs'

/**
 * SIGKILL for the server and everything it forked: nothing of it flushes, rolls back or says goodbye. The server is
 * frozen first, so that it neither begins its recovery while its backends die, nor do they learn that it is dead.
 */
export function killPostgres(postmaster: number): void {
  if (!isPostgres(postmaster)) throw new Error(`${postmaster} is no server`)
  send(postmaster, 'SIGSTOP')
  for (const pid of childrenOf(postmaster)) send(pid, 'SIGKILL')
  send(postmaster, 'SIGKILL')
}

export function isPostgres(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'postgres'
  } catch {
    return false
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It went away by itself.
  }
}

/** https://man7.org/linux/man-pages/man5/proc_pid_task_children.5.html */
function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return text.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}
