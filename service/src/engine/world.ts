import type { Chain } from '../chains/chain.ts'
import type { Clock } from '../clock.ts'
import type { Database } from '../db/database.ts'
import type { AssetId } from '../domain/catalog/assets.ts'
import type { ChainId, EvmChainId } from '../domain/catalog/networks.ts'
import type { SealedFor, SealedTerms } from '../domain/orders/seal.ts'
import type { Prices } from '../prices/price_source.ts'
import type { Signer } from '../signer/signer.ts'
import type { Alarms } from './alarms.ts'
import type { MarketBoard } from './market.ts'
import type { Policy } from './policy.ts'

/** What an engine writes to its log: an object of facts and a sentence. Never keys, tokens or signatures. */
export type Log = {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

export type Chains = ReadonlyMap<ChainId, Chain>

/**
 * Everything outside that decisions and workers touch, passed in so that a simulation can replace it. It has no keys:
 * a process that only watches needs none.
 */
export type World = {
  readonly db: Database
  readonly clock: Clock
  readonly chains: Chains
  readonly prices: Prices
  readonly market: MarketBoard
  readonly policy: Policy
  readonly log: Log
  /** Those of this process: what another process has written down is found when a rest ends. */
  readonly alarms: Alarms
  /** The contract of each listed token. */
  readonly tokens: Partial<Record<AssetId, string>>
  /** EIP-155 ids of the EVM chains. */
  readonly evmChainIds: Readonly<Record<EvmChainId, number>>
}

/** HMAC over what decides where money may go, and which; of an order unless it is said to be our own. */
type Seal = (terms: SealedTerms, whose?: SealedFor) => string

/** What only processes with the role api have. */
export type DeskWorld = World & {
  readonly seal: Seal
  /** The secret that finds an order without an account; the same order always has the same. */
  readonly tokenOf: (orderId: string) => string
  /** At most 14 at once. */
  readonly randomDigits: (count: number) => string
  readonly randomId: () => string
}

/** What only processes with the role engine have. */
export type SigningWorld = World & { readonly seal: Seal; readonly signer: Signer }
