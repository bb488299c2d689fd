export type DevnetNetwork = 'BTC' | 'ETH' | 'BNB' | 'XRP' | 'XLM' | 'TRX' | 'SOL' | 'EOS'
export type DevnetCurrency = 'BTC' | 'ETH' | 'BNB' | 'USDT' | 'USDC' | 'XRP' | 'XLM' | 'TRX' | 'SOL' | 'EOS'

export type Replacement = {
  /** The new recipient. Default: the old one when `units` is given, otherwise an address of the faucet. */
  readonly to?: string
  /** On-chain units. Default: what the replaced transaction paid. */
  readonly units?: bigint
  /** Same payment, higher fee. */
  readonly feeBumpOnly?: boolean
}

/** What the devnet asks of a network; every amount is in its on-chain units. */
export type LocalNetwork = {
  readonly pid: number
  readonly adopted: boolean
  /**
   * `coins`: on Bitcoin, in so many equal coins; on account chains it makes no difference. `tag`: what stands beside the
   * address where many share one (a destination tag, a memo); elsewhere it makes no difference.
   */
  send(
    currency: DevnetCurrency,
    to: string,
    units: bigint,
    coins?: number,
    tag?: string,
  ): Promise<{ txHash: string }>
  balance(currency: DevnetCurrency, address: string): Promise<bigint>
  freshAddress(): string
  mine(blocks: number): Promise<void>
  /** The miner's turn: may decide that nothing is worth a block. */
  mineLively(): Promise<void>
  reorg(depth: number): Promise<void>
  /** undefined when this network does not know the transaction. */
  replace(txHash: string, replacement: Replacement): Promise<{ txHash: string } | undefined>
  /** Makes sure that a kill -9 now loses next to nothing. */
  save(): Promise<void>
  stop(): Promise<void>
}
