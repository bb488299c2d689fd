import { type AssetId, assetOf } from '../../domain/catalog/assets.ts'
import { decodeBlockTxs, decodeHeader, decodeWord, quantity } from './decode.ts'
import { isMethodMissing, type JsonRpc } from './json_rpc.ts'
import { decimalsCall } from './token_calls.ts'
import type { TraceBlock } from './traces.ts'

export type Identity = {
  readonly rpc: JsonRpc
  readonly trace: TraceBlock
  readonly name: string
  readonly evmChainId: number
  readonly listed: ReadonlyMap<string, AssetId>
}

/**
 * Gives a check that rejects unless the node is the configured chain, every listed token is there with the decimals we count it in,
 * and the node can do what reading blocks takes: better a service that does not start than one that misses deposits. The last takes the
 * node a trace of a whole block, and is asked until it was answered once, and again after any failure: reading a block fails without it.
 */
export function identityCheck({ rpc, trace, name, evmChainId, listed }: Identity): () => Promise<void> {
  let isAble = false
  return async () => {
    const wasAble = isAble
    isAble = false
    const chainId = quantity(await rpc.call('eth_chainId', []), 'chain id')
    if (chainId !== BigInt(evmChainId)) {
      throw new Error(`the ${name} node is of chain ${chainId}, configured is ${evmChainId}`)
    }
    for (const [contract, asset] of listed) await checkToken(rpc, contract, asset)
    if (!wasAble) await checkAbility(rpc, trace, name)
    isAble = true
  }
}

async function checkAbility(rpc: JsonRpc, trace: TraceBlock, name: string): Promise<void> {
  const latest = await rpc.call('eth_getBlockByNumber', ['latest', true])
  const header = decodeHeader(latest)
  try {
    await rpc.call('eth_getBlockReceipts', [header.hash])
    // The genesis block runs nothing, and geth refuses to trace it.
    if (header.height > 0) await trace(header, decodeBlockTxs(latest))
  } catch (error) {
    if (!isMethodMissing(error)) throw error
    throw new Error(
      `the ${name} node cannot show internal transfers, so deposits made by contracts would be missed: ` +
        'it must offer eth_getBlockReceipts and debug_traceBlockByHash (geth: --http.api eth,debug) or trace_block',
      { cause: error },
    )
  }
}

async function checkToken(rpc: JsonRpc, contract: string, assetId: AssetId): Promise<void> {
  const answer = await rpc.call('eth_call', decimalsCall(contract).params)
  if (answer === '0x') throw new Error(`${assetId}: there is no contract at ${contract}`)
  const decimals = decodeWord(answer, `decimals of ${contract}`)
  const { chainDecimals } = assetOf(assetId)
  if (decimals !== BigInt(chainDecimals)) {
    throw new Error(
      `${assetId}: the contract ${contract} has ${decimals} decimals, the catalogue ${chainDecimals}`,
    )
  }
}
