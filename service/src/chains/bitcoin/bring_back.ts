import { findKnown } from './lookup.ts'
import { listIn, objectIn, textIn } from './replies.ts'
import { NoAnswer, type Rpc, RpcRefusal } from './rpc.ts'

/** So many transactions are followed back at the most: what waits in a mempool together is seldom more than 25. */
const PARENTS_MAX = 100

/**
 * Sends once more what a transaction spends, and what that spends, where the node knows it from a block that lost and has it
 * nowhere now: a mempool drops what a reorganisation makes early, what is too many, and all of it in a restart. Anybody may send it,
 * and whoever paid us need not be there. True: the node has taken some of it.
 */
export async function bringBackParents(rpc: Rpc, bytes: string): Promise<boolean> {
  const seen = new Set<string>()
  let isAnyTaken = false
  const bringBack = async (tx: Record<string, unknown>): Promise<void> => {
    for (const vin of listIn(tx.vin, 'vin')) {
      const { txid } = objectIn(vin, 'vin')
      if (txid === undefined) return // a coinbase spends nothing
      const txHash = textIn(txid, 'vin txid')
      if (seen.has(txHash) || seen.size >= PARENTS_MAX) continue
      seen.add(txHash)
      const parent = await findKnown(rpc, txHash)
      if (parent?.where !== 'lost') continue
      await bringBack(parent.tx)
      const [sent] = await rpc.batch([['sendrawtransaction', textIn(parent.tx.hex, 'hex')]])
      if (sent?.ok) isAnyTaken = true
    }
  }
  try {
    await bringBack(objectIn(await rpc.call('decoderawtransaction', bytes), 'decoderawtransaction'))
  } catch (error) {
    if (!(error instanceof NoAnswer) && !(error instanceof RpcRefusal)) throw error
  }
  return isAnyTaken
}
