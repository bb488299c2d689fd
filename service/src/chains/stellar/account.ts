import type { Fields } from '../replies.ts'
import { type Horizon, NoAnswer } from './horizon.ts'
import { bigintIn, integerIn, listIn, objectIn, stroopsIn } from './replies.ts'

export type Account = {
  readonly stroops: bigint
  readonly sequence: bigint
  /** The ledger that changed it last. */
  readonly changedAt: number
  /** What the ledger counts a base reserve for, beside the two of the account itself. */
  readonly entries: number
  /** Offered for sale, and so not to be sent. */
  readonly offered: bigint
  /** SEP-29: it takes no payment without a memo. */
  readonly needsMemo: boolean
}

/** What the newest ledger has of an account, or null when there is none. */
export async function readAccount(horizon: Horizon, id: string): Promise<Account | null> {
  const found = await horizon.get(`/accounts/${id}`)
  if (found === null) return null
  if (found.account_id !== id) throw new NoAnswer('account', 'it is another one')
  const native = nativeIn(found)
  const counted = (name: string) => integerIn(found[name] ?? 0, `account ${name}`)
  return {
    stroops: stroopsIn(native.balance, 'account balance'),
    sequence: bigintIn(found.sequence, 'account sequence'),
    changedAt: integerIn(found.last_modified_ledger, 'account last_modified_ledger'),
    entries: counted('subentry_count') + counted('num_sponsoring') - counted('num_sponsored'),
    offered: stroopsIn(native.selling_liabilities ?? '0.0000000', 'account selling_liabilities'),
    needsMemo: Object.hasOwn(objectIn(found.data ?? {}, 'account data'), 'config.memo_required'),
  }
}

function nativeIn(account: Fields): Fields {
  const balances = listIn(account.balances, 'account balances').map((each) =>
    objectIn(each, 'account balance'),
  )
  const native = balances.find(({ asset_type: type }) => type === 'native')
  if (native === undefined) throw new NoAnswer('account', 'it has no balance of lumens')
  return native
}

/** What an account with so many entries must keep; an empty one makes an account. */
export function reserveOf(entries: number, baseReserve: bigint): bigint {
  return BigInt(2 + entries) * baseReserve
}
