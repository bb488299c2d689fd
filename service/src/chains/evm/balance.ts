import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { count, quantity } from './decode.ts'
import type { Call, JsonRpc } from './json_rpc.ts'
import { type BlockId, balanceOfCall, decodeBalance } from './token_calls.ts'

/** Ledger units, all addresses together, all at one height. `contract` is null for the native coin. */
export async function balance(
  rpc: JsonRpc,
  asset: AssetId,
  contract: string | null,
  addresses: readonly string[],
  height: number | undefined,
): Promise<bigint> {
  // Pinned once: "latest" may move between two batches, and money that moved with it would count twice or never.
  const at = height ?? count(await rpc.call('eth_blockNumber', []), 'block number')
  const block = `0x${at.toString(16)}`
  const distinct = [...new Set(addresses)]
  const answers = await rpc.batch(distinct.map((address) => heldCall(contract, address, block)))
  const chainUnits = answers
    .map((answer) => decodeHeld(contract, answer))
    .reduce((sum, units) => sum + units, 0n)
  return fromChainUnits(asset, chainUnits).units
}

/** Asks what an address holds; `contract` is null for the native coin. */
export function heldCall(contract: string | null, holder: string, block: BlockId): Call {
  return contract === null
    ? { method: 'eth_getBalance', params: [holder, block] }
    : balanceOfCall(contract, holder, block)
}

/** In raw units of the chain. */
export function decodeHeld(contract: string | null, answer: unknown): bigint {
  return contract === null ? quantity(answer, 'balance') : decodeBalance(contract, answer)
}
