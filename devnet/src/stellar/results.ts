import { Asset, extractBaseAddress, Keypair, type OperationRecord, xdr } from '@stellar/stellar-sdk/base'
import type { OfferEntry } from './entries.ts'

/** What became of one operation, in Horizon's words: `op_success`, `op_no_destination`. */
export type Done = {
  readonly code: string
  /** In stroops, what the operation itself does not say. */
  readonly received?: bigint
  readonly spent?: bigint
  readonly merged?: bigint
  /** The offers that a path payment went through. */
  readonly claims?: readonly Claim[]
  /** The offer that was made. */
  readonly offer?: OfferEntry
}

/** What was bought of an offer, and what was paid for it. */
export type Claim = { readonly offer: OfferEntry; readonly sold: bigint; readonly paid: bigint }

/** Results of operations that this simulator knows, by their type in the client library. */
const RESULTS = {
  createAccount: xdr.CreateAccountResult,
  payment: xdr.PaymentResult,
  pathPaymentStrictReceive: xdr.PathPaymentStrictReceiveResult,
  pathPaymentStrictSend: xdr.PathPaymentStrictSendResult,
  manageSellOffer: xdr.ManageSellOfferResult,
  changeTrust: xdr.ChangeTrustResult,
  accountMerge: xdr.AccountMergeResult,
  manageData: xdr.ManageDataResult,
  bumpSequence: xdr.BumpSequenceResult,
} as const
export type KnownType = keyof typeof RESULTS

export function isKnown(type: string): type is KnownType {
  return Object.hasOwn(RESULTS, type)
}

/** Where Horizon's word is not the protocol's: stellar/go, services/horizon/internal/codes. */
const PROTOCOL_WORDS: Readonly<Record<string, string>> = {
  op_already_exists: 'AlreadyExist',
  op_cross_self: 'OfferCrossSelf',
  op_over_source_max: 'OverSendmax',
  op_under_dest_min: 'UnderDestmin',
  op_seq_num_too_far: 'SeqnumTooFar',
  op_data_name_not_found: 'NameNotFound',
  op_data_invalid_name: 'InvalidName',
  op_no_source_account: 'NoAccount',
  tx_no_source_account: 'NoAccount',
}
/** Of any operation, before it is looked at as what it is. */
const OUTER_CODES = ['op_bad_auth', 'op_no_source_account', 'op_not_supported']

type Make = (...given: unknown[]) => never

function make(union: object, name: string, ...given: unknown[]): never {
  const variant = (union as Record<string, Make>)[name]
  if (variant === undefined) throw new Error(`there is no result ${name}`)
  return variant.call(union, ...given)
}

function protocolWord(code: string): string {
  return (
    PROTOCOL_WORDS[code] ??
    code.replace(/^(op|tx)/, '').replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  )
}

/** https://developers.stellar.org/docs/data/apis/horizon/api-reference/errors/result-codes */
export function transactionResult(
  code: string,
  feeCharged: bigint,
  operations: readonly xdr.OperationResult[],
): string {
  return spell(feeCharged, resultIn(xdr.TransactionResultResult, code, operations))
}

/** Of one that was wrapped up, with what became of what is inside. */
export function bumpResult(
  innerId: string,
  innerCode: string,
  feeCharged: bigint,
  operations: readonly xdr.OperationResult[],
): string {
  const inner = new xdr.InnerTransactionResultPair({
    transactionHash: Buffer.from(innerId, 'hex'),
    result: new xdr.InnerTransactionResult({
      feeCharged: 0n,
      result: resultIn(xdr.InnerTransactionResultResult, innerCode, operations),
      ext: xdr.InnerTransactionResultExt.v0(),
    }),
  })
  return spell(feeCharged, make(xdr.TransactionResultResult, `tx${protocolWord(bumpCode(innerCode))}`, inner))
}

export function bumpCode(innerCode: string): string {
  return innerCode === 'tx_success' ? 'tx_fee_bump_inner_success' : 'tx_fee_bump_inner_failed'
}

function resultIn(union: object, code: string, operations: readonly xdr.OperationResult[]): never {
  const isRun = code === 'tx_success' || code === 'tx_failed'
  return make(union, `tx${protocolWord(code)}`, ...(isRun ? [operations] : []))
}

function spell(feeCharged: bigint, result: never): string {
  return new xdr.TransactionResult({ feeCharged, result, ext: xdr.TransactionResultExt.v0() }).toXdr('base64')
}

export function operationResult(operation: OperationRecord, done: Done): xdr.OperationResult {
  const { type } = operation
  const { code } = done
  if (OUTER_CODES.includes(code)) return make(xdr.OperationResult, `op${protocolWord(code)}`)
  if (!isKnown(type)) return xdr.OperationResult.opNotSupported()
  const given = code === 'op_success' ? successOf(operation, done) : []
  const result = make(RESULTS[type], `${type}${protocolWord(code)}`, ...given)
  return xdr.OperationResult.opInner(make(xdr.OperationResultTr, type, result))
}

function successOf(operation: OperationRecord, done: Done): unknown[] {
  const { received = 0n, claims = [], merged, offer } = done
  if (operation.type === 'accountMerge') return [merged]
  if (operation.type === 'manageSellOffer' && offer !== undefined) return [offerMade(offer)]
  if (operation.type !== 'pathPaymentStrictSend' && operation.type !== 'pathPaymentStrictReceive') return []
  const last = new xdr.SimplePaymentResult({
    destination: accountId(extractBaseAddress(operation.destination)),
    asset: operation.destAsset.toXdrObject(),
    amount: received,
  })
  const success = { offers: claims.map(claimAtom), last }
  return operation.type === 'pathPaymentStrictSend'
    ? [new xdr.PathPaymentStrictSendResultSuccess(success)]
    : [new xdr.PathPaymentStrictReceiveResultSuccess(success)]
}

function claimAtom({ offer, sold, paid }: Claim): xdr.ClaimAtom {
  const atom = new xdr.ClaimOfferAtom({
    sellerId: accountId(offer.seller),
    offerId: offer.id,
    assetSold: assetOf(offer.selling),
    amountSold: sold,
    assetBought: assetOf(offer.buying),
    amountBought: paid,
  })
  return xdr.ClaimAtom.claimAtomTypeOrderBook(atom)
}

function offerMade({ seller, id, selling, buying, amount, priceN, priceD }: OfferEntry) {
  const entry = new xdr.OfferEntry({
    sellerId: accountId(seller),
    offerId: id,
    selling: assetOf(selling),
    buying: assetOf(buying),
    amount,
    price: new xdr.Price({ n: priceN, d: priceD }),
    flags: 0,
    ext: xdr.OfferEntryExt.v0(),
  })
  const offer = xdr.ManageOfferSuccessResultOffer.manageOfferCreated(entry)
  return new xdr.ManageOfferSuccessResult({ offersClaimed: [], offer })
}

function accountId(id: string) {
  return Keypair.fromPublicKey(id).xdrAccountId()
}

function assetOf(name: string) {
  const [code = '', issuer] = name.split(':')
  return (issuer === undefined ? Asset.native() : new Asset(code, issuer)).toXdrObject()
}
