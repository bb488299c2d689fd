import type { SignedTx } from '../../domain/payouts/intent.ts'
import type { TxStatus } from '../chain.ts'
import { isNodeTrouble, NodeRefusal, type Rpc } from './rpc.ts'

/**
 * The node looked at it and would not have it: simulated in vain, a signature that is none, bytes that are none. Everything
 * else (unhealthy, behind, overloaded) says nothing of the transaction.
 */
const REFUSALS = [-32_002, -32_003, -32_602]

/** The node tries it before it passes it on, because afterwards it says nothing any more. */
export async function broadcast(
  rpc: Rpc,
  lookup: (txHash: string) => Promise<TxStatus>,
  { txHash, bytes }: SignedTx,
): Promise<'accepted' | 'refused' | 'unknown'> {
  try {
    const wire = Buffer.from(bytes, 'hex').toString('base64')
    const options = { encoding: 'base64', preflightCommitment: 'confirmed' }
    const answer = await rpc.call('sendTransaction', wire, options)
    // An answer to another question is none.
    return answer === txHash ? 'accepted' : 'unknown'
  } catch (error) {
    if (error instanceof NodeRefusal && REFUSALS.includes(error.code)) return whenRefused(lookup, txHash)
    if (isNodeTrouble(error)) return 'unknown'
    throw error
  }
}

/** Refused also for what it would do a second time: one that is in a block was processed, or has spent what it needs. */
async function whenRefused(lookup: (txHash: string) => Promise<TxStatus>, txHash: string) {
  try {
    return (await lookup(txHash)).where === 'absent' ? 'refused' : 'accepted'
  } catch (error) {
    if (isNodeTrouble(error)) return 'unknown'
    throw error
  }
}
