import type { Draft, State } from '../simulated/state.ts'
import type { XrpTransaction } from './decode_transaction.ts'
import type { CurrencyAmount, LedgerEntry } from './entries.ts'

type Fields = Readonly<Record<string, unknown>>
type Node = { readonly LedgerEntryType: string; readonly LedgerIndex: string }
export type AffectedNode =
  | { readonly CreatedNode: Node & { readonly NewFields: Fields } }
  | { readonly ModifiedNode: Node & { readonly FinalFields: Fields; readonly PreviousFields?: Fields } }
  | { readonly DeletedNode: Node & { readonly FinalFields: Fields } }

/** https://xrpl.org/docs/references/protocol/transactions/metadata */
export type Metadata = {
  readonly AffectedNodes: readonly AffectedNode[]
  readonly TransactionIndex: number
  readonly TransactionResult: string
  /** Only where it is not what the transaction said; `delivered_amount` in answers is made of it. */
  readonly DeliveredAmount?: CurrencyAmount
}

/** Writes into each entry of `after` which transaction changed it, and says what changed. */
export function metadataOf(
  tx: XrpTransaction,
  after: Draft<LedgerEntry>,
  before: State<LedgerEntry>,
  place: { readonly height: number; readonly index: number },
  code: string,
  delivered: CurrencyAmount | undefined,
): Metadata {
  const nodes: AffectedNode[] = []
  for (const [key, entry] of after.changes()) {
    const old = before.get(key)
    const LedgerIndex = key.slice(key.indexOf(':') + 1)
    if (entry === null) {
      if (old === undefined) continue
      const node = { LedgerEntryType: old.LedgerEntryType, LedgerIndex }
      nodes.push({ DeletedNode: { ...node, FinalFields: fieldsOf(old) } })
      continue
    }
    after.set(key, { ...entry, PreviousTxnID: tx.id, PreviousTxnLgrSeq: place.height })
    const node = { LedgerEntryType: entry.LedgerEntryType, LedgerIndex }
    nodes.push(old === undefined ? created(node, entry) : modified(node, old, entry))
  }
  const isSaid = JSON.stringify(delivered) === JSON.stringify(tx.fields.Amount)
  return {
    AffectedNodes: nodes.sort((one, other) => (indexOf(one) < indexOf(other) ? -1 : 1)),
    TransactionIndex: place.index,
    TransactionResult: code,
    ...(code === 'tesSUCCESS' && delivered !== undefined && !isSaid && { DeliveredAmount: delivered }),
  }
}

function created(node: Node, entry: LedgerEntry): AffectedNode {
  const said = Object.entries(fieldsOf(entry)).filter(([, value]) => value !== 0)
  return { CreatedNode: { ...node, NewFields: Object.fromEntries(said) } }
}

function modified(node: Node, old: LedgerEntry, entry: LedgerEntry): AffectedNode {
  const [was, is] = [fieldsOf(old), fieldsOf(entry)]
  const changed = Object.entries(was).filter(([name, value]) => !isSame(value, is[name]))
  const { PreviousTxnID, PreviousTxnLgrSeq } = old
  return {
    ModifiedNode: {
      ...node,
      FinalFields: is,
      ...(changed.length > 0 && { PreviousFields: Object.fromEntries(changed) }),
      ...(PreviousTxnID !== undefined && { PreviousTxnID, PreviousTxnLgrSeq }),
    },
  }
}

function fieldsOf(entry: LedgerEntry): Fields {
  const { LedgerEntryType: _type, PreviousTxnID: _id, PreviousTxnLgrSeq: _seq, ...fields } = entry
  return fields
}

function indexOf(node: AffectedNode): string {
  return Object.values(node as Record<string, Node>)[0]?.LedgerIndex ?? ''
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
