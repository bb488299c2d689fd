import { xdr } from '@stellar/stellar-sdk/base'
import type { Fault } from '../chain.ts'
import { NoAnswer } from './horizon.ts'

/**
 * Why a payment that is in a ledger failed, where that is not for its payee: for what is ours, or because somebody else has made the
 * account that it was to make. By the result in base64, in which `xdr.TransactionResult` has only codes:
 * https://developers.stellar.org/docs/data/apis/horizon/api-reference/errors/result-codes
 */
export function findFault(resultXdr: string): Fault | null {
  const result = resultIn(resultXdr)
  const own = result.type === 'txFeeBumpInnerFailed' ? result.value.result.result : result
  // No operation was begun: its sequence, its time or its signature did not do.
  if (own.type !== 'txFailed') return 'ours'
  // What we sign has one operation.
  return own.value.map(faultIn).find((fault) => fault !== null) ?? null
}

function faultIn(operation: xdr.OperationResult): Fault | null {
  // Its account did not do.
  if (operation.type !== 'opInner') return 'ours'
  const { type, value } = operation.value
  if (type === 'payment') return value.type === 'paymentUnderfunded' ? 'ours' : null
  if (type !== 'createAccount') return null
  if (value.type === 'createAccountAlreadyExist') return 'nobodys'
  return value.type === 'createAccountUnderfunded' ? 'ours' : null
}

function resultIn(resultXdr: string): xdr.TransactionResultResult {
  try {
    return xdr.TransactionResult.fromXdr(resultXdr, 'base64').result
  } catch {
    throw new NoAnswer('transaction', 'its result is none')
  }
}
