export type EvmProfile = {
  readonly chainId: number
  readonly currency: 'ETH' | 'BNB'
  readonly tokenDecimals: number
}

/** Neither chain has a mainnet's id, so nothing signed here is valid there. */
export const EVM_PROFILES = {
  ETH: { chainId: 31337, currency: 'ETH', tokenDecimals: 6 },
  BNB: { chainId: 31356, currency: 'BNB', tokenDecimals: 18 },
} as const satisfies Record<string, EvmProfile>
