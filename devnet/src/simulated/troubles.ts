/** What a test does to a simulated network. Everything is off until it is switched on, and stays on until it is cleared. */
export type Troubles = {
  /** Every answer comes so much later. */
  readonly delayMs: number
  /** Requests arrive and nothing happens, for ever. */
  readonly hangs: boolean
  /** Every request fails: HTTP 500, a cut WebSocket. */
  readonly errs: boolean
  /** Says that it is another network. */
  readonly isStranger: boolean
  /** Of EOS: finds no transaction by its id, as a node that began with a snapshot. Its blocks it tells all the same. */
  readonly isUnindexed: boolean
  /** Tells the chain as it was so many blocks ago. Switched on between two questions, the chain goes backwards. */
  readonly blocksBehind: number
  /** What happens to the transactions submitted next, one after the other; afterwards all goes well again. */
  readonly submits: readonly SubmitTrouble[]
}

export type SubmitTrouble =
  /**
   * Refused, or included as failed, with a code of the network. Which of the two, and whether a node keeps what it has refused, the
   * network says of the code.
   */
  | { readonly failWith: string }
  /** Accepted, and forgotten at once. */
  | 'drop'
  /** Done as asked; then the line is cut in place of the answer. */
  | 'lose reply'
  /** The line is cut and nothing is done. */
  | 'lose request'
  /** This one goes well. */
  | 'none'

const NONE: Troubles = {
  delayMs: 0,
  hangs: false,
  errs: false,
  isStranger: false,
  isUnindexed: false,
  blocksBehind: 0,
  submits: [],
}

export type TroubleSwitch = {
  readonly now: Troubles
  /** Adds to what is on; null clears everything. */
  set(troubles: Partial<Troubles> | null): void
  /** What happens to the transaction that is being submitted. */
  takeSubmit(): SubmitTrouble
}

export function createTroubles(): TroubleSwitch {
  let now = NONE
  return {
    get now() {
      return now
    },
    set: (troubles) => {
      now = troubles === null ? NONE : { ...now, ...troubles }
    },
    takeSubmit: () => {
      const [first = 'none', ...submits] = now.submits
      now = { ...now, submits }
      return first
    },
  }
}
