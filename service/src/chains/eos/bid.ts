import { amountOf } from '../../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { Outflow } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid, PayoutEstimate } from '../chain.ts'
import { type Account, readAccount } from './account.ts'
import { parsePlace } from './address.ts'
import type { Blocks } from './blocks.ts'
import { isNodeTrouble, NoAnswer, type Rpc } from './rpc.ts'

/** A transfer that is to get into a block does in a second or two; one that is lost is signed again after this. */
const LIFE_MS = 60_000
const SECOND_MS = 1_000
/** An intent that lives for longer than an hour from the block that it refers to is signed by nobody, and never would be. */
const IRREVERSIBLE_WITHIN_MS = 3_000_000

/** A transfer takes some 150 µs and 130 bytes, and 240 bytes of memory when the payee never held EOS. */
const LEAST = { cpuUs: 500n, netBytes: 256n, ramBytes: 256n } as const

export type Bidder = { readonly rpc: Rpc; readonly blocks: Blocks; readonly account: string }

/** Looks at who is to be paid as the chain will, and whether our account has what a transfer takes: there is no fee. */
export async function bid(bidder: Bidder, outflow: Outflow): Promise<Outcome<FeeBid, DraftRejection>> {
  const { rpc, account } = bidder
  const no = (code: DraftRejection['code'], message: string) => refuse({ code, message })
  try {
    const place = parsePlace(outflow.address)
    if (!place.ok) return no('destination', place.rejection.message)
    const payee = place.value.account
    if (payee === account) return no('destination', 'EOS refuses a transfer to oneself')
    if ((await readAccount(rpc, payee)) === null)
      return no('destination', `there is no account ${payee} on EOS`)
    const own = await readAccount(rpc, account)
    if (own === null) return no('funds', `the reserve ${account} has no account yet`)
    const short = shortOf(own)
    if (short !== null) return no('network', `the account ${account} has too little ${short} left`)
    return accept(await lifetime(bidder.blocks))
  } catch (error) {
    if (isNodeTrouble(error)) return no('network', error.message)
    throw error
  }
}

/** Free, for whoever has what a transfer takes. */
export async function estimatePayout({ rpc, account }: Omit<Bidder, 'blocks'>): Promise<PayoutEstimate> {
  const own = await readAccount(rpc, account)
  const lacks = own === null ? 'an account' : shortOf(own)
  const free = { cost: amountOf('EOS:EOS', 0n), isAboveFeeCap: false }
  return lacks === null ? free : { ...free, lacks }
}

/** What of CPU, NET or RAM is not enough for a transfer, and how much is left; null when all of it is. */
function shortOf({ cpuUs, netBytes, ramBytes }: Account): string | null {
  if (cpuUs !== null && cpuUs < LEAST.cpuUs) return `CPU (${cpuUs} µs)`
  if (netBytes !== null && netBytes < LEAST.netBytes) return `NET (${netBytes} bytes)`
  if (ramBytes !== null && ramBytes < LEAST.ramBytes) return `RAM (${ramBytes} bytes)`
  return null
}

async function lifetime(blocks: Blocks): Promise<FeeBid> {
  const { irreversible, head } = await blocks.info()
  const block = await blocks.final(irreversible.height)
  if (block === null) throw new NoAnswer('get_info', 'the node went backwards')
  const bid = lifetimeFrom(block, head)
  if (bid === null) throw new NoAnswer('get_info', 'no block has become irreversible for long')
  return bid
}

type Moment = { readonly hash: string; readonly timeMs: number }

/**
 * Refers to an irreversible block, which every earlier attempt has to be older than. Times are the chain's, not ours. Null:
 * the producers do not agree at present.
 */
export function lifetimeFrom(irreversible: Moment, head: Pick<Moment, 'timeMs'>): FeeBid | null {
  if (head.timeMs - irreversible.timeMs > IRREVERSIBLE_WITHIN_MS) return null
  return {
    family: 'eos',
    reference: { id: irreversible.hash, timeMs: irreversible.timeMs },
    expirationMs: Math.ceil(head.timeMs / SECOND_MS) * SECOND_MS + LIFE_MS,
  }
}
