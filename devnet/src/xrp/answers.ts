import type { Included } from '../simulated/chain.ts'
import type { XrpFields } from './decode_transaction.ts'
import type { CurrencyAmount } from './entries.ts'
import type { Metadata } from './metadata.ts'
import { CLOSE_TIME_RESOLUTION, type Ledger, type Xrp } from './rules.ts'

/** An answer may differ by the version of the API: https://xrpl.org/docs/references/http-websocket-apis */
export type ApiVersion = 1 | 2
type Json = Record<string, unknown>

export function ledgerJson(ledger: Ledger, version: ApiVersion): Json {
  const { seal, height, parentHash } = ledger
  const { hash, ...header } = seal
  return {
    ...header,
    ledger_hash: hash,
    ledger_index: version === 1 ? String(height) : height,
    parent_hash: parentHash,
    close_flags: 0,
    close_time_resolution: CLOSE_TIME_RESOLUTION,
    close_time_human: closeTimeIso(ledger),
    close_time_iso: closeTimeIso(ledger),
    closed: true,
  }
}

/** As it stands in an expanded ledger. */
export function inLedgerJson(found: Included<Xrp>, ledger: Ledger, version: ApiVersion): Json {
  const fields = fieldsJson(found.tx.fields, version)
  const meta = metaJson(found)
  if (version === 1) return { ...fields, hash: found.tx.id, metaData: meta }
  return { ...placeJson(ledger), hash: found.tx.id, tx_json: fields, meta }
}

/** As `tx` answers. */
export function transactionJson(found: Included<Xrp>, ledger: Ledger, version: ApiVersion): Json {
  const place = placeJson(ledger)
  const extra = { ledger_index: ledger.height, date: ledger.seal.close_time }
  const fields = fieldsJson(found.tx.fields, version)
  const meta = metaJson(found)
  const { id: hash } = found.tx
  if (version === 1) return { ...fields, hash, ...place, ...extra, inLedger: ledger.height, meta }
  return { ...place, hash, tx_json: { ...fields, ...extra }, meta }
}

/** As `account_tx` answers. */
export function accountTransactionJson(found: Included<Xrp>, ledger: Ledger, version: ApiVersion): Json {
  if (version === 2) return transactionJson(found, ledger, version)
  const { meta, ...tx } = transactionJson(found, ledger, version)
  return { tx, meta, validated: true }
}

function placeJson(ledger: Ledger): Json {
  return {
    ledger_hash: ledger.seal.hash,
    ledger_index: ledger.height,
    close_time_iso: closeTimeIso(ledger),
    validated: true,
  }
}

/** A payment may deliver less than it says: so newer answers call the amount what it is, the most it may deliver. */
export function fieldsJson(fields: XrpFields, version: ApiVersion): Json {
  if (fields.TransactionType !== 'Payment') return { ...fields }
  const { Amount, ...rest } = fields
  return version === 1 ? { ...fields, DeliverMax: Amount } : { ...rest, DeliverMax: Amount }
}

/** `delivered_amount` is in no ledger: a server adds it to what it answers about transactions that paid. */
function metaJson({ tx, result }: Included<Xrp>): Metadata & { delivered_amount?: CurrencyAmount } {
  const delivered = result.DeliveredAmount ?? tx.fields.Amount
  const pays = ['Payment', 'AccountDelete'].includes(tx.fields.TransactionType)
  const isPaid = pays && result.TransactionResult === 'tesSUCCESS'
  return isPaid && delivered !== undefined ? { ...result, delivered_amount: delivered } : result
}

export function closeTimeIso(ledger: Ledger): string {
  return new Date(ledger.timeMs).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** The accounts that a transaction changed; the history of an account is what names it here. */
export function accountsIn({ AffectedNodes }: Metadata): Set<string> {
  const accounts = new Set<string>()
  for (const node of AffectedNodes) {
    const [body] = Object.values(node) as Json[]
    const fields = (body?.NewFields ?? body?.FinalFields ?? {}) as Json
    if (typeof fields.Account === 'string') accounts.add(fields.Account)
    for (const limit of [fields.LowLimit, fields.HighLimit] as ({ issuer: string } | undefined)[])
      if (limit !== undefined) accounts.add(limit.issuer)
  }
  return accounts
}
