import { nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { TxStatus } from '../chain.ts'
import type { Fields } from '../replies.ts'
import { askAccount, sequenceIn } from './balance.ts'
import { readLedger } from './ledger.ts'
import { dropsIn, hashIn, integerIn, listIn, objectIn, textIn } from './replies.ts'
import { NoAnswer, NodeRefusal, type Rpc } from './rpc.ts'

/**
 * What the reserve has does not do. Whom it pays has no part in that: https://xrpl.org/docs/references/protocol/transactions/transaction-results/tec-codes
 */
const OUR_FAULTS: ReadonlySet<string> = new Set(['tecUNFUNDED_PAYMENT', 'tecINSUFF_FEE'])

/** Where a transaction is now; until its ledger is validated it waits, whatever the node has made of it, or is nowhere. */
export async function lookup(rpc: Rpc, txHash: string): Promise<TxStatus> {
  const tx = await readTx(rpc, txHash)
  if (tx === null) return { where: 'absent' }
  if (tx.validated === true) return readPlace(rpc, tx)
  if (await isWaiting(rpc, tx)) return { where: 'mempool' }
  // It may have got into its ledger since.
  const again = await readTx(rpc, txHash)
  return again?.validated === true ? readPlace(rpc, again) : { where: 'absent' }
}

async function readPlace(rpc: Rpc, tx: Fields): Promise<TxStatus> {
  const ledger = await readLedger(rpc, integerIn(tx.ledger_index, 'tx ledger_index'))
  if (ledger === null) throw new NoAnswer('tx', 'its ledger is not validated')
  const result = textIn(objectIn(tx.meta, 'tx meta').TransactionResult, 'tx TransactionResult')
  return {
    where: 'block',
    block: { height: ledger.height, hash: ledger.hash },
    succeeded: result === 'tesSUCCESS',
    ...(OUR_FAULTS.has(result) && { fault: 'ours' }),
    cost: fromChainUnits(nativeAsset('XRP').id, dropsIn(tx.Fee, 'tx Fee')),
  }
}

/**
 * Whether a transaction that is in no validated ledger may get into one. That a node knows it says nothing: it remembers what it
 * was handed for half an hour, and anew each time that it is asked, also what it refused and what came too late
 * (rippled, TransactionMaster). It is on its way in the open ledger or in the queue, where it has its sequence.
 */
async function isWaiting(rpc: Rpc, tx: Fields): Promise<boolean> {
  const account = textIn(tx.Account, 'tx Account')
  const sequence = integerIn(tx.Sequence, 'tx Sequence')
  const validated = await askAccount(rpc, account, { ledger_index: 'validated' })
  if (validated === null || sequenceIn(validated) > sequence) return false
  const last = tx.LastLedgerSequence
  const height = integerIn(validated.ledger_index, 'account_info ledger_index')
  if (last !== undefined && height >= integerIn(last, 'tx LastLedgerSequence')) return false
  const open = await askAccount(rpc, account, { ledger_index: 'current', queue: true })
  return open !== null && (sequenceIn(open) > sequence || queuedIn(open).includes(sequence))
}

function queuedIn({ queue_data: queue }: Fields): readonly unknown[] {
  // Without a list where nothing is queued.
  const { transactions = [] } = objectIn(queue ?? {}, 'account_info queue_data')
  return listIn(transactions, 'queue_data transactions').map((each) => objectIn(each, 'queue_data').seq)
}

async function readTx(rpc: Rpc, txHash: string): Promise<Fields | null> {
  try {
    const tx = await rpc.call('tx', { transaction: txHash.toUpperCase(), binary: false })
    if (hashIn(tx.hash, 'tx hash') !== txHash.toUpperCase()) throw new NoAnswer('tx', 'it is another one')
    return tx
  } catch (error) {
    if (error instanceof NodeRefusal && error.code === 'txnNotFound') return null
    throw error
  }
}
