import type { AssetId } from '../../domain/catalog/assets.ts'
import type { SignedTx } from '../../domain/payouts/intent.ts'
import { isNodeTrouble, type JsonRpc, NodeRefusal } from './json_rpc.ts'
import { lookup } from './lookup.ts'

/**
 * The words of geth and bsc, erigon, nethermind, besu, reth and anvil. Of Nethermind they mean that it has seen it: what it refused a
 * moment ago it calls known until the next block, and for longer what it dropped for lack of funds (AlreadyKnownTxFilter.cs).
 */
const SEEN_BEFORE =
  /already ?known|already imported|\bknown transaction|already (?:in|exists)|already been added/i
const NONCE_USED = /nonce (?:is )?too low|old ?nonce|nonce has already been used/i
/**
 * Sent, understood, and certainly in no pool: the bytes are at fault, or what the account holds. Besu has words of its own
 * (RpcErrorType.java), and so had Nethermind until June 2026 (AcceptTxResult.cs). Of these `FeeTooLowToCompete` is left out: until April
 * 2024 it was said also of what goes on to be sent to peers (https://github.com/NethermindEth/nethermind/issues/6790).
 */
const NOT_TAKEN =
  /underpriced|insufficient ?(?:funds|balance)|upfront cost exceeds|intrinsic gas|exceeds block gas limit|gas limit too high|nonce (?:is )?too high|fee cap|exceeds the configured cap|less than block base fee|gas ?price (?:is )?(?:below|less than)|fee ?too ?low(?!ToCompete)|tip (?:higher|above)|invalid (?:sender|signature|chain|transaction)|chain ?id|malformed|decode|rlp|type not supported|not authorized|exceeds maximum|oversized/i

/**
 * `refused` only when the node's words leave no doubt. A full pool, a rate limit, an inner fault of the node or of
 * a provider in front of it tell nothing about where the bytes got to: `unknown`, and the same bytes go out again.
 */
export async function broadcast(
  rpc: JsonRpc,
  native: AssetId,
  tx: SignedTx,
): Promise<'accepted' | 'refused' | 'unknown'> {
  try {
    const answer = await rpc.call('eth_sendRawTransaction', [`0x${tx.bytes}`])
    const isOurs = typeof answer === 'string' && answer.toLowerCase() === tx.txHash.toLowerCase()
    return isOurs ? 'accepted' : 'unknown'
  } catch (error) {
    if (!(error instanceof NodeRefusal)) {
      if (isNodeTrouble(error)) return 'unknown'
      throw error
    }
    if (SEEN_BEFORE.test(error.message)) return acceptedIfThere(rpc, native, tx.txHash, 'unknown')
    // Used by this very transaction, or by another attempt.
    if (NONCE_USED.test(error.message)) return acceptedIfThere(rpc, native, tx.txHash, 'refused')
    return NOT_TAKEN.test(error.message) ? 'refused' : 'unknown'
  }
}

async function acceptedIfThere(
  rpc: JsonRpc,
  native: AssetId,
  txHash: string,
  otherwise: 'refused' | 'unknown',
): Promise<'accepted' | 'refused' | 'unknown'> {
  try {
    const status = await lookup(rpc, native, txHash)
    return status.where === 'absent' ? otherwise : 'accepted'
  } catch (error) {
    if (isNodeTrouble(error)) return 'unknown'
    throw error
  }
}
