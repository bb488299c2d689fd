import type { Chain, Funds } from '../../src/chains/chain.ts'
import type { AssetId } from '../../src/domain/catalog/assets.ts'
import type { Intent, SignedTx } from '../../src/domain/payouts/intent.ts'

/** What the suite must know of a chain before any node runs, and how to start one. */
export type ChainUnderTest = ChainSubject<ChainDriver> & {
  readonly addresses: AddressCases
  readonly fakeDeposits: readonly FakeDeposit[]
  /** Its answers carry no id of their questions. */
  readonly hasNoIds?: true
}

export type ChainSubject<Driver extends ChainWorld> = {
  /** As it stands in test names: `bitcoin`. */
  readonly name: string
  /**
   * Its blocks are final as soon as they are told: nothing is told before that, nothing that waits is replaced, no block
   * is ever taken back, and a transaction pays one.
   */
  readonly isFinal?: true
  /** Its node tells of blocks alone: what waits is absent, like what was never sent. */
  readonly hidesWaiting?: true
  /** Some of its answers say nothing of their question: nothing but the line ties the two. */
  readonly isPlain?: true
  /** Reorganisations undo at most so many blocks; left out, as many as matter and one more. */
  readonly reorgDepthMax?: number
  /** What waits is mined or lost, and nothing takes its place. */
  readonly neverReplaces?: true
  /** A transaction costs nothing but what its account has for free. */
  readonly isFree?: true
  /** What deposits and payouts are tried in; the first is the chain's native asset. */
  readonly assets: readonly [AssetId, ...AssetId[]]
  /** Brings up a node of its own with money in it. Rejects, in one clear line, when there is no node to be had. */
  start(): Promise<Driver>
}

export type AddressCases = {
  /** Nothing in an address tells a mistyped one: a part of one is another one. */
  readonly areUnchecked?: true
  readonly valid: readonly { readonly what: string; readonly text: string; readonly canonical: string }[]
  readonly invalid: readonly { readonly what: string; readonly text: string }[]
}

/**
 * Something that looks like a deposit and is none. The suite makes it beside a true deposit to the same address,
 * mines a block, and expects the true one alone to be credited.
 */
export type FakeDeposit = {
  readonly what: string
  /** `nothing`: no transfer may come of it. `unlisted`: transfers of a foreign asset may, to be recorded only. */
  readonly shows: 'nothing' | 'unlisted'
  /** May mine blocks where it cannot do without. */
  make(driver: ChainDriver, to: string): Promise<{ readonly txHash: string }>
}

/** A chain over a real node, which may be reached by other ways and under other settings. */
export type ChainDriver = ChainWorld & {
  /** Where the node listens, with credentials if it needs any; the suite puts a proxy that fails in front. */
  readonly rpcUrl: string
  /** The RPC method that carries a broadcast, at which the proxy starts to fail. */
  readonly broadcastMethod: string
  /** The same settings against another URL, giving up on a request after `timeoutMs`. */
  chainAt(rpcUrl: string, timeoutMs: number): Chain
  /** A chain configured for another network than the one this node runs. */
  stranger(): Chain
}

/** The world around a chain: people outside who pay us, our keys. Blocks come by `mine` only. */
export type ChainWorld = {
  readonly chain: Chain

  /** An address of ours that was never used. */
  ourAddress(): Promise<string>
  /** The account payouts are made from; on a coin chain any address that funds come from. */
  reserveAddress(): Promise<string>
  /** An address of somebody else that was never used. */
  outsideAddress(): Promise<string>

  /** Somebody outside sends; resolves with the hash when it waits to be mined. `units` are ledger units. */
  send(asset: AssetId, to: string, units: bigint): Promise<string>
  /** The same with several payments of the native asset inside one transaction. */
  sendTogether(payments: readonly { readonly to: string; readonly units: bigint }[]): Promise<string>
  /** Where times run out: what is sent now is accepted and lost, and when this is over its time has. */
  lose?(send: () => Promise<void>): Promise<void>
  /** Replaces a waiting `send` of the native asset by another one that pays more for being mined. */
  replace(txHash: string, change: { readonly to?: string; readonly units?: bigint }): Promise<string>
  mine(blocks: number): Promise<void>
  /** The newest `depth` blocks lose to a longer branch without their transactions. */
  reorg(depth: number): Promise<void>
  /** What the node says an address holds, asked without the connector. Ledger units. */
  holds(asset: AssetId, address: string): Promise<bigint>

  /**
   * Mined funds of ours that no earlier call gave out, good for one payout of `units` and its costs and for
   * raising it at least once: coins on a coin chain, the reserve account and its next nonce, if it has any, on the others.
   */
  funds(asset: AssetId, units: bigint): Promise<Funds>
  /** The real signer, or for want of it one that builds the very same transaction. */
  sign(intent: Intent): Promise<SignedTx>
  stop(): Promise<void>
}
