import type { SignedTx } from '../../domain/payouts/intent.ts'
import type { TxStatus } from '../chain.ts'
import { objectIn } from './replies.ts'
import { isNodeTrouble, NoAnswer, type Rpc } from './rpc.ts'

/** The node has not looked at it, or cannot tell: https://developers.tron.network/reference/broadcasthex */
const SAYS_NOTHING = new Set([
  'SERVER_BUSY',
  'NO_CONNECTION',
  'NOT_ENOUGH_EFFECTIVE_CONNECTION',
  'BLOCK_UNSOLIDIFIED',
])

/** It was there before; where it is now has to be asked. */
const SEEN_BEFORE = 'DUP_TRANSACTION_ERROR'

export async function broadcast(
  rpc: Rpc,
  lookup: (txHash: string) => Promise<TxStatus>,
  { txHash, bytes }: SignedTx,
): Promise<'accepted' | 'refused' | 'unknown'> {
  try {
    const answer = objectIn(await rpc.post('wallet/broadcasthex', { transaction: bytes }), 'broadcasthex')
    // An answer to another question is none.
    if (answer.txid !== undefined && answer.txid !== txHash)
      throw new NoAnswer('broadcasthex', 'it is another one')
    if (answer.result === true && answer.txid === txHash) return 'accepted'
    const { code } = answer
    if (typeof code !== 'string' || code === 'SUCCESS' || SAYS_NOTHING.has(code)) return 'unknown'
    // Refused also for what it would do a second time: one that is in a block has expired, or has spent what it needs.
    const { where } = await lookup(txHash)
    if (where !== 'absent') return 'accepted'
    return code === SEEN_BEFORE ? 'unknown' : 'refused'
  } catch (error) {
    if (isNodeTrouble(error)) return 'unknown'
    throw error
  }
}
