export type StellarSettings = {
  readonly id: 'XLM'
  /** A Horizon. `user:password@` becomes an Authorization header. */
  readonly horizonUrl: string
  /** Names the network; every signature is over it. */
  readonly passphrase: string
  readonly feeStroopsMax: bigint
  /** For one answer of Horizon. */
  readonly timeoutMs: number
  /** The account that everything arrives at and leaves from; asked anew each time. */
  readonly reserveAddress: () => Promise<string> | string
}
