import type { TxStatus } from './chain.ts'

/** A Transfer event, whose contract says that it moved `units` of its own. Each chain spells its addresses in one way throughout. */
export type SaidMove = {
  readonly contract: string
  readonly from: string
  readonly to: string
  readonly units: bigint
}

type Verdict = Pick<TxStatus & { readonly where: 'block' }, 'succeeded' | 'movedOtherwise'>

/**
 * Whether a transaction of ours, which the chain did not reject, paid what it was to pay of a token. A token may answer false instead of
 * failing: then nothing left us, and its contract says nothing. A contract that has handed its work on to another one, or has begun to
 * keep a fee, says that something else was moved; whether that was paid is not ours to guess, because what failed is paid once more.
 */
export function verdictOn(payment: SaidMove, said: readonly SaidMove[]): Verdict {
  const { contract, from, to, units } = payment
  const leaving = said.filter((move) => move.from === from)
  const isPaid = leaving.some((move) => move.contract === contract && move.to === to && move.units === units)
  if (isPaid) return { succeeded: true }
  const [first] = leaving
  if (first === undefined) return { succeeded: false }
  const instead = `${first.units} units of ${first.contract} to ${first.to}`
  const more = leaving.length > 1 ? ` and ${leaving.length - 1} more` : ''
  const movedOtherwise = `it was to move ${units} units of ${contract} to ${to}, and moved ${instead}${more}`
  return { succeeded: true, movedOtherwise }
}
