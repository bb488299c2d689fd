import type { Asset } from '@stellar/stellar-sdk/base'
import type { Draft, State } from '../simulated/state.ts'
import {
  type AccountEntry,
  accountKey,
  type LedgerEntry,
  readAccount,
  readTrustLine,
  trustLineKey,
} from './entries.ts'
import { INT64_MAX, reserveOf } from './reserves.ts'

/** What is wrong with crediting it, or undefined: it is credited. */
export function give(draft: Draft<LedgerEntry>, to: string, asset: Asset, units: bigint): string | undefined {
  if (asset.isNative()) {
    const account = readAccount(draft, to)
    if (account === undefined) return 'op_no_destination'
    if (account.balance + units > INT64_MAX) return 'op_line_full'
    draft.set(accountKey(to), { ...account, balance: account.balance + units })
    return undefined
  }
  if (to === asset.issuer) return undefined
  const line = readTrustLine(draft, to, asset)
  if (line === undefined) return 'op_no_trust'
  if (line.balance + units > line.limit) return 'op_line_full'
  draft.set(trustLineKey(to, asset), { ...line, balance: line.balance + units })
  return undefined
}

/** What is wrong with taking it, or undefined: it is taken. */
export function take(
  draft: Draft<LedgerEntry>,
  from: string,
  asset: Asset,
  units: bigint,
): string | undefined {
  if (asset.isNative()) {
    const account = readAccount(draft, from)
    if (account === undefined || spendableOf(account) < units) return 'op_underfunded'
    draft.set(accountKey(from), { ...account, balance: account.balance - units })
    return undefined
  }
  if (from === asset.issuer) return undefined
  const line = readTrustLine(draft, from, asset)
  if (line === undefined) return 'op_src_no_trust'
  if (line.balance < units) return 'op_underfunded'
  draft.set(trustLineKey(from, asset), { ...line, balance: line.balance - units })
  return undefined
}

export function spendableOf({ balance, subentries }: AccountEntry): bigint {
  return balance - reserveOf(subentries)
}

/** How much of it somebody can give away; an issuer can without end. */
export function holdingOf(state: State<LedgerEntry>, id: string, asset: Asset): bigint {
  if (asset.isNative()) {
    const account = readAccount(state, id)
    return account === undefined ? 0n : spendableOf(account)
  }
  return id === asset.issuer ? INT64_MAX : (readTrustLine(state, id, asset)?.balance ?? 0n)
}

/** false: the account cannot keep the reserve for one entry more. */
export function own(draft: Draft<LedgerEntry>, id: string, entries: 1 | -1): boolean {
  const account = readAccount(draft, id)
  if (account === undefined) return false
  const subentries = account.subentries + entries
  if (entries > 0 && account.balance < reserveOf(subentries)) return false
  draft.set(accountKey(id), { ...account, subentries })
  return true
}
