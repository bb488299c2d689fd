export type EosSettings = {
  readonly id: 'EOS'
  /** HTTP API of a node: `chain_api_plugin` and `trace_api_plugin`. `user:password@` becomes an Authorization header. */
  readonly rpcUrl: string
  /** Names the network; every signature is over it. */
  readonly chainId: string
  /** The account that everything arrives at and leaves from. */
  readonly account: string
  /** What our key is there for: the account has to obey it, or it is somebody else's. */
  readonly publicKey: string
  /** For one answer of the node. */
  readonly timeoutMs: number
}
