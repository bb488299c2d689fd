import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { Outflow } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid } from '../chain.ts'
import { parsePlace, type Spelling } from './address.ts'
import { readAccount } from './balance.ts'
import { askedFee, feeWithin, readReserves } from './fees.ts'
import { integerIn } from './replies.ts'
import { isNodeTrouble, type Rpc } from './rpc.ts'

/** About a minute: by then a payout is in a ledger, or never will be. */
export const LEDGERS_TO_LIVE = 15

/** https://xrpl.org/docs/references/protocol/ledger-data/ledger-entry-types/accountroot#accountroot-flags */
const REQUIRE_TAG = 0x0002_0000
const DISALLOW_XRP = 0x0008_0000
const DEPOSIT_AUTH = 0x0100_0000

export type Bidder = {
  readonly rpc: Rpc
  readonly spelling: Spelling
  readonly feeDropsMax: bigint
  readonly reserveAccount: () => Promise<string>
}

/** Looks at who is to be paid as the ledger will, and prices the payment. A filler only uses up a sequence. */
export async function bid(bidder: Bidder, outflow: Outflow): Promise<Outcome<FeeBid, DraftRejection>> {
  try {
    const asked = await askedFee(bidder.rpc)
    const fee = feeWithin(bidder.feeDropsMax, asked)
    if (!fee.ok) return fee
    const problem = outflow.kind === 'filler' ? null : await findProblem(bidder, outflow)
    if (problem !== null) return refuse({ code: 'destination', message: problem })
    return accept({
      family: 'xrp',
      feeDrops: fee.value,
      lastLedgerSequence: asked.ledger + LEDGERS_TO_LIVE,
    })
  } catch (error) {
    if (isNodeTrouble(error)) return refuse({ code: 'network', message: error.message })
    throw error
  }
}

/** Why the ledger would not deliver there, or null. */
async function findProblem(
  { rpc, spelling, reserveAccount }: Bidder,
  { address, tag, asset, units }: Outflow,
): Promise<string | null> {
  const place = parsePlace(address, spelling)
  if (!place.ok) return place.rejection.message
  const { account } = place.value
  if (account === (await reserveAccount())) return 'the ledger refuses a payment of an account to itself'
  const data = await readAccount(rpc, account)
  const drops = toChainUnits(amountOf(asset, units))
  if (data === null) {
    const { base: least } = await readReserves(rpc)
    return drops >= least
      ? null
      : `${account} has no account yet, and ${drops} drops do not make one: that takes ${least}`
  }
  const flags = integerIn(data.Flags, 'account_info Flags')
  if ((flags & REQUIRE_TAG) !== 0 && tag === null && place.value.tag === null)
    return `${account} takes no payment without a tag`
  if ((flags & DEPOSIT_AUTH) !== 0) return `${account} takes payments only from those it has authorised`
  // Advisory: clients heed it, and the ledger does not enforce it.
  if ((flags & DISALLOW_XRP) !== 0) return `${account} does not want XRP`
  return null
}
