import { PackedTransaction, Serializer } from '@wharfkit/antelope'
import type { SignedTx } from '../../domain/payouts/intent.ts'
import type { TxStatus } from '../chain.ts'
import { objectIn } from './replies.ts'
import { NoAnswer, NodeRefusal, type Rpc } from './rpc.ts'

/** The node, or a block that waits for a producer, has it already. */
const DUPLICATE = 'tx_duplicate'
/** The node had no time to look at it. */
const BUSY = 'deadline_exception'
/** Exceptions of the chain have codes from here on (exceptions.hpp); others say nothing of the transaction. */
const CHAIN_CODES_FROM = 3_000_000

/** https://docs.antelope.io/leap/latest/nodeos/plugins/chain_api_plugin/api-reference, send_transaction2 */
export async function broadcast(
  rpc: Rpc,
  lookup: (txHash: string) => Promise<TxStatus>,
  { txHash, bytes }: SignedTx,
): Promise<'accepted' | 'refused' | 'unknown'> {
  const packed = Serializer.decode({ data: bytes, type: PackedTransaction })
  const transaction = Serializer.objectify(packed) as object
  try {
    const request = { return_failure_trace: false, retry_trx: false, transaction }
    const answer = objectIn(await rpc('chain/send_transaction2', request), 'send_transaction2')
    // An answer to another question is none.
    return answer.transaction_id === txHash ? 'accepted' : 'unknown'
  } catch (error) {
    if (error instanceof NoAnswer) return 'unknown'
    if (!(error instanceof NodeRefusal)) throw error
    return judge(lookup, txHash, error)
  }
}

async function judge(
  lookup: (txHash: string) => Promise<TxStatus>,
  txHash: string,
  { code, refusal }: NodeRefusal,
): Promise<'accepted' | 'refused' | 'unknown'> {
  if (refusal === DUPLICATE) return 'accepted'
  if (code < CHAIN_CODES_FROM || refusal === BUSY) return 'unknown'
  try {
    // One that is in a block is refused as well, for what it would do a second time, or because its time is over.
    return (await lookup(txHash)).where === 'absent' ? 'refused' : 'accepted'
  } catch (error) {
    if (error instanceof NoAnswer || error instanceof NodeRefusal) return 'unknown'
    throw error
  }
}
