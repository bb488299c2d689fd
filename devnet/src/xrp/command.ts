import type { Stage } from '../simulated/simulated_network.ts'
import type { Xrp } from './rules.ts'

export type Params = Readonly<Record<string, unknown>>
export type Answer = Record<string, unknown>
export type XrpNode = Stage<Xrp> & {
  /** As it is told: another one while it plays the stranger. */
  networkId(): number
  readonly startedAtMs: number
}

/** https://xrpl.org/docs/references/http-websocket-apis/api-conventions/error-formatting */
export class CommandError extends Error {
  readonly error: string
  readonly code: number
  /** What else the answer says: in which ledger it was not found. */
  readonly more: Answer
  constructor(error: string, code: number, message: string, more: Answer = {}) {
    super(message)
    this.error = error
    this.code = code
    this.more = more
  }
}
