/** A refusal of a command, in words for the terminal; the caller prints the message and exits with 1. */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused'
}
