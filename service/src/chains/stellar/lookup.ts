import { nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { TxStatus } from '../chain.ts'
import { findFault } from './find_fault.ts'
import { type Horizon, NoAnswer } from './horizon.ts'
import { readLedger } from './ledger.ts'
import { bigintIn, hashIn, integerIn, textIn } from './replies.ts'

/** Where a transaction is now. Horizon tells of ledgers alone: one that waits is absent. */
export async function lookup(
  horizon: Horizon,
  txHash: string,
  reserveAccount: () => Promise<string>,
): Promise<TxStatus> {
  const tx = await horizon.get(`/transactions/${txHash}`)
  if (tx === null) return { where: 'absent' }
  if (hashIn(tx.hash, 'transaction hash') !== txHash) throw new NoAnswer('transaction', 'it is another one')
  const ledger = await readLedger(horizon, integerIn(tx.ledger, 'transaction ledger'))
  if (ledger === null) throw new NoAnswer('transaction', 'its ledger is yet to come')
  if (typeof tx.successful !== 'boolean')
    throw new NoAnswer('transaction', 'it does not say whether it succeeded')
  // Whoever likes may pay the fee of a transaction of ours (CAP-15); then it cost us nothing.
  const isOurs = textIn(tx.fee_account, 'transaction fee_account') === (await reserveAccount())
  const charged = isOurs ? bigintIn(tx.fee_charged, 'transaction fee_charged') : 0n
  const fault = tx.successful ? null : findFault(textIn(tx.result_xdr, 'transaction result_xdr'))
  return {
    where: 'block',
    block: { height: ledger.height, hash: ledger.hash },
    succeeded: tx.successful,
    ...(fault !== null && { fault }),
    cost: fromChainUnits(nativeAsset('XLM').id, charged),
  }
}
