import { LineFailed } from './chains/line.ts'

/** Where a fault may strike. */
export type Place =
  | 'statement'
  | 'statement in a transaction'
  | 'commit'
  | 'question'
  | 'broadcast'
  | 'signature'

/**
 * `fails`: it never happens. `answer lost`: it happens and the asker hears of an error. `dies before`, `dies after`:
 * the process that asks ends there.
 */
export type Fault = 'fails' | 'answer lost' | 'deadlock' | 'dies before' | 'dies after'

export const possibleFaults = {
  statement: ['fails', 'answer lost', 'dies before', 'dies after'],
  'statement in a transaction': ['fails', 'deadlock', 'dies before', 'dies after'],
  commit: ['fails', 'answer lost', 'dies before', 'dies after'],
  question: ['fails', 'dies before', 'dies after'],
  broadcast: ['fails', 'answer lost', 'dies before', 'dies after'],
  signature: ['fails', 'answer lost', 'dies before', 'dies after'],
} as const satisfies Record<Place, readonly Fault[]>

/** What cannot be undone. Right after it, a failure hurts most: it is done and not written down. */
export const acts: readonly Place[] = ['commit', 'broadcast', 'signature']

/** The process has ended: nothing that it still does reaches anything. */
export class ProcessDied extends Error {}

/** The database could not be reached any more, or says so. */
export class DatabaseFailed extends Error {
  readonly code: string | undefined
  constructor(message: string, code?: string) {
    super(message)
    this.code = code
  }
}

export function faultAt(place: Place, what: string): Error {
  if (place === 'question' || place === 'broadcast') return new LineFailed(`no answer to ${what}`)
  if (place === 'signature') return new SignerFailed('the signer does not answer')
  return new DatabaseFailed('Connection terminated unexpectedly')
}

export function deadlock(): Error {
  return new DatabaseFailed('deadlock detected', '40P01')
}

export class SignerFailed extends Error {}

const expected = [ProcessDied, DatabaseFailed, SignerFailed, LineFailed]

/**
 * What a step may fail with in bad times: a fault, or a lease that somebody else has by now, or something for such a cause, or several
 * of these and nothing else.
 */
export function isExpected(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isExpected)
  const isFault =
    expected.some((kind) => error instanceof kind) || /^Error: the lease .* was lost$/.test(String(error))
  return isFault || (error instanceof Error && error.cause !== undefined && isExpected(error.cause))
}
