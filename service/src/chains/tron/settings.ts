import type { AssetId } from '../../domain/catalog/assets.ts'

export type TronSettings = {
  readonly id: 'TRX'
  /** HTTP API of a full node (`/wallet`). `user:password@` becomes an Authorization header. */
  readonly rpcUrl: string
  /** Where the same node serves `/walletsolidity`; null or left out: there as well. */
  readonly solidUrl?: string | null
  /** The id of its first block, by which a network is known. */
  readonly genesisBlockId: string
  /** The contract of each token asset that we credit and pay, in base58. */
  readonly tokens: Partial<Record<AssetId, string>>
  /** The most that the energy of one call may cost. */
  readonly feeLimitSunMax: bigint
  /** For one answer of the node. */
  readonly timeoutMs: number
  /** The account that payouts leave from; asked anew each time. */
  readonly reserveAddress: () => Promise<string> | string
}
