export type XrpSettings = {
  readonly id: 'XRP'
  /** JSON-RPC over HTTP of a rippled. `user:password@` becomes an Authorization header. */
  readonly rpcUrl: string
  /** 0 is the main network. Above 1024 it is part of every transaction (XLS-37). */
  readonly networkId: number
  readonly feeDropsMax: bigint
  /** For one answer of the node. */
  readonly timeoutMs: number
  /** The account that everything arrives at and leaves from; asked anew each time. */
  readonly reserveAddress: () => Promise<string> | string
}
