import { xdr } from '@stellar/stellar-sdk/base'
import { NoAnswer } from './horizon.ts'

/**
 * Whether a payment is in a ledger and failed for what is ours, whoever it was to pay. By the result in base64, in which
 * `xdr.TransactionResult` has only codes: https://developers.stellar.org/docs/data/apis/horizon/api-reference/errors/result-codes
 */
export function isOurFault(resultXdr: string): boolean {
  const result = resultIn(resultXdr)
  const own = result.type === 'txFeeBumpInnerFailed' ? result.value.result.result : result
  // No operation was begun: its sequence, its time or its signature did not do.
  if (own.type !== 'txFailed') return true
  return own.value.some(isOursIn)
}

function isOursIn(operation: xdr.OperationResult): boolean {
  // Its account did not do.
  if (operation.type !== 'opInner') return true
  const { type, value } = operation.value
  if (type === 'payment') return value.type === 'paymentUnderfunded'
  return type === 'createAccount' && value.type === 'createAccountUnderfunded'
}

function resultIn(resultXdr: string): xdr.TransactionResultResult {
  try {
    return xdr.TransactionResult.fromXdr(resultXdr, 'base64').result
  } catch {
    throw new NoAnswer('transaction', 'its result is none')
  }
}
