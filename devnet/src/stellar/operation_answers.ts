import { type Asset, extractBaseAddress, type OperationRecord } from '@stellar/stellar-sdk/base'
import {
  addressJson,
  creditType,
  type Found,
  type Json,
  links,
  orderOf,
  timeOf,
  transactionJson,
} from './answers.ts'
import { decode } from './decode_transaction.ts'
import { formatAmount } from './entries.ts'
import type { Done } from './results.ts'
import { sourceOf } from './run_transaction.ts'

/** Their names in Horizon, and their numbers in the protocol. */
const TYPES: Readonly<Record<string, readonly [name: string, number: number]>> = {
  createAccount: ['create_account', 0],
  payment: ['payment', 1],
  pathPaymentStrictReceive: ['path_payment_strict_receive', 2],
  manageSellOffer: ['manage_sell_offer', 3],
  changeTrust: ['change_trust', 6],
  accountMerge: ['account_merge', 8],
  manageData: ['manage_data', 10],
  bumpSequence: ['bump_sequence', 11],
  pathPaymentStrictSend: ['path_payment_strict_send', 13],
}

/** Everything that can move money into an account is a payment to Horizon. */
const PAYMENTS = [
  'createAccount',
  'payment',
  'pathPaymentStrictReceive',
  'pathPaymentStrictSend',
  'accountMerge',
]

export type FoundOperation = Found & { readonly operation: OperationRecord; readonly at: number }

export function operationsOf(found: Found): FoundOperation[] {
  const { operations } = decode(found.item.tx).transaction
  return operations.map((operation, at) => ({ ...found, operation, at }))
}

export function isPayment({ operation }: FoundOperation): boolean {
  return PAYMENTS.includes(operation.type)
}

/** The accounts that an operation is about; the history of an account is what names it here. */
export function accountsIn({ operation, item }: FoundOperation): string[] {
  const source = sourceOf(operation, decode(item.tx).transaction)
  return 'destination' in operation ? [source, extractBaseAddress(operation.destination)] : [source]
}

export function orderOfOperation({ ledger, index, at }: FoundOperation): bigint {
  return orderOf(ledger.height, index + 1, at + 1)
}

/** https://developers.stellar.org/docs/data/apis/horizon/api-reference/resources/operations/object */
export function operationJson(found: FoundOperation, base: string, isJoined: boolean): Json {
  const { ledger, item, operation, at } = found
  const id = String(orderOfOperation(found))
  const self = `/operations/${id}`
  const source = operation.source ?? decode(item.tx).transaction.source
  const [type, type_i] = TYPES[operation.type] ?? [operation.type, -1]
  return {
    _links: links(base, {
      self,
      transaction: `/transactions/${item.tx.id}`,
      succeeds: `/effects?order=desc&cursor=${id}`,
      precedes: `/effects?order=asc&cursor=${id}`,
    }),
    id,
    paging_token: id,
    transaction_successful: item.result.isSuccessful,
    ...addressJson('source_account', source),
    type,
    type_i,
    created_at: timeOf(ledger),
    transaction_hash: item.tx.id,
    ...(isJoined && { transaction: transactionJson(found, base) }),
    ...detailsJson(operation, source, item.result.operations[at]),
  }
}

function detailsJson(operation: OperationRecord, source: string, done: Done | undefined): Json {
  switch (operation.type) {
    case 'createAccount':
      return {
        starting_balance: operation.startingBalance,
        ...addressJson('funder', source),
        account: operation.destination,
      }
    case 'payment':
      return {
        ...assetJson(operation.asset),
        ...addressJson('from', source),
        ...addressJson('to', operation.destination),
        amount: operation.amount,
      }
    case 'pathPaymentStrictReceive':
    case 'pathPaymentStrictSend':
      return pathJson(operation, source, done)
    case 'accountMerge':
      return { ...addressJson('account', source), ...addressJson('into', operation.destination) }
    case 'changeTrust':
      return {
        ...('issuer' in operation.line && {
          ...assetJson(operation.line),
          trustee: operation.line.issuer,
        }),
        limit: operation.limit,
        ...addressJson('trustor', source),
      }
    case 'manageSellOffer':
      return {
        amount: operation.amount,
        price: operation.price,
        ...assetJson(operation.buying, 'buying_'),
        ...assetJson(operation.selling, 'selling_'),
        offer_id: operation.offerId,
      }
    case 'manageData':
      return {
        name: operation.name,
        value: operation.value === undefined ? '' : Buffer.from(operation.value).toString('base64'),
      }
    case 'bumpSequence':
      return { bump_to: operation.bumpTo }
    default:
      return {}
  }
}

type PathPayment = Extract<OperationRecord, { type: 'pathPaymentStrictReceive' | 'pathPaymentStrictSend' }>

/** What one side leaves open is known only when it succeeded: else it is told as nothing. */
function pathJson(operation: PathPayment, source: string, done: Done | undefined): Json {
  const { received = 0n, spent = 0n } = done?.code === 'op_success' ? done : {}
  const amounts =
    operation.type === 'pathPaymentStrictReceive'
      ? { amount: operation.destAmount, source_amount: formatAmount(spent), source_max: operation.sendMax }
      : {
          amount: formatAmount(received),
          source_amount: operation.sendAmount,
          destination_min: operation.destMin,
        }
  return {
    ...assetJson(operation.destAsset),
    ...addressJson('from', source),
    ...addressJson('to', operation.destination),
    ...amounts,
    ...assetJson(operation.sendAsset, 'source_'),
    path: operation.path.map((asset) => assetJson(asset)),
  }
}

function assetJson(asset: Asset, prefix = ''): Json {
  if (asset.isNative()) return { [`${prefix}asset_type`]: 'native' }
  return {
    [`${prefix}asset_type`]: creditType(asset.code),
    [`${prefix}asset_code`]: asset.code,
    [`${prefix}asset_issuer`]: asset.issuer,
  }
}
