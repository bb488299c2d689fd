import type { BlockRef } from '../chain.ts'
import type { Fields } from '../replies.ts'
import { hashIn, integerIn, listIn, objectIn } from './replies.ts'
import { NoAnswer, NodeRefusal, type Rpc } from './rpc.ts'

/** Seconds between 1970 and 2000, from which the ledger counts. */
const RIPPLE_EPOCH_S = 946_684_800

export type Ledger = BlockRef & {
  readonly parentHash: string
  readonly timeMs: number
  readonly transactions: readonly unknown[]
}

export async function head(rpc: Rpc): Promise<BlockRef> {
  const { height, hash } = decode(await rpc.call('ledger', { ledger_index: 'validated' }))
  return { height, hash }
}

/**
 * A validated ledger, or null when it is yet to come. Ledgers are never replaced, so a node that lacks an old one does
 * not keep enough history and cannot tell: it rejects.
 */
export async function readLedger(rpc: Rpc, height: number, parameters: Fields = {}): Promise<Ledger | null> {
  try {
    const isWhole = parameters.transactions === true
    const ledger = decode(await rpc.call('ledger', { ledger_index: height, ...parameters }), isWhole)
    if (ledger.height !== height) throw new NoAnswer('ledger', `it is ledger ${ledger.height}, not ${height}`)
    return ledger
  } catch (error) {
    const isMissing = error instanceof NodeRefusal && error.code === 'lgrNotFound'
    if (!isMissing && !(error instanceof NotValidated)) throw error
    const newest = await head(rpc)
    if (height > newest.height) return null
    throw new NoAnswer(
      'ledger',
      `the node has ledger ${newest.height} and not ${height}: give it more history`,
    )
  }
}

class NotValidated extends NoAnswer {}

/** `isWhole`: its transactions were asked for, so that a reply without all of them is half of one. */
function decode(result: Fields, isWhole = false): Ledger {
  if (result.validated !== true) throw new NotValidated('ledger', 'it is not validated')
  const ledger = objectIn(result.ledger, 'ledger')
  return {
    height: integerIn(ledger.ledger_index, 'ledger ledger_index'),
    hash: hashIn(ledger.ledger_hash, 'ledger ledger_hash'),
    parentHash: hashIn(ledger.parent_hash, 'ledger parent_hash'),
    timeMs: (integerIn(ledger.close_time, 'ledger close_time') + RIPPLE_EPOCH_S) * 1_000,
    transactions: isWhole ? allOf(ledger) : [],
  }
}

/** The hash of no transactions. */
const NONE = '0'.repeat(64)

/**
 * A node that lacks a part of a ledger's tree, or cannot read one of its transactions, ends the list there and says nothing of it: the
 * ledger would be taken for read, and a deposit in it be missed for ever. rippled's fillJsonTx (LedgerToJson.cpp) walks the tree by hash,
 * so that any may be missing, catches what is thrown on the way, and answers what it has; Clio does where the rows of a ledger are missing.
 * Each transaction says how many were before it, and the header whether there were any. That the last ones are missing, neither
 * says: of the account that everything arrives at, `checkThread` does.
 */
function allOf(ledger: Fields): readonly unknown[] {
  const transactions = listIn(ledger.transactions, 'ledger transactions')
  const isNone = hashIn(ledger.transaction_hash, 'ledger transaction_hash') === NONE
  const places = transactions.map((tx) => placeOf(objectIn(tx, 'transaction'))).toSorted((a, b) => a - b)
  if (isNone !== (places.length === 0) || places.some((place, index) => place !== index))
    throw new NoAnswer('ledger transactions', 'some of them are missing')
  return transactions
}

function placeOf(tx: Fields): number {
  const meta = objectIn(tx.metaData ?? tx.meta, 'transaction metaData')
  return integerIn(meta.TransactionIndex, 'transaction TransactionIndex')
}
