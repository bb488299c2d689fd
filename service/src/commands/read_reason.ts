import { CommandRefused } from '../command_refused.ts'

const REASON_MAX = 1_000

/** Why an operator does something, as the audit log is to have it. Refuses what says nothing, and what is too long. */
export function readReason(because: string): string {
  if (because.trim() === '' || because.length > REASON_MAX) {
    throw new CommandRefused(`--because says why, in at most ${REASON_MAX} characters`)
  }
  return because
}
