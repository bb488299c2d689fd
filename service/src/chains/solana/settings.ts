import type { AssetId } from '../../domain/catalog/assets.ts'

export type SolanaSettings = {
  readonly id: 'SOL'
  /** JSON-RPC of a node that keeps the blocks of some days. `user:password@` becomes an Authorization header. */
  readonly rpcUrl: string
  /** By which a network is known. */
  readonly genesisHash: string
  /** The mint of each token asset that we credit and pay. */
  readonly tokens: Partial<Record<AssetId, string>>
  /** The most that one transaction may pay the network: signatures and priority, without accounts that it makes. */
  readonly feeLamportsMax: bigint
  /** For one answer of the node. */
  readonly timeoutMs: number
  /** The account that payouts leave from; asked anew each time. */
  readonly reserveAddress: () => Promise<string> | string
}
