import { inject } from 'vitest'
import { copyMadeOnce } from './made_once.ts'

/** The log of the first start, and where a second looks for its programs, whose ports are somebody else's by now. */
const LEFT_OUT = [
  'service.log',
  'devnet/bitcoin/node.json',
  'devnet/eth/node.json',
  'devnet/bnb/node.json',
  'postgres/server.json',
]

/**
 * Fills an empty folder with what a first start of a sandbox leaves behind when it stops: a database, funded chains,
 * addresses. `make` starts a sandbox in the folder that it is given, and stops it.
 */
export function copyFirstStart(dataDir: string, make: (dataDir: string) => Promise<void>): Promise<void> {
  return copyMadeOnce(
    { runFolder: inject('runFolder'), name: 'first_start', make, leftOut: LEFT_OUT },
    dataDir,
  )
}
