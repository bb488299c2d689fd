import type { Draft, State } from '../simulated/state.ts'
import { paramsOf } from './abis.ts'
import { checkAuthorization } from './authority.ts'
import { contracts } from './contracts.ts'
import type { Action, EosTransaction } from './decode_transaction.ts'
import { type BlockReference, type EosEntry, keys, readAccount, type Sequence } from './entries.ts'
import { assertion, Refusal } from './refusal.ts'
import type { Scene } from './scene.ts'

/** One run of a contract: an action appears once for its account, and once for each account that is told of it. */
export type ActionTrace = Action & { readonly receiver: string; readonly globalSequence: number }

const LIFETIME_MS_MAX = 3_600_000
const DEPTH_MAX = 4

/** What the block in which it gets asks of a transaction before it runs. */
export function checkHeader(tx: EosTransaction, state: State<EosEntry>, timeMs: number): void {
  checkExpiration(tx, timeMs)
  if (tx.expirationMs > timeMs + LIFETIME_MS_MAX)
    throw new Refusal('tx_exp_too_far_exception', `Transaction expiration is too far in the future`)
  const block = state.get(keys.block(tx.refBlockNum)) as BlockReference | undefined
  if (block === undefined || referencePrefix(block.id) !== tx.refBlockPrefix)
    throw new Refusal(
      'invalid_ref_block_exception',
      "Transaction's reference block did not match. Is this transaction from a different fork?",
    )
}

export function checkExpiration({ id, expirationMs }: EosTransaction, timeMs: number): void {
  if (timeMs > expirationMs) throw new Refusal('expired_tx_exception', `expired transaction ${id}`)
}

export function referencePrefix(blockId: string): number {
  return Buffer.from(blockId, 'hex').readUInt32LE(8)
}

/** Throws a Refusal, after which the draft is worth nothing. */
export function runTransaction(tx: EosTransaction, draft: Draft<EosEntry>, timeMs: number): ActionTrace[] {
  if (tx.actions.length === 0)
    throw new Refusal('tx_no_action', 'Transaction should have at least one normal action')
  for (const action of tx.actions) checkAction(action, draft)
  if (tx.actions.every(({ authorization }) => authorization.length === 0))
    throw new Refusal('tx_no_auths', 'transaction must have at least one authorization')
  checkAuthorization(tx, draft)
  const traces: ActionTrace[] = []
  for (const action of tx.actions) runAction(action, draft, timeMs, traces, 0)
  return traces
}

function checkAction({ account }: Action, draft: Draft<EosEntry>): void {
  if (readAccount(draft, account) === undefined)
    throw new Refusal('action_validate_exception', `action's code account '${account}' does not exist`)
}

/** First its own contract, then everybody who is told of it, then what they all asked for inline. */
function runAction(
  action: Action,
  draft: Draft<EosEntry>,
  timeMs: number,
  traces: ActionTrace[],
  depth: number,
): void {
  if (depth > DEPTH_MAX) throw new Refusal('transaction_exception', 'max inline action depth reached')
  checkAction(action, draft)
  const receivers = [action.account]
  const inlines: Action[] = []
  for (const receiver of receivers) {
    const contract = readAccount(draft, receiver)?.contract
    traces.push({ ...action, receiver, globalSequence: countOne(draft) })
    const scene: Scene = {
      draft,
      receiver,
      action,
      timeMs,
      params: () => readParams(action, draft),
      requireAuth: (actor) => {
        if (!action.authorization.some((level) => level.actor === actor))
          throw new Refusal('missing_auth_exception', `missing authority of ${actor}`)
      },
      notify: (account) => {
        if (!receivers.includes(account) && readAccount(draft, account) !== undefined) receivers.push(account)
      },
      inline: (asked) => inlines.push(asked),
    }
    if (contract !== undefined) contracts[contract](scene)
  }
  for (const inline of inlines) runAction(inline, draft, timeMs, traces, depth + 1)
}

function readParams({ account, name, data }: Action, draft: Draft<EosEntry>) {
  const params = paramsOf(readAccount(draft, account)?.contract, name, data)
  if (params === undefined) throw assertion('datastream attempted to read past the end')
  return params
}

/** Every run of a contract on a chain has a number of its own. */
export function countOne(draft: Draft<EosEntry>): number {
  const last = ((draft.get(keys.sequence) as Sequence | undefined)?.last ?? 0) + 1
  draft.set(keys.sequence, { last })
  return last
}

/** What a transaction that failed was about to do, as far as its own actions say. */
export function attemptOf({ actions }: EosTransaction, state: State<EosEntry>): ActionTrace[] {
  return actions.flatMap((action) => {
    const params = paramsOf(readAccount(state, action.account)?.contract, action.name, action.data)
    const told = action.name === 'transfer' ? [params?.from, params?.to].map(String) : []
    return [action.account, ...told].map((receiver) => ({ ...action, receiver, globalSequence: 0 }))
  })
}
