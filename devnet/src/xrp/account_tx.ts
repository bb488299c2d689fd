import type { Included, View } from '../simulated/chain.ts'
import { type ApiVersion, accountsIn, accountTransactionJson } from './answers.ts'
import { accountOf, ledgerOf } from './asked_ledger.ts'
import { type Answer, CommandError, type Params, type XrpNode } from './command.ts'
import type { Ledger, Xrp } from './rules.ts'

type Found = { readonly ledger: Ledger; readonly item: Included<Xrp>; readonly index: number }
const PAGE = { usual: 200, max: 400 }

/** https://xrpl.org/docs/references/http-websocket-apis/public-api-methods/account-methods/account_tx */
export function accountTransactions(node: XrpNode, params: Params, version: ApiVersion): Answer {
  const account = accountOf(params)
  const view = node.told()
  const { min, max } = rangeOf(view, params)
  const found = historyOf(view, account, min, max)
  if (params.forward !== true) found.reverse()
  const limit = Math.min(PAGE.max, numberOr(params.limit, PAGE.usual))
  const start = startOf(found, params)
  const next = found[start + limit]
  const page = found.slice(start, start + limit)
  return {
    account,
    ledger_index_min: min,
    ledger_index_max: max,
    limit,
    transactions: page.map(({ ledger, item }) => accountTransactionJson(item, ledger, version)),
    validated: true,
    ...(next && { marker: { ledger: next.ledger.height, seq: next.index } }),
  }
}

/** One ledger when one is named, otherwise from one to another; -1 means as far as there is. */
function rangeOf(view: View<Xrp>, params: Params): { min: number; max: number } {
  const named = params.ledger_index ?? params.ledger_hash
  const only = named === undefined || named === -1 ? undefined : ledgerOf(view, params)
  if (typeof only === 'object') return { min: only.height, max: only.height }
  const min = Math.max(1, numberOr(params.ledger_index_min, 1))
  const max = Math.min(view.head.height, numberOr(params.ledger_index_max, view.head.height))
  return { min, max }
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' && value >= 0 ? value : otherwise
}

/** Oldest first. */
function historyOf(view: View<Xrp>, account: string, min: number, max: number): Found[] {
  const found: Found[] = []
  for (let height = min; height <= max; height++) {
    const ledger = view.block(height)
    if (ledger === undefined) continue
    for (const [index, item] of ledger.included.entries())
      if (accountsIn(item.result).has(account)) found.push({ ledger, item, index })
  }
  return found
}

/** A marker names the first of the page that it asks for. */
function startOf(found: readonly Found[], { marker }: Params): number {
  if (marker === undefined) return 0
  const { ledger: height, seq } = marker as { ledger: number; seq: number }
  const start = found.findIndex(({ ledger, index }) => ledger.height === height && index === seq)
  if (start < 0) throw new CommandError('invalidParams', 31, 'Invalid field marker.')
  return start
}
