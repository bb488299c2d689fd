import { globSync } from 'node:fs'
import { type FoundProgram, findProgram } from '../debian/find_program.ts'

const pgbench = {
  name: 'pgbench',
  package: /^postgresql-\d+$/,
  path: 'usr/lib/postgresql/*/bin/pgbench',
} as const

/** The load generator of PostgreSQL, for benchmarks: it comes with a server, and the embedded one leaves it out. */
export function findPgbench(log: (line: string) => void): Promise<FoundProgram> {
  const folders = globSync('/usr/lib/postgresql/*/bin')
  return findProgram(pgbench, { variable: 'PGBENCH_BIN', folders, log })
}
