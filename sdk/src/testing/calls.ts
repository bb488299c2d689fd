import { CambistError } from '../cambist_error.ts'

export const order = {
  from: 'BTC',
  from_network: 'BTC',
  to: 'USDT',
  to_network: 'ERC20',
  amount: '0.10',
  rate_type: 'fixed',
  destination: '0x00000000000000000000000000000000000000aa',
} as const

/** The error that a call rejects with; throws when it does not. */
export async function failure(call: Promise<unknown>): Promise<CambistError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof CambistError)) throw new Error(`expected a CambistError, got ${String(error)}`)
  return error
}
