import type { State } from '../simulated/state.ts'
import type { Action, EosTransaction, PermissionLevel } from './decode_transaction.ts'
import { type Authority, type EosEntry, readAccount } from './entries.ts'
import { Refusal } from './refusal.ts'

/** How far one account's permission may rest on another's. */
const DEPTH_MAX = 6

/** Every permission that the actions name must be satisfied by the signatures, and every signature must be needed. */
export function checkAuthorization(tx: EosTransaction, state: State<EosEntry>): void {
  const used = new Set<string>()
  for (const level of levelsOf(tx.actions)) {
    if (!isSatisfied(state, level, tx.signedBy, used))
      throw new Refusal(
        'unsatisfied_authorization',
        `transaction declares authority '${JSON.stringify(level)}', but does not have signatures for it.`,
      )
  }
  if (new Set(tx.signedBy).size !== tx.signedBy.length || tx.signedBy.some((key) => !used.has(key)))
    throw new Refusal('tx_irrelevant_sig', 'transaction bears irrelevant signatures')
}

/** The keys among `available` that are needed. */
export function requiredKeys(
  actions: readonly Action[],
  available: readonly string[],
  state: State<EosEntry>,
): string[] {
  const used = new Set<string>()
  for (const level of levelsOf(actions)) isSatisfied(state, level, available, used)
  return available.filter((key) => used.has(key))
}

function levelsOf(actions: readonly Action[]): readonly PermissionLevel[] {
  return actions.flatMap(({ authorization }) => authorization)
}

function isSatisfied(
  state: State<EosEntry>,
  level: PermissionLevel,
  signedBy: readonly string[],
  used: Set<string>,
  depth = 0,
): boolean {
  const account = readAccount(state, level.actor)
  if (account === undefined)
    throw new Refusal('transaction_exception', `action's authorizing actor '${level.actor}' does not exist`)
  const authority = { owner: account.owner, active: account.active }[level.permission]
  if (authority === undefined)
    throw new Refusal(
      'transaction_exception',
      `action's authorizations include a non-existent permission: ${JSON.stringify(level)}`,
    )
  if (weigh(state, authority, signedBy, used, depth)) return true
  // Who may do everything may do this.
  return level.permission === 'active' && weigh(state, account.owner, signedBy, used, depth)
}

function weigh(
  state: State<EosEntry>,
  { threshold, keys, accounts }: Authority,
  signedBy: readonly string[],
  used: Set<string>,
  depth: number,
): boolean {
  const byKeys = keys.filter(({ key }) => signedBy.includes(key))
  const byAccounts =
    depth >= DEPTH_MAX
      ? []
      : accounts.filter(({ permission }) => isSatisfied(state, permission, signedBy, used, depth + 1))
  const weight = [...byKeys, ...byAccounts].reduce((sum, part) => sum + part.weight, 0)
  if (weight < threshold) return false
  for (const { key } of byKeys) used.add(key)
  return true
}
