import type { NetworkId } from './networks.ts'

/** One currency of the interface (spec 2.2). Amounts are decimal text in whole units. */
export type Currency = {
  readonly name: string
  readonly color: `#${string}`
  /** Decimals the interface shows and accepts. */
  readonly precision: number
  readonly minAmount: string
  readonly maxAmount: string
  /** The least we pay out: below it a payout costs more than it brings, or is dust to the network. */
  readonly minPayout: string
  /**
   * The least deposit that counts; anything smaller, which anybody can send by the thousand, is recorded and left alone, unless it is all
   * that its order is short of.
   */
  readonly minCredit: string
  /** 1 is shown first. */
  readonly priority: number
  /** Networks and the decimals the currency has on each. */
  readonly networks: Partial<Record<NetworkId, { readonly decimals: number }>>
}

/** Adding a currency is adding an entry here; its logo comes by its code. */
export const currencies = {
  BTC: {
    name: 'Bitcoin',
    color: '#F7931A',
    precision: 8,
    minAmount: '0.0002',
    maxAmount: '10',
    minPayout: '0.00005',
    minCredit: '0.00001',
    priority: 1,
    networks: { BTC: { decimals: 8 } },
  },
  ETH: {
    name: 'Ethereum',
    color: '#627EEA',
    precision: 8,
    minAmount: '0.005',
    maxAmount: '200',
    minPayout: '0.001',
    minCredit: '0.0001',
    priority: 2,
    networks: { ETH: { decimals: 18 } },
  },
  USDT: {
    name: 'Tether USD',
    color: '#26A17B',
    precision: 6,
    minAmount: '10',
    maxAmount: '500000',
    minPayout: '1',
    minCredit: '0.1',
    priority: 3,
    networks: { ERC20: { decimals: 6 }, BEP20: { decimals: 18 }, TRC20: { decimals: 6 } },
  },
  USDC: {
    name: 'USD Coin',
    color: '#2775CA',
    precision: 6,
    minAmount: '10',
    maxAmount: '500000',
    minPayout: '1',
    minCredit: '0.1',
    priority: 4,
    networks: { ERC20: { decimals: 6 }, BEP20: { decimals: 18 }, SOL: { decimals: 6 } },
  },
  BNB: {
    name: 'BNB',
    color: '#F3BA2F',
    precision: 8,
    minAmount: '0.02',
    maxAmount: '500',
    minPayout: '0.005',
    minCredit: '0.0005',
    priority: 5,
    networks: { BNB: { decimals: 18 } },
  },
  XRP: {
    name: 'XRP',
    color: '#23292F',
    precision: 6,
    minAmount: '10',
    maxAmount: '100000',
    minPayout: '2',
    minCredit: '0.5',
    priority: 6,
    networks: { XRP: { decimals: 6 } },
  },
  XLM: {
    name: 'Stellar Lumens',
    color: '#7D00FF',
    precision: 7,
    minAmount: '50',
    maxAmount: '500000',
    minPayout: '5',
    minCredit: '1',
    priority: 7,
    networks: { XLM: { decimals: 7 } },
  },
  TRX: {
    name: 'TRON',
    color: '#EF0027',
    precision: 6,
    minAmount: '50',
    maxAmount: '1000000',
    minPayout: '5',
    minCredit: '1',
    priority: 8,
    networks: { TRX: { decimals: 6 } },
  },
  EOS: {
    name: 'EOS',
    color: '#443F54',
    precision: 4,
    minAmount: '20',
    maxAmount: '500000',
    minPayout: '2',
    minCredit: '0.5',
    priority: 9,
    networks: { EOS: { decimals: 4 } },
  },
  SOL: {
    name: 'Solana',
    color: '#9945FF',
    precision: 8,
    minAmount: '0.1',
    maxAmount: '2000',
    minPayout: '0.02',
    minCredit: '0.002',
    priority: 10,
    networks: { SOL: { decimals: 9 } },
  },
} as const satisfies Record<string, Currency>

export type CurrencyCode = keyof typeof currencies

export const currencyCodes = Object.keys(currencies) as readonly CurrencyCode[]

export function isCurrencyCode(text: string): text is CurrencyCode {
  return Object.hasOwn(currencies, text)
}
