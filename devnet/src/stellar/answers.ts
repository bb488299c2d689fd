import {
  extractBaseAddress,
  type FeeBumpTransaction,
  MuxedAccount,
  type Transaction,
} from '@stellar/stellar-sdk/base'
import type { Included, View } from '../simulated/chain.ts'
import { decode } from './decode_transaction.ts'
import { type AccountEntry, bumpKey, formatAmount, readOwned, type TrustLineEntry } from './entries.ts'
import { BASE_FEE, BASE_RESERVE } from './reserves.ts'
import { ALL_STROOPS, type Ledger, MAX_TX_SET_SIZE, PROTOCOL_VERSION, type Stellar } from './rules.ts'

export type Json = Record<string, unknown>
/** One item of a ledger, and where it stands in it. */
export type Found = { readonly ledger: Ledger; readonly index: number; readonly item: Included<Stellar> }

/** By its hash, or by that of what is wrapped up in it. */
export function findTransaction(view: View<Stellar>, hash: string): Found | undefined {
  const bump = view.state.get(bumpKey(hash))
  const found = view.find(bump?.type === 'bump' ? bump.id : hash)
  return found && { ledger: found.block, index: found.index, item: found }
}

/** Orders everything that ever happened: https://stellar.org/protocol/sep-35 */
export function orderOf(height: number, transaction = 0, operation = 0): bigint {
  return (BigInt(height) << 32n) | (BigInt(transaction) << 12n) | BigInt(operation)
}

export function timeOf({ timeMs }: Ledger): string {
  return new Date(timeMs).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** A path that ends in `?` is that of a collection. */
export function links(base: string, paths: Readonly<Record<string, string>>): Json {
  const written = Object.entries(paths).map(([name, path]) => {
    const href = base + path.replace(/\?$/, '{?cursor,limit,order}')
    return [name, href.includes('{') ? { href, templated: true } : { href }]
  })
  return Object.fromEntries(written)
}

/** https://developers.stellar.org/docs/data/apis/horizon/api-reference/resources/ledgers/object */
export function ledgerJson(ledger: Ledger, base: string): Json {
  const { height, seal, included } = ledger
  const self = `/ledgers/${height}`
  const successful = included.filter(({ result }) => result.isSuccessful)
  const countOf = (items: typeof included) =>
    items.reduce((sum, { result }) => sum + result.operations.length, 0)
  return {
    _links: links(base, {
      self,
      transactions: `${self}/transactions?`,
      operations: `${self}/operations?`,
      payments: `${self}/payments?`,
    }),
    id: seal.hash,
    paging_token: String(orderOf(height)),
    hash: seal.hash,
    prev_hash: ledger.parentHash,
    sequence: height,
    successful_transaction_count: successful.length,
    failed_transaction_count: included.length - successful.length,
    operation_count: countOf(successful),
    tx_set_operation_count: countOf(included),
    closed_at: timeOf(ledger),
    total_coins: formatAmount(ALL_STROOPS),
    fee_pool: formatAmount(seal.feePool),
    base_fee_in_stroops: Number(BASE_FEE),
    base_reserve_in_stroops: Number(BASE_RESERVE),
    max_tx_set_size: MAX_TX_SET_SIZE,
    protocol_version: PROTOCOL_VERSION,
    header_xdr: seal.headerXdr,
  }
}

/** https://developers.stellar.org/docs/data/apis/horizon/api-reference/resources/transactions/object */
export function transactionJson({ ledger, index, item }: Found, base: string, hash = item.tx.id): Json {
  const { tx, result } = item
  const { transaction } = decode(tx)
  const token = String(orderOf(ledger.height, index + 1))
  const self = `/transactions/${hash}`
  return {
    memo: memoText(transaction),
    ...(transaction.memo.type === 'text' && { memo_bytes: memoBytes(transaction).toString('base64') }),
    _links: links(base, {
      self,
      account: `/accounts/${extractBaseAddress(transaction.source)}`,
      ledger: `/ledgers/${ledger.height}`,
      operations: `${self}/operations?`,
      payments: `${self}/payments?`,
      precedes: `/transactions?order=asc&cursor=${token}`,
      succeeds: `/transactions?order=desc&cursor=${token}`,
      transaction: self,
    }),
    id: hash,
    paging_token: token,
    successful: result.isSuccessful,
    hash,
    ledger: ledger.height,
    created_at: timeOf(ledger),
    ...addressJson('source_account', transaction.source, 'account'),
    source_account_sequence: transaction.sequence,
    fee_charged: String(result.feeCharged),
    operation_count: transaction.operations.length,
    envelope_xdr: tx.envelope,
    result_xdr: result.xdr,
    memo_type: transaction.memo.type,
    ...feeJson(item, hash),
    ...preconditionsJson(transaction),
  }
}

/** Who pays, and what at most; told of both when somebody else pays. */
function feeJson({ tx }: Included<Stellar>, hash: string): Json {
  const { transaction, bump } = decode(tx)
  const inner = { signatures: signaturesOf(transaction), max_fee: transaction.fee }
  if (bump === undefined) return { ...addressJson('fee_account', transaction.source), ...inner }
  const { envelope, innerId } = bump
  const signatures = signaturesOf(envelope)
  return {
    ...addressJson('fee_account', envelope.feeSource),
    max_fee: envelope.fee,
    signatures: hash === innerId ? inner.signatures : signatures,
    fee_bump_transaction: { hash: tx.id, signatures },
    inner_transaction: { hash: innerId, ...inner },
  }
}

function signaturesOf({ signatures }: Transaction | FeeBumpTransaction): string[] {
  return signatures.map(({ signature }) => Buffer.from(signature.toBytes()).toString('base64'))
}

function memoBytes({ memo }: Transaction): Buffer {
  return Buffer.from(memo.value as Uint8Array | string)
}

/** undefined where there is none. Text need not be UTF-8, and is shown as well as it can be. */
function memoText(transaction: Transaction): string | undefined {
  const { type, value } = transaction.memo
  if (type === 'none') return undefined
  if (type === 'id') return String(value)
  return memoBytes(transaction).toString(type === 'text' ? 'utf8' : 'base64')
}

/** Who pays through one account for many is told twice: the account, and the address with the number in it. */
export function addressJson(name: string, address: string, muxedName = name): Json {
  if (!address.startsWith('M')) return { [name]: address }
  return {
    [name]: extractBaseAddress(address),
    [`${muxedName}_muxed`]: address,
    [`${muxedName}_muxed_id`]: MuxedAccount.fromAddress(address, '0').id(),
  }
}

function preconditionsJson({ timeBounds }: Transaction): Json {
  if (timeBounds === undefined) return {}
  const { minTime, maxTime } = timeBounds
  const timebounds = { min_time: minTime, ...(maxTime !== '0' && { max_time: maxTime }) }
  return { preconditions: { timebounds } }
}

/** https://developers.stellar.org/docs/data/apis/horizon/api-reference/resources/accounts/object */
export function accountJson(account: AccountEntry, view: View<Stellar>, base: string): Json {
  const { id, subentries, sequence, sequenceLedger, ledger } = account
  const self = `/accounts/${id}`
  const lines = readOwned(view.state, 'trustline', id).map(lineJson)
  const data = readOwned(view.state, 'data', id).map(({ name, value }) => [name, value])
  return {
    _links: links(base, {
      self,
      transactions: `${self}/transactions?`,
      operations: `${self}/operations?`,
      payments: `${self}/payments?`,
      data: `${self}/data/{key}`,
    }),
    id,
    account_id: id,
    sequence: String(sequence),
    sequence_ledger: sequenceLedger,
    sequence_time: String(Math.floor((view.block(sequenceLedger)?.timeMs ?? 0) / 1000)),
    subentry_count: subentries,
    last_modified_ledger: ledger,
    last_modified_time: timeOf(view.block(ledger) ?? view.head),
    thresholds: { low_threshold: 0, med_threshold: 0, high_threshold: 0 },
    flags: {
      auth_required: false,
      auth_revocable: false,
      auth_immutable: false,
      auth_clawback_enabled: false,
    },
    balances: [...lines, { balance: formatAmount(account.balance), ...NO_LIABILITIES, asset_type: 'native' }],
    signers: [{ weight: 1, key: id, type: 'ed25519_public_key' }],
    data: Object.fromEntries(data),
    num_sponsoring: 0,
    num_sponsored: 0,
    paging_token: id,
  }
}

const NO_LIABILITIES = { buying_liabilities: '0.0000000', selling_liabilities: '0.0000000' }

function lineJson({ balance, limit, ledger, code, issuer }: TrustLineEntry): Json {
  return {
    balance: formatAmount(balance),
    limit: formatAmount(limit),
    ...NO_LIABILITIES,
    last_modified_ledger: ledger,
    is_authorized: true,
    is_authorized_to_maintain_liabilities: true,
    is_clawback_enabled: false,
    asset_type: creditType(code),
    asset_code: code,
    asset_issuer: issuer,
  }
}

export function creditType(code: string): string {
  return code.length > 4 ? 'credit_alphanum12' : 'credit_alphanum4'
}

export function rootJson({ head }: View<Stellar>, passphrase: string, base: string): Json {
  return {
    _links: links(base, {
      self: '/',
      transactions: '/transactions?',
      ledger: '/ledgers?',
      fee_stats: '/fee_stats',
    }),
    horizon_version: '23.0.0',
    core_version: 'stellar-core 23.0.0',
    ingest_latest_ledger: head.height,
    history_latest_ledger: head.height,
    history_latest_ledger_closed_at: timeOf(head),
    history_elder_ledger: 1,
    core_latest_ledger: head.height,
    network_passphrase: passphrase,
    current_protocol_version: PROTOCOL_VERSION,
    supported_protocol_version: PROTOCOL_VERSION,
    core_supported_protocol_version: PROTOCOL_VERSION,
  }
}

/** Ledgers are never full here, so nobody pays more than the least. */
export function feeStatsJson({ head }: View<Stellar>): Json {
  const fee = String(BASE_FEE)
  const steps = ['p10', 'p20', 'p30', 'p40', 'p50', 'p60', 'p70', 'p80', 'p90', 'p95', 'p99']
  const distribution = Object.fromEntries(['max', 'min', 'mode', ...steps].map((name) => [name, fee]))
  const used = head.included.length / MAX_TX_SET_SIZE
  return {
    last_ledger: String(head.height),
    last_ledger_base_fee: fee,
    ledger_capacity_usage: String(Math.min(1, used)),
    fee_charged: distribution,
    max_fee: distribution,
  }
}
