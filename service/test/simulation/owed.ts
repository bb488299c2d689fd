import type { Owed } from './chain_promises.ts'

/**
 * What the audit has to say of an order that is owed what it was paid, for a person to see: that its outflow is over, and that
 * what it had paid came back. Whatever else it says of the order is as wrong as of any other.
 */
function meantOf({ order_id }: Owed): readonly RegExp[] {
  const about = `^the books agree with themselves: ${order_id} \\(outflows\\): `
  const booked = 'is booked as orphaned with [\\d.]+ BTC:BTC, and that is 0 BTC:BTC$'
  return [
    new RegExp(`${about}the failed (payout|refund) ${order_id}:\\d+ ${booked}`),
    new RegExp(`${about}it is (DONE|REFUNDED) and its outflow ${order_id}:\\d+ is not confirmed$`),
  ]
}

/** What is wrong: every violation that is not meant, and every meant one that is not there. */
export function judgeViolations(violations: readonly string[], owed: readonly Owed[]): string[] {
  const meant = owed.flatMap((one) => meantOf(one).map((sentence) => ({ ...one, sentence })))
  return [
    ...violations.filter((violation) => !meant.some(({ sentence }) => sentence.test(violation))),
    ...meant
      .filter(({ sentence }) => !violations.some((violation) => sentence.test(violation)))
      .map(({ order_id }) => `${order_id} is owed what it was paid, and the audit does not say so`),
  ]
}
