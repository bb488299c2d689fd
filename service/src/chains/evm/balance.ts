import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { count, quantity } from './decode.ts'
import type { JsonRpc } from './json_rpc.ts'
import { balanceOfCall, decodeBalance } from './token_calls.ts'

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
  const answers = await rpc.batch(
    distinct.map((address) =>
      contract === null
        ? { method: 'eth_getBalance', params: [address, block] }
        : balanceOfCall(contract, address, block),
    ),
  )
  const chainUnits = answers
    .map((answer) => (contract === null ? quantity(answer, 'balance') : decodeBalance(contract, answer)))
    .reduce((sum, units) => sum + units, 0n)
  return fromChainUnits(asset, chainUnits).units
}
