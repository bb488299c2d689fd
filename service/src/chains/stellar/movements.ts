import { xdr } from '@stellar/stellar-sdk/base'
import { isStellarId } from '../../domain/payouts/stellar_memo.ts'
import type { Fields } from '../replies.ts'
import { readPlace, textOf } from './address.ts'
import { NoAnswer } from './horizon.ts'
import { bigintIn, hashIn, listIn, objectIn, optionalTextIn, stroopsIn, textIn } from './replies.ts'

/** What an operation took from one account and gave to another. */
export type Movement = {
  /** Unique for ever: the number of the operation (SEP-35). */
  readonly id: string
  readonly txHash: string
  readonly from: string
  readonly to: string
  /** The muxed address that was written in place of `to`. */
  readonly toMuxed: string | null
  /** Null where it says nothing about whom the money is for: contracts carry no memo of their caller. */
  readonly memo: { readonly type: string; readonly text: string | null } | null
  /** Read only where it matters: what strangers give each other may be of a kind that nobody here knows. */
  readonly moved: () => Moved
}

export type Moved = {
  /** Null: lumens. */
  readonly asset: string | null
  readonly stroops: bigint
  /** What left `from`, if that was lumens: on a path it is not what arrived. */
  readonly spentStroops: bigint
}

/**
 * What one record of `/payments`, with its transaction joined, moved.
 * https://developers.stellar.org/docs/data/apis/horizon/api-reference/resources/operations/object
 */
export function movementsIn(record: Fields): readonly Movement[] {
  if (record.transaction_successful !== true) return []
  const transaction = objectIn(record.transaction, 'payment transaction')
  if (transaction.successful !== true) throw new NoAnswer('payments', 'it succeeded and it did not')
  const of = {
    id: String(bigintIn(record.id, 'payment id')),
    txHash: hashIn(record.transaction_hash, 'payment transaction_hash'),
    memo: {
      type: textIn(transaction.memo_type, 'transaction memo_type'),
      text: optionalTextIn(transaction.memo, 'transaction memo'),
    },
  }
  const type = textIn(record.type, 'payment type')
  switch (type) {
    case 'create_account': {
      const [from, to] = [textIn(record.funder, 'funder'), textIn(record.account, 'account')]
      const moved = () => lumens(stroopsIn(record.starting_balance, 'starting_balance'))
      return [{ ...of, from, to, toMuxed: null, moved }]
    }
    case 'payment':
    case 'path_payment_strict_receive':
    case 'path_payment_strict_send': {
      const [from, to] = [textIn(record.from, 'payment from'), textIn(record.to, 'payment to')]
      const toMuxed = optionalTextIn(record.to_muxed, 'payment to_muxed')
      return [{ ...of, from, to, toMuxed, moved: () => paidIn(record, type) }]
    }
    case 'account_merge': {
      const [from, to] = [textIn(record.account, 'account'), textIn(record.into, 'into')]
      const toMuxed = optionalTextIn(record.into_muxed, 'into_muxed')
      const moved = () => lumens(mergedStroops(transaction, bigintIn(record.id, 'payment id')))
      return [{ ...of, from, to, toMuxed, moved }]
    }
    default:
      return changesIn(record).map((change, at) => ({ ...of, ...change, id: `${of.id}:${at}`, memo: null }))
  }
}

function lumens(stroops: bigint): Moved {
  return { asset: null, stroops, spentStroops: stroops }
}

function paidIn(record: Fields, type: string): Moved {
  const asset = assetIn(record)
  const stroops = stroopsIn(record.amount, 'payment amount')
  const isPath = type !== 'payment'
  const isSpentNative = isPath ? record.source_asset_type === 'native' : asset === null
  const spent = isPath ? stroopsIn(record.source_amount, 'payment source_amount') : stroops
  return { asset, stroops, spentStroops: isSpentNative ? spent : 0n }
}

/**
 * What a contract moved (SAC transfers): accounts, and beside one the id of the muxed address that was named (CAP-67, told by Horizon
 * from 23 on). https://github.com/stellar/stellar-protocol/blob/master/core/cap-0067.md
 */
function changesIn(record: Fields): Pick<Movement, 'from' | 'to' | 'toMuxed' | 'moved'>[] {
  return listIn(record.asset_balance_changes ?? [], 'asset_balance_changes').map((each) => {
    const change = objectIn(each, 'asset_balance_changes')
    const from = optionalTextIn(change.from, 'asset_balance_changes from') ?? ''
    const to = optionalTextIn(change.to, 'asset_balance_changes to') ?? ''
    const id = optionalTextIn(change.destination_muxed_id, 'asset_balance_changes destination_muxed_id')
    return { from, to, toMuxed: muxedIn(to, id), moved: () => changedIn(change) }
  })
}

/** A contract has no muxed addresses, and what is no number names nobody. */
function muxedIn(account: string, id: string | null): string | null {
  const isNamed = id !== null && isStellarId(id) && readPlace(account)?.id === null
  return isNamed ? textOf({ account, id }) : null
}

function changedIn(change: Fields): Moved {
  const asset = assetIn(change)
  const stroops = stroopsIn(change.amount, 'asset_balance_changes amount')
  return { asset, stroops, spentStroops: asset === null ? stroops : 0n }
}

function assetIn(record: Fields): string | null {
  if (textIn(record.asset_type, 'asset_type') === 'native') return null
  return `${textIn(record.asset_code, 'asset_code')}.${textIn(record.asset_issuer, 'asset_issuer')}`
}

/** Only the result of the operation says how much was left in the account that ended. */
function mergedStroops(transaction: Fields, operationId: bigint): bigint {
  const bytes = textIn(transaction.result_xdr, 'transaction result_xdr')
  const { result } = xdr.TransactionResult.fromXdr(bytes, 'base64')
  const operations = operationsIn(result)
  // SEP-35: the lowest 12 bits are the place in the transaction, counted from 1.
  const place = Number.parseInt(String(BigInt.asUintN(12, operationId)), 10)
  const operation = operations[place - 1]
  if (operation?.type === 'opInner' && operation.value.type === 'accountMerge') {
    const merge = operation.value.value
    if (merge.type === 'accountMergeSuccess') return BigInt(merge.value)
  }
  throw new NoAnswer('payments', `the result of operation ${operationId} is no merge`)
}

function operationsIn(result: xdr.TransactionResultResult): readonly xdr.OperationResult[] {
  if (result.type === 'txSuccess') return result.value
  if (result.type === 'txFeeBumpInnerSuccess') {
    const inner = result.value.result.result
    if (inner.type === 'txSuccess') return inner.value
  }
  throw new NoAnswer('payments', 'the result of a successful transaction is none')
}
