import { expect } from 'vitest'
import type { TestSandbox } from './test_sandbox.ts'

type AttemptRow = {
  readonly attempt: number
  readonly tx_hash: string | null
  readonly bytes: string | null
  readonly answer: string | null
  /** Of the outflow that it is an attempt of. */
  readonly state: string
}

/** Every transaction that was ever drafted to pay this order, or to pay it back. */
export function attemptsOf({ rows }: TestSandbox, orderId: string): Promise<AttemptRow[]> {
  return rows<AttemptRow>(
    `SELECT a.attempt, a.tx_hash, a.bytes, a.answer, o.state FROM attempts a JOIN outflows o USING (bucket, payout_id)
     WHERE o.order_id = $1 ORDER BY o.payout_id, a.attempt`,
    [orderId],
  )
}

/**
 * Waits until the network has refused the only attempt of this order's payout, and the payout waits because of it: from then
 * on its trouble lasts. Whoever advances the clock sooner may advance it before the trouble has begun.
 */
export async function expectRefused(sandbox: TestSandbox, orderId: string): Promise<AttemptRow> {
  return sandbox.eventually('the payout is refused, and waits', async () => {
    const attempts = await attemptsOf(sandbox, orderId)
    expect(attempts).toMatchObject([{ answer: 'refused' }])
    const outflows = await sandbox.rows('SELECT trouble_since_ms FROM outflows WHERE order_id = $1', [
      orderId,
    ])
    expect(outflows).toEqual([{ trouble_since_ms: expect.any(Number) }])
    return attempts[0] ?? raise()
  })
}

function raise(): never {
  throw new Error('one attempt was expected')
}
