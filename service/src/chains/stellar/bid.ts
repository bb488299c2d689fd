import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { countOfSequence, type Outflow } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid } from '../chain.ts'
import { readAccount, reserveOf } from './account.ts'
import { parsePlace } from './address.ts'
import { askedFee, feeWithin } from './fees.ts'
import { type Horizon, NoAnswer } from './horizon.ts'
import { head } from './ledger.ts'

/** By then a payout is in a ledger, or never will be. */
export const LIFE_S = 60

export type Bidder = {
  readonly horizon: Horizon
  readonly feeStroopsMax: bigint
  readonly reserveAccount: () => Promise<string>
}

/** Looks at who is to be paid as the ledger will, and prices the payment. A filler only uses up a sequence. */
export async function bid(bidder: Bidder, outflow: Outflow): Promise<Outcome<FeeBid, DraftRejection>> {
  const { horizon, feeStroopsMax, reserveAccount } = bidder
  try {
    const fee = feeWithin(feeStroopsMax, await askedFee(horizon))
    if (!fee.ok) return fee
    const { closedAtS, baseReserve } = await head(horizon)
    const own = await reserveAccount()
    const reserve = await readAccount(horizon, own)
    if (reserve === null) return refuse({ code: 'funds', message: `the reserve ${own} has no account yet` })
    const payee =
      outflow.kind === 'filler' ? accept(false) : await lookAt(horizon, outflow, { own, baseReserve })
    if (!payee.ok) return payee
    return accept({
      family: 'stellar',
      feeStroops: fee.value,
      // By the ledger's clock, not ours: that is what decides.
      maxTimeS: closedAtS + LIFE_S,
      sequenceBase: reserve.sequence - BigInt(countOfSequence(reserve.sequence)),
      creates: payee.value,
    })
  } catch (error) {
    if (error instanceof NoAnswer) return refuse({ code: 'network', message: error.message })
    throw error
  }
}

/** Whether the account of who is paid has to be made first; refused when the ledger would not deliver there, or without its memo. */
async function lookAt(
  horizon: Horizon,
  { address, tag, asset, units }: Outflow,
  { own, baseReserve }: { readonly own: string; readonly baseReserve: bigint },
): Promise<Outcome<boolean, DraftRejection>> {
  const no = (message: string) => refuse({ code: 'destination' as const, message })
  const place = parsePlace(address)
  if (!place.ok) return no(place.rejection.message)
  const { account, id } = place.value
  if (account === own) return no('a payment of an account to itself moves nothing')
  const found = await readAccount(horizon, account)
  if (found !== null) {
    if (!found.needsMemo || tag !== null || id !== null) return accept(false)
    // SEP-29 binds wallets, and not the ledger: https://stellar.org/protocol/sep-29
    const message = `${account} takes no payment without a memo`
    return refuse({ code: 'destination', message, wouldArrive: true })
  }
  if (id !== null) return no(`${account} has no account yet, and one is not made by a muxed address`)
  const stroops = toChainUnits(amountOf(asset, units))
  const least = reserveOf(0, baseReserve)
  return stroops >= least
    ? accept(true)
    : no(`${account} has no account yet, and ${stroops} stroops do not make one: that takes ${least}`)
}
