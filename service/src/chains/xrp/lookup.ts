import { nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { TxStatus } from '../chain.ts'
import { readLedger } from './ledger.ts'
import { dropsIn, hashIn, integerIn, objectIn, textIn } from './replies.ts'
import { type Fields, NoAnswer, NodeRefusal, type Rpc } from './rpc.ts'

/**
 * What the reserve has does not do. Whom it pays has no part in that: https://xrpl.org/docs/references/protocol/transactions/transaction-results/tec-codes
 */
const OUR_FAULTS: ReadonlySet<string> = new Set(['tecUNFUNDED_PAYMENT', 'tecINSUFF_FEE'])

/** Where a transaction is now; until its ledger is validated it waits, whatever the node has made of it. */
export async function lookup(rpc: Rpc, txHash: string): Promise<TxStatus> {
  const tx = await readTx(rpc, txHash)
  if (tx === null) return { where: 'absent' }
  if (hashIn(tx.hash, 'tx hash') !== txHash.toUpperCase()) throw new NoAnswer('tx', 'it is another one')
  if (tx.validated !== true) return { where: 'mempool' }
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

async function readTx(rpc: Rpc, txHash: string): Promise<Fields | null> {
  try {
    return await rpc.call('tx', { transaction: txHash.toUpperCase(), binary: false })
  } catch (error) {
    if (error instanceof NodeRefusal && error.code === 'txnNotFound') return null
    throw error
  }
}
