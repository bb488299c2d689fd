import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { EvmIntent, Intent } from '../../domain/payouts/intent.ts'
import type { TxStatus } from '../chain.ts'
import { verdictOn } from '../token_payment.ts'
import { decodeReceipt, decodeTx, fields, hash, lowerAddress } from './decode.ts'
import { type JsonRpc, NodeNonsense } from './json_rpc.ts'
import { tokenMoves } from './token_moves.ts'

/** Rejects when the node cannot tell, also when the transaction moves between pool and block just now. */
export async function lookup(
  rpc: JsonRpc,
  native: AssetId,
  txHash: string,
  attempt?: Intent,
): Promise<TxStatus> {
  const wanted = hash(txHash, 'transaction hash to look up')
  // Asked before the receipt: what is mined in between is then found by its receipt, not missed by both.
  const txAnswer = await rpc.call('eth_getTransactionByHash', [wanted])
  const receiptAnswer = await rpc.call('eth_getTransactionReceipt', [wanted])
  if (receiptAnswer !== null) {
    const receipt = decodeReceipt(receiptAnswer)
    if (receipt.txHash !== wanted) throw new NodeNonsense(`asked for the receipt of ${wanted}, got another`)
    return {
      where: 'block',
      block: { height: receipt.height, hash: receipt.blockHash },
      ...(receipt.isSuccess && attempt?.family === 'evm' && attempt.token !== null
        ? verdictOn(paymentOf(attempt, attempt.token, receiptAnswer), tokenMoves(receipt))
        : { succeeded: receipt.isSuccess }),
      cost: fromChainUnits(native, receipt.gasUsed * receipt.effectiveGasPriceWei),
    }
  }
  if (txAnswer === null) return { where: 'absent' }
  const tx = decodeTx(txAnswer)
  if (tx.hash !== wanted) throw new NodeNonsense(`asked for ${wanted}, got another transaction`)
  if (tx.blockHash !== null)
    throw new NodeNonsense(`${wanted} is in a block but its receipt is not known yet: ask again`)
  return { where: 'mempool' }
}

/** Addresses in lowercase, as events have them. */
function paymentOf({ to, units }: EvmIntent, token: string, receiptAnswer: unknown) {
  const from = lowerAddress(fields(receiptAnswer, 'receipt').from, 'receipt.from')
  return { contract: token.toLowerCase(), from, to: to.toLowerCase(), units }
}
