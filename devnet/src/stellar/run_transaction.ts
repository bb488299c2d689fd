import { extractBaseAddress, type OperationRecord, type Transaction } from '@stellar/stellar-sdk/base'
import { type Draft, draftOn, takeOver } from '../simulated/state.ts'
import { type Bump, decode, type StellarTransaction } from './decode_transaction.ts'
import { type AccountEntry, accountKey, bumpKey, type LedgerEntry, readAccount } from './entries.ts'
import { spendableOf } from './holdings.ts'
import { RULES } from './operations.ts'
import { BASE_FEE } from './reserves.ts'
import { bumpResult, type Done, isKnown, operationResult, transactionResult } from './results.ts'

export type StellarPlace = { readonly height: number; readonly timeMs: number }

type Verdict = {
  /** Of the transaction itself, also when it is wrapped up. */
  readonly code: string
  readonly operations: readonly Done[]
  readonly xdr: string
  /** It was wrapped up, and what was wrong is not the wrapping. */
  readonly isInner: boolean
}

/** It never gets into a ledger, and costs nothing. */
export type Refusal = Verdict

/** What a ledger says of a transaction that is in it. */
export type StellarResult = Verdict & { readonly isSuccessful: boolean; readonly feeCharged: bigint }

const SUCCESS: Done = { code: 'op_success' }

/** As stellar-core does it: what is found before is refused, what is found while it runs is in the ledger and charged. */
export function runTransaction(
  tx: StellarTransaction,
  draft: Draft<LedgerEntry>,
  place: StellarPlace,
): { refused: Refusal } | { included: StellarResult } {
  const refused = refusalOf(tx, draft, place)
  if (refused !== undefined) return { refused }
  const { transaction } = decode(tx)
  const entered = draftOn(draft)
  const feeCharged = enter(tx, entered, place.height)
  const acted = draftOn(entered)
  const operations = runOperations(tx, transaction, acted, place.height)
  const isSuccessful = operations.every(({ code }) => code === 'op_success')
  if (isSuccessful) takeOver(entered, acted.changes())
  takeOver(
    draft,
    entered.changes().map(([key, entry]) => [key, entry && { ...entry, ledger: place.height }]),
  )
  const code = isSuccessful ? 'tx_success' : 'tx_failed'
  return { included: { isSuccessful, feeCharged, ...verdict(tx, code, operations, feeCharged) } }
}

function refusalOf(
  tx: StellarTransaction,
  draft: Draft<LedgerEntry>,
  place: StellarPlace,
): Refusal | undefined {
  const { transaction, hasIdleSignature, bump } = decode(tx)
  const outerCode = bump && checkBump(transaction, bump, draft)
  if (outerCode !== undefined) return refuse(outerCode)
  const code = checkConditions(tx, place) ?? checkSource(tx, draft)
  if (code !== undefined) return verdict(tx, code, [])
  const operations = transaction.operations.map(
    (operation): Done => ({ code: checkOperation(tx, operation) }),
  )
  if (operations.some((done) => done.code !== 'op_success')) return verdict(tx, 'tx_failed', operations)
  return hasIdleSignature ? verdict(tx, 'tx_bad_auth_extra', []) : undefined
}

export function refuse(code: string): Refusal {
  return { code, operations: [], xdr: transactionResult(code, 0n, []), isInner: false }
}

function verdict(
  tx: StellarTransaction,
  code: string,
  operations: readonly Done[],
  feeCharged = 0n,
): Verdict {
  const { transaction, bump } = decode(tx)
  const results = operations.length === 0 ? [] : resultsOf(transaction, operations)
  const xdr = bump
    ? bumpResult(bump.innerId, code, feeCharged, results)
    : transactionResult(code, feeCharged, results)
  return { code, operations, xdr, isInner: bump !== undefined }
}

function resultsOf({ operations }: Transaction, done: readonly Done[]) {
  return operations.map((operation, index) => operationResult(operation, done[index] ?? SUCCESS))
}

/** What is wrong with the wrapping. It has to offer more for each operation than what is inside does. */
function checkBump(transaction: Transaction, bump: Bump, draft: Draft<LedgerEntry>): string | undefined {
  const { fee, feeSource } = bump.envelope
  const count = BigInt(transaction.operations.length)
  const least = BASE_FEE * (count + 1n)
  const isTooLittle = BigInt(fee) < least || BigInt(fee) * count < BigInt(transaction.fee) * (count + 1n)
  if (isTooLittle) return 'tx_insufficient_fee'
  const payer = readAccount(draft, extractBaseAddress(feeSource))
  if (payer === undefined) return 'tx_no_source_account'
  if (!bump.signers.has(payer.id)) return 'tx_bad_auth'
  if (spendableOf(payer) < least) return 'tx_insufficient_balance'
  return bump.hasIdleSignature ? 'tx_bad_auth_extra' : undefined
}

function checkConditions(tx: StellarTransaction, { timeMs }: StellarPlace): string | undefined {
  const { transaction, bump } = decode(tx)
  const { operations, timeBounds, fee } = transaction
  if (operations.length === 0) return 'tx_missing_operation'
  if (hasOtherConditions(transaction)) return 'tx_not_supported'
  const closeTime = BigInt(Math.floor(timeMs / 1000))
  if (closeTime < BigInt(timeBounds?.minTime ?? 0)) return 'tx_too_early'
  const maxTime = BigInt(timeBounds?.maxTime ?? 0)
  if (maxTime !== 0n && closeTime > maxTime) return 'tx_too_late'
  return bump === undefined && BigInt(fee) < leastFee(tx) ? 'tx_insufficient_fee' : undefined
}

function hasOtherConditions(transaction: Transaction): boolean {
  const {
    ledgerBounds,
    minAccountSequence,
    minAccountSequenceAge,
    minAccountSequenceLedgerGap,
    extraSigners,
  } = transaction
  const others = [ledgerBounds, minAccountSequence, minAccountSequenceAge, minAccountSequenceLedgerGap]
  return others.some(Boolean) || (extraSigners?.length ?? 0) > 0
}

function checkSource(tx: StellarTransaction, draft: Draft<LedgerEntry>): string | undefined {
  const { transaction, signers, bump } = decode(tx)
  const id = extractBaseAddress(transaction.source)
  const source = readAccount(draft, id)
  if (source === undefined) return 'tx_no_source_account'
  if (BigInt(transaction.sequence) !== source.sequence + 1n) return 'tx_bad_seq'
  if (!signers.has(id)) return 'tx_bad_auth'
  if (bump !== undefined) return undefined
  return spendableOf(source) < leastFee(tx) ? 'tx_insufficient_balance' : undefined
}

/** The wrapping counts as one operation more. */
function leastFee(tx: StellarTransaction): bigint {
  const { transaction, bump } = decode(tx)
  return BASE_FEE * BigInt(transaction.operations.length + (bump === undefined ? 0 : 1))
}

function checkOperation(tx: StellarTransaction, operation: OperationRecord): string {
  const { transaction, signers } = decode(tx)
  const source = sourceOf(operation, transaction)
  if (!signers.has(source)) return 'op_bad_auth'
  const { type } = operation
  if (!isKnown(type)) return 'op_not_supported'
  if (RULES[type].check(operation as never, source)) return 'op_success'
  return type === 'bumpSequence'
    ? 'op_bad_seq'
    : type === 'manageData'
      ? 'op_data_invalid_name'
      : 'op_malformed'
}

export function sourceOf({ source }: OperationRecord, transaction: Transaction): string {
  return extractBaseAddress(source ?? transaction.source)
}

/** Takes the fee and the sequence. Whoever offers more pays the least all the same, because ledgers here are never full. */
function enter(tx: StellarTransaction, draft: Draft<LedgerEntry>, height: number): bigint {
  const { transaction, bump } = decode(tx)
  const fee = leastFee(tx)
  const payer = accountIn(draft, bump?.envelope.feeSource ?? transaction.source)
  draft.set(accountKey(payer.id), { ...payer, balance: payer.balance - fee })
  const source = accountIn(draft, transaction.source)
  const sequence = BigInt(transaction.sequence)
  draft.set(accountKey(source.id), { ...source, sequence, sequenceLedger: height })
  if (bump !== undefined) draft.set(bumpKey(bump.innerId), { type: 'bump', id: tx.id, ledger: height })
  return fee
}

function accountIn(draft: Draft<LedgerEntry>, address: string): AccountEntry {
  const account = readAccount(draft, extractBaseAddress(address))
  if (account === undefined) throw new Error(`${address} is no account`)
  return account
}

/** All of them run, also after one that failed: what each of them says is in the result. */
function runOperations(
  { failWith }: StellarTransaction,
  transaction: Transaction,
  draft: Draft<LedgerEntry>,
  height: number,
): Done[] {
  return transaction.operations.map((operation, index) => {
    if (failWith !== undefined && index === 0) return { code: failWith }
    const source = sourceOf(operation, transaction)
    if (readAccount(draft, source) === undefined) return { code: 'op_no_source_account' }
    const { type } = operation
    if (!isKnown(type)) return { code: 'op_not_supported' }
    const own = draftOn(draft)
    const done = RULES[type].act(operation as never, { draft: own, source, height })
    if (done.code === 'op_success') takeOver(draft, own.changes())
    return done
  })
}
