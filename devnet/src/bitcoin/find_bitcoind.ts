import { type FoundProgram, findProgram } from '../debian/find_program.ts'

/** Debian packages no `bitcoin-core`; Knots is a fork of it with the same RPC interface. */
const bitcoind = { name: 'bitcoind', package: /^bitcoin-knots$/, path: 'usr/bin/bitcoind' } as const

/** Never throws: without Bitcoin the rest of the devnet starts all the same. */
export function findBitcoind(log?: (line: string) => void): Promise<FoundProgram> {
  return findProgram(bitcoind, { variable: 'BITCOIND_BIN', ...(log && { log }) })
}
