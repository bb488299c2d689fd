import type { AssetId } from '../../domain/catalog/assets.ts'
import type { EvmChainId } from '../../domain/catalog/networks.ts'

export type EvmSettings = {
  readonly id: EvmChainId
  /** JSON-RPC over HTTP. `user:password@` becomes an Authorization header; the address never shows in an error. */
  readonly rpcUrl: string
  /** EIP-155: 1 for Ethereum, 56 for BNB Smart Chain. */
  readonly evmChainId: number
  /** The contract of each token asset that we credit and pay on this chain. */
  readonly tokens: Partial<Record<AssetId, `0x${string}`>>
  readonly maxFeePerGasWeiMax: bigint
  /** The most gas that a transaction is given. The signer signs none above it, so none is written down. */
  readonly gasLimitMax: bigint
  /** For one answer of the node. Tracing a full block takes a node seconds: give it at least 10 s in production. */
  readonly timeoutMs: number
  /** The account that payouts leave from; asked anew each time, because it may not be known when the chain is built. */
  readonly reserveAddress: () => Promise<string> | string
  /**
   * How internal transfers are found. `trace`: trace_block (erigon, nethermind, reth, anvil). `debug`:
   * debug_traceBlockByHash with callTracer (geth, bsc, and most others). `auto`, the default: trace if the node
   * has it, else debug. `values`: debug, of nothing but the calls that moved value; what the others fall back on.
   */
  readonly tracing?: 'auto' | 'debug' | 'trace' | 'values'
}
