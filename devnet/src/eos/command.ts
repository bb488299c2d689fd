import type { Stage } from '../simulated/simulated_network.ts'
import type { Eos } from './blocks.ts'

export type Params = Readonly<Record<string, unknown>>
export type EosNode = Stage<Eos> & {
  /** As it is told: of another network while it plays the stranger. */
  chainId(): string
}

/** An answer that is neither 200 nor an error of the chain. */
export class OtherStatus extends Error {
  readonly status: number
  readonly body: unknown
  constructor(status: number, body: unknown) {
    super(`HTTP ${status}`)
    this.status = status
    this.body = body
  }
}
