import type { Draft } from '../simulated/state.ts'
import { isAddress } from './addresses.ts'
import {
  type Account,
  keys,
  newAccount,
  readAccount,
  readAsset,
  readContract,
  type TronEntry,
  type TronState,
} from './entries.ts'
import { fees } from './fees.ts'
import type { Action, ActionOf } from './messages.ts'

/** https://developers.tron.network/docs/api-signature-and-broadcast-flow: why no block takes a transaction. */
export class Refused extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Moves what is no contract's; gives the fee beside the bandwidth, in sun. Throws Refused when it cannot be. */
export function transfer(
  action: Exclude<Action, { type: 'TriggerSmartContract' | 'CreateSmartContract' }>,
  draft: Draft<TronEntry>,
  nowMs: number,
): bigint {
  const fee = isCreating(action, draft) ? fees.getCreateNewAccountFeeInSystemContract : 0n
  const owner = readAccount(draft, action.owner_address ?? '')
  if (owner === undefined) throw invalid(`Validate ${action.type} error, no OwnerAccount.`)
  const target = targetOf(action)
  if (!isAddress(target)) throw invalid('Invalid toAddress!')
  if (action.type === 'AccountCreateContract') {
    if (readAccount(draft, target) !== undefined) throw invalid('Account has existed')
  } else checkTransfer(action, owner, target, draft)
  const amount = action.type === 'TransferContract' ? (action.amount ?? 0n) : 0n
  if (owner.balance < amount + fee) throw invalid(`Validate ${action.type} error, balance is not sufficient.`)
  draft.set(keys.account(owner.address), { ...owner, balance: owner.balance - amount - fee })
  const paid = readAccount(draft, target) ?? newAccount(target, 0n, nowMs)
  draft.set(keys.account(target), { ...paid, balance: paid.balance + amount })
  if (action.type === 'TransferAssetContract') moveAsset(action, owner.address, target, draft)
  return fee
}

function checkTransfer(
  action: ActionOf<'TransferContract'> | ActionOf<'TransferAssetContract'>,
  owner: Account,
  target: string,
  state: TronState,
): void {
  const what = action.type === 'TransferContract' ? 'TRX' : 'asset'
  if (target === owner.address) throw invalid(`Cannot transfer ${what} to yourself.`)
  if ((action.amount ?? 0n) <= 0n) throw invalid('Amount must be greater than 0.')
  if (readContract(state, target) !== undefined) throw invalid(`Cannot transfer ${what} to a smartContract.`)
}

function moveAsset(
  action: ActionOf<'TransferAssetContract'>,
  from: string,
  to: string,
  draft: Draft<TronEntry>,
): void {
  const { amount = 0n } = action
  const id = Buffer.from(action.asset_name ?? '', 'hex').toString()
  if (readAsset(draft, id) === undefined) throw invalid('No asset!')
  const add = (address: string, change: bigint) => {
    const account = readAccount(draft, address)
    const held = (account?.assets[id] ?? 0n) + change
    if (account === undefined || held < 0n) throw invalid('assetBalance is not sufficient.')
    draft.set(keys.account(address), { ...account, assets: { ...account.assets, [id]: held } })
  }
  add(from, -amount)
  add(to, amount)
}

function targetOf(action: Action): string | undefined {
  if (action.type === 'AccountCreateContract') return action.account_address
  if (action.type === 'TransferContract' || action.type === 'TransferAssetContract') return action.to_address
  return undefined
}

/** Whether it makes an account, which costs more. */
export function isCreating(action: Action, state: TronState): boolean {
  const target = targetOf(action)
  return target !== undefined && readAccount(state, target) === undefined
}

export function invalid(why: string): Refused {
  return new Refused('CONTRACT_VALIDATE_ERROR', `Contract validate error : ${why}`)
}
