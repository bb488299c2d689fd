import { readFileSync } from 'node:fs'

/** A figure of the kernel about a process: `VmRSS` of `status`, `Pss` of `smaps_rollup` (proc(5)). */
export function kibibytes(pid: number, file: 'status' | 'smaps_rollup', name: 'VmRSS' | 'Pss'): number {
  const [, digits] =
    new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/${file}`, 'utf8')) ?? []
  if (digits === undefined) throw new Error(`${name} of the process ${pid} cannot be read`)
  return Number(digits)
}
