import type { Fields } from '../replies.ts'
import { integerIn, listIn, numeralIn, objectIn, textIn } from './replies.ts'
import { NoAnswer, NodeRefusal, type Rpc } from './rpc.ts'

export type Account = {
  /** What is left for transactions at this moment; null is no limit. */
  readonly cpuUs: bigint | null
  readonly netBytes: bigint | null
  readonly ramBytes: bigint | null
  /** Each of these keys alone may do what `active` may. */
  readonly activeKeys: readonly string[]
}

/** Null when there is no such account. */
export async function readAccount(rpc: Rpc, name: string): Promise<Account | null> {
  let found: Fields
  try {
    found = objectIn(await rpc('chain/get_account', { account_name: name }), 'account')
  } catch (error) {
    if (isUnknownAccount(error)) return null
    throw error
  }
  if (found.account_name !== name) throw new NoAnswer('get_account', 'it is another one')
  return {
    cpuUs: availableIn(found.cpu_limit, 'cpu_limit'),
    netBytes: availableIn(found.net_limit, 'net_limit'),
    ramBytes: ramIn(found),
    activeKeys: activeKeysIn(found),
  }
}

/** In the words of newer nodes, and of older ones. */
function isUnknownAccount(error: unknown): boolean {
  if (!(error instanceof NodeRefusal)) return false
  return error.refusal === 'account_query_exception' || /unknown key/.test(error.message)
}

/**
 * Whoever has no limit has -1. `available` is what was left after the account's last transaction and stays so until its next one; of the
 * usage only `current_used` has decayed until now, as the next transaction finds it. Older nodes do not tell it.
 * https://github.com/AntelopeIO/spring/blob/main/libraries/chain/resource_limits.cpp (get_account_cpu_limit_ex, update_account_usage)
 */
function availableIn(limit: unknown, what: string): bigint | null {
  const { available, max, current_used: used } = objectIn(limit, `account ${what}`)
  if (available === -1 || available === '-1') return null
  const numberOf = (value: unknown, name: string) => BigInt(numeralIn(value, `account ${what} ${name}`))
  if (used === undefined || used === null) return numberOf(available, 'available')
  const left = numberOf(max, 'max') - numberOf(used, 'current_used')
  return left < 0n ? 0n : left
}

function ramIn({ ram_quota: quota, ram_usage: usage }: Fields): bigint | null {
  if (quota === -1 || quota === '-1') return null
  return BigInt(numeralIn(quota, 'account ram_quota')) - BigInt(numeralIn(usage, 'account ram_usage'))
}

function activeKeysIn({ permissions }: Fields): readonly string[] {
  const found = listIn(permissions, 'account permissions').map((each) => objectIn(each, 'permission'))
  const active = found.find(({ perm_name: name }) => name === 'active')
  if (active === undefined) return []
  const { threshold, keys } = objectIn(active.required_auth, 'permission required_auth')
  return listIn(keys, 'permission keys')
    .map((each) => objectIn(each, 'permission key'))
    .filter(({ weight }) => integerIn(weight, 'key weight') >= integerIn(threshold, 'permission threshold'))
    .map(({ key }) => textIn(key, 'permission key'))
}
