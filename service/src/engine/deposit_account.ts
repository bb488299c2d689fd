import type { Chain } from '../chains/chain.ts'
import { BoundedMap } from '../domain/bounded_map.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import type { Chains } from './world.ts'

/** Each is two short texts. */
const REMEMBERED_MAX = 5_000

/** Reading an address takes longer than all the rest of a view, and the same orders are shown again and again. */
const remembered = new WeakMap<Chain, BoundedMap<string, string | null>>()

/**
 * Where tags tell deposits apart: the account that a deposit address is on, for forms that ask for account and tag. Nothing where the
 * chain is configured no more, or as another network than the address is of: an order is shown all the same.
 */
export function depositAccount(
  chains: Chains,
  id: ChainId,
  address: string,
): { readonly deposit_account?: string } {
  const chain = chains.get(id)
  if (chain?.accountOf === undefined) return {}
  const known = remembered.get(chain) ?? new BoundedMap(REMEMBERED_MAX)
  remembered.set(chain, known)
  let account = known.get(address)
  if (account === undefined) {
    account = chain.parseAddress(address).ok ? chain.accountOf(address) : null
    known.set(address, account)
  }
  return account === null ? {} : { deposit_account: account }
}
