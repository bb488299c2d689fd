import type { SignedTx } from '../../domain/payouts/intent.ts'
import type { Fields } from '../replies.ts'
import { lookup } from './lookup.ts'
import { textIn } from './replies.ts'
import { isNodeTrouble, type Rpc } from './rpc.ts'

/** The sequence is used, or the last ledger is over: by this very transaction, or without it. */
const MAYBE_IN_A_LEDGER = new Set(['tefALREADY', 'tefPAST_SEQ', 'tefMAX_LEDGER'])

/**
 * https://xrpl.org/docs/references/protocol/transactions/transaction-results
 * `tes` and `tec` are in the open ledger and relayed, also when nothing but the fee will move; `ter` may be tried again
 * by the node itself, so nobody can say. The other classes are in no ledger now. A node may keep one of them that is not malformed, and try it
 * again with the next five ledgers (`LocalTxs` of rippled): so `refused` may be in one all the same, before its last ledger is over.
 */
export async function broadcast(rpc: Rpc, tx: SignedTx): Promise<'accepted' | 'refused' | 'unknown'> {
  try {
    const result = await rpc.call('submit', { tx_blob: tx.bytes })
    return await judge(rpc, tx, textIn(result.engine_result, 'submit engine_result'), result)
  } catch (error) {
    // Also what the node refuses by an error of its own: too busy, no network, not synced.
    if (isNodeTrouble(error)) return 'unknown'
    throw error
  }
}

async function judge(
  rpc: Rpc,
  tx: SignedTx,
  code: string,
  { queued }: Fields,
): Promise<'accepted' | 'refused' | 'unknown'> {
  if (MAYBE_IN_A_LEDGER.has(code))
    return (await lookup(rpc, tx.txHash)).where === 'absent' ? 'refused' : 'accepted'
  switch (code.slice(0, 3)) {
    case 'tes':
    case 'tec':
      return 'accepted'
    case 'ter':
      return code === 'terQUEUED' || queued === true ? 'accepted' : 'unknown'
    case 'tef':
    case 'tel':
    case 'tem':
      return 'refused'
    default:
      return 'unknown'
  }
}
