import type { Stage } from '../simulated/simulated_network.ts'
import type { Stellar } from './rules.ts'

export type StellarNode = Stage<Stellar> & {
  /** The name of the network as it is told: another one while it plays the stranger. */
  passphrase(): string
}
