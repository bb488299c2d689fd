import { StrKey } from '@stellar/stellar-sdk/base'
import type { Chance } from '../../test/harness/chance.ts'
import { OWN_ACCOUNT, ownTag, paidIn } from './own_addresses.ts'

/** What Horizon tells of a ledger, as JSON text, and the records of its `payments`, oldest first. */
export type StellarLedger = {
  readonly hash: string
  readonly ledger: string
  readonly payments: readonly { readonly token: bigint; readonly record: string }[]
}

/**
 * Some five million operations a day, seven on the busiest
 * (https://www.thestandard.io/blog/stellar-lumens-xlm-from-remittances-to-defi----expanding-blockchain-utility-in-2025-part-2-7),
 * are 340 and 470 in a ledger of 5.8 s; offers among them are not read. A ledger takes 1,000 at most.
 */
const PAYMENTS = 300

const ACCOUNTS = 1_500
const HORIZON = 'https://horizon.stellar.org'

type Json = Record<string, unknown>
type Place = { readonly height: number; readonly hash: string; readonly parentHash: string }

/**
 * A ledger as mainnet has them: payments of lumens and of issued assets, to exchanges with a memo; paths that end where
 * they began, of those who trade; transfers by contracts; new accounts.
 */
export function makeStellarLedger(chance: Chance, parentHash: string, height: number): StellarLedger {
  const place = { height, parentHash, hash: hex(chance, 32) }
  const accounts = Array.from({ length: ACCOUNTS }, () => StrKey.encodeEd25519PublicKey(chance.bytes(32)))
  const ours = paidIn(height).map((index): Operation => {
    const units = lumens(chance)
    return { memo: String(ownTag(index)), ...payment(chance.pick(accounts), OWN_ACCOUNT.XLM, units) }
  })
  const others = Array.from({ length: PAYMENTS - ours.length }, () => someOperation(chance, accounts))
  const payments = chance.shuffled([...others, ...ours]).map((operation, index) => {
    const token = (BigInt(height) << 32n) | (BigInt(index + 1) << 12n) | 1n
    return { token, record: JSON.stringify(recordOf(chance, operation, token, place)) }
  })
  return { hash: place.hash, ledger: JSON.stringify(ledgerOf(chance, place)), payments }
}

/** What is said of the operation itself, and the memo of its transaction. */
type Operation = {
  readonly type: string
  readonly source: string
  readonly fields: Json
  readonly memo: string | null
}

function someOperation(chance: Chance, accounts: readonly string[]): Operation {
  const dice = chance.below(100)
  const [from, to, issuer] = [chance.pick(accounts), chance.pick(accounts), chance.pick(accounts)]
  if (dice < 35) {
    const memo = chance.below(100) < 60 ? String(chance.below(2 ** 31)) : null
    return { ...payment(from, to, lumens(chance)), memo }
  }
  if (dice < 50) {
    const memo = chance.below(2) === 0 ? hex(chance, 10) : null
    return { ...payment(from, to, lumens(chance), issued(issuer)), memo }
  }
  if (dice < 85) return path(chance, from, issuer)
  if (dice < 97) return contractTransfer(chance, from, issuer)
  const fields = { funder: from, account: to, starting_balance: '1.0000000' }
  return { type: 'create_account', source: from, fields, memo: null }
}

function issued(issuer: string): Json {
  return { asset_type: 'credit_alphanum4', asset_code: 'USDC', asset_issuer: issuer }
}

function payment(
  from: string,
  to: string,
  amount: string,
  asset: Json = { asset_type: 'native' },
): Omit<Operation, 'memo'> {
  return { type: 'payment', source: from, fields: { ...asset, from, to, amount } }
}

/** Mostly of somebody who trades with himself. */
function path(chance: Chance, trader: string, issuer: string): Operation {
  const amount = lumens(chance)
  return {
    type: 'path_payment_strict_send',
    source: trader,
    memo: null,
    fields: {
      asset_type: 'native',
      from: trader,
      to: trader,
      amount,
      source_amount: amount,
      destination_min: amount,
      source_asset_type: 'native',
      path: [issued(issuer), { ...issued(issuer), asset_code: 'AQUA' }],
    },
  }
}

function contractTransfer(chance: Chance, from: string, issuer: string): Operation {
  const contract = `C${hex(chance, 35).toUpperCase().slice(0, 55)}`
  const change = { ...issued(issuer), type: 'transfer', from, to: contract, amount: lumens(chance) }
  return {
    type: 'invoke_host_function',
    source: from,
    memo: null,
    fields: {
      function: 'HostFunctionTypeHostFunctionTypeInvokeContract',
      parameters: Array.from({ length: 4 }, () => ({ value: base64(chance, 40), type: 'Address' })),
      address: '',
      salt: '',
      asset_balance_changes: [change],
    },
  }
}

function recordOf(chance: Chance, operation: Operation, token: bigint, place: Place): Json {
  const { type, source, fields } = operation
  const hash = hex(chance, 32)
  const link = (path: string) => ({ href: `${HORIZON}${path}` })
  return {
    _links: {
      self: link(`/operations/${token}`),
      transaction: link(`/transactions/${hash}`),
      effects: link(`/operations/${token}/effects`),
      succeeds: link(`/effects?order=desc\u0026cursor=${token}`),
      precedes: link(`/effects?order=asc\u0026cursor=${token}`),
    },
    id: String(token),
    paging_token: String(token),
    transaction_successful: true,
    source_account: source,
    type,
    type_i: 1,
    created_at: closedAt(place),
    transaction_hash: hash,
    transaction: transactionOf(chance, operation, { token, hash }, place),
    ...fields,
  }
}

function transactionOf(
  chance: Chance,
  { source, memo, type }: Operation,
  { token, hash }: { readonly token: bigint; readonly hash: string },
  place: Place,
): Json {
  const isContract = type === 'invoke_host_function'
  const self = `${HORIZON}/transactions/${hash}`
  const collection = (name: string) => ({ href: `${self}/${name}{?cursor,limit,order}`, templated: true })
  return {
    ...(memo !== null && {
      memo,
      ...(!isNumber(memo) && { memo_bytes: Buffer.from(memo).toString('base64') }),
    }),
    _links: {
      self: { href: self },
      account: { href: `${HORIZON}/accounts/${source}` },
      ledger: { href: `${HORIZON}/ledgers/${place.height}` },
      operations: collection('operations'),
      effects: collection('effects'),
      precedes: { href: `${HORIZON}/transactions?order=asc\u0026cursor=${token}` },
      succeeds: { href: `${HORIZON}/transactions?order=desc\u0026cursor=${token}` },
      transaction: { href: self },
    },
    id: hash,
    paging_token: String(token - 1n),
    successful: true,
    hash,
    ledger: place.height,
    created_at: closedAt(place),
    source_account: source,
    source_account_sequence: String(chance.between(2 ** 40, 2 ** 50)),
    fee_account: source,
    fee_charged: '100',
    max_fee: '10000',
    operation_count: 1,
    envelope_xdr: base64(chance, isContract ? 900 : 200),
    result_xdr: base64(chance, 44),
    fee_meta_xdr: base64(chance, 160),
    memo_type: memo === null ? 'none' : isNumber(memo) ? 'id' : 'text',
    signatures: [base64(chance, 64)],
    preconditions: { timebounds: { min_time: '0', max_time: '1900000000' } },
  }
}

function isNumber(memo: string): boolean {
  return /^\d+$/.test(memo)
}

function ledgerOf(chance: Chance, place: Place): Json {
  return {
    id: place.hash,
    paging_token: String(BigInt(place.height) << 32n),
    hash: place.hash,
    prev_hash: place.parentHash,
    sequence: place.height,
    successful_transaction_count: 250,
    failed_transaction_count: 120,
    operation_count: 470,
    tx_set_operation_count: 700,
    closed_at: closedAt(place),
    total_coins: '50001806812.0000000',
    fee_pool: '4500000.0000000',
    base_fee_in_stroops: 100,
    base_reserve_in_stroops: 5_000_000,
    max_tx_set_size: 1_000,
    protocol_version: 23,
    header_xdr: base64(chance, 430),
  }
}

function closedAt({ height }: Place): string {
  return new Date(1_800_000_000_000 + height * 6_000).toISOString().replace('.000Z', 'Z')
}

function lumens(chance: Chance): string {
  return `${chance.below(100_000)}.${String(chance.between(1, 9_999_999)).padStart(7, '0')}`
}

function hex(chance: Chance, count: number): string {
  return chance.bytes(count).toString('hex')
}

function base64(chance: Chance, count: number): string {
  return chance.bytes(count).toString('base64')
}
