import { isValidClassicAddress } from 'ripple-address-codec'
import type { View } from '../simulated/chain.ts'
import type { State } from '../simulated/state.ts'
import { type Answer, CommandError, type Params, type XrpNode } from './command.ts'
import type { LedgerEntry } from './entries.ts'
import type { Ledger, Xrp } from './rules.ts'

export function nameOf(ledger: Ledger) {
  return { ledger_hash: ledger.seal.hash, ledger_index: ledger.height, validated: true }
}

/** Nothing said means the open ledger, which holds what is submitted and not yet validated. */
export function ledgerOf(
  view: View<Xrp>,
  { ledger_hash, ledger_index = 'current' }: Params,
): Ledger | 'open' {
  const isNumber = /^\d+$/.test(String(ledger_index))
  if (ledger_hash === undefined && ledger_index === 'current') return 'open'
  if (!isNumber && !['current', 'validated', 'closed'].includes(String(ledger_index)))
    throw new CommandError('invalidParams', 31, 'ledgerIndexMalformed')
  const found =
    typeof ledger_hash === 'string'
      ? view.blockOf(ledger_hash.toUpperCase())
      : view.block(isNumber ? Number(ledger_index) : view.head.height)
  if (found === undefined) throw new CommandError('lgrNotFound', 21, 'ledgerNotFound')
  return found
}

type StateIn = { readonly state: State<LedgerEntry>; readonly named: Answer }

export function stateOf(node: XrpNode, params: Params): StateIn {
  const view = node.told()
  const ledger = ledgerOf(view, params)
  if (ledger !== 'open') return { state: node.chain.view(ledger.height).state, named: nameOf(ledger) }
  const isBehind = view.head.height < node.chain.head.height
  const named = { ledger_current_index: view.head.height + 1, validated: false }
  return { state: isBehind ? view.state : node.chain.open(), named }
}

export function accountOf({ account }: Params): string {
  if (typeof account !== 'string') throw new CommandError('invalidParams', 31, "Missing field 'account'.")
  if (!isValidClassicAddress(account)) throw new CommandError('actMalformed', 35, 'Account malformed.')
  return account
}

export function accountNotFound(account: string, named: Answer): CommandError {
  return new CommandError('actNotFound', 19, 'Account not found.', { account, ...named })
}
