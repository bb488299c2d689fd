import { assert } from '../domain/assert.ts'
import { type ChainId, type NetworkId, networkChains } from '../domain/catalog/networks.ts'

export type PaymentScheme = 'bitcoin' | 'ethereum' | 'bnb' | 'solana' | 'tron' | 'ripple' | 'stellar' | 'eos'

/** A chain without a scheme does not compile. */
const chainSchemes = {
  BTC: 'bitcoin',
  ETH: 'ethereum',
  BNB: 'bnb',
  XRP: 'ripple',
  XLM: 'stellar',
  TRX: 'tron',
  EOS: 'eos',
  SOL: 'solana',
} as const satisfies Record<ChainId, PaymentScheme>

/** A token travels under its network's scheme: USDT on ERC20 is `ethereum`. */
export function schemeOf(network: NetworkId): PaymentScheme {
  return chainSchemes[networkChains[network]]
}

/**
 * `default` is the interface's own form (spec 4.5). The others are what wallets of a network agreed on:
 * BIP-21 (https://github.com/bitcoin/bips/blob/master/bip-0021.mediawiki) and
 * EIP-681 (https://eips.ethereum.org/EIPS/eip-681), whose amounts are on-chain units,
 * Solana Pay (https://docs.solanapay.com/spec), whose amounts are whole units.
 */
export type PaymentStyle =
  | { readonly kind: 'default' }
  /** The address alone, as where no amount is wanted. */
  | { readonly kind: 'address' }
  | { readonly kind: 'bip21' }
  /** Where no address carries it. */
  | { readonly kind: 'memo'; readonly memo: string }
  | {
      readonly kind: 'eip681'
      readonly chainId: number
      /** In wei, or in the token's smallest on-chain unit. */
      readonly units: bigint
      /** The token's contract; null for the chain's own coin. */
      readonly contract: string | null
    }
  | {
      readonly kind: 'solana_pay'
      /** The token's mint; null for SOL. */
      readonly mint: string | null
    }

export type PaymentRequest = {
  readonly scheme: PaymentScheme
  readonly address: string
  /** What to pay in whole units, as a plain decimal; null (`include_amount=false`) gives the address alone. */
  readonly amountText: string | null
  readonly style: PaymentStyle
}

/** The text inside the QR code. */
export function paymentUri({ scheme, address, amountText, style }: PaymentRequest): string {
  if (amountText === null) return address
  assert(/^\d+(\.\d+)?$/.test(amountText), `a payment amount is a plain decimal, not ${amountText}`)
  switch (style.kind) {
    case 'default':
      return `${scheme}:${address}?amount=${amountText}`
    case 'address':
      return address
    case 'memo':
      return `${scheme}:${address}?amount=${amountText}&memo=${encodeURIComponent(style.memo)}`
    case 'bip21':
      assert(scheme === 'bitcoin', `BIP-21 is for bitcoin, not ${scheme}`)
      return `bitcoin:${address}?amount=${amountText}`
    case 'eip681':
      assert(scheme === 'ethereum' || scheme === 'bnb', `EIP-681 is for EVM chains, not ${scheme}`)
      return eip681Uri(address, style)
    case 'solana_pay':
      assert(scheme === 'solana', `Solana Pay is for Solana, not ${scheme}`)
      return `solana:${address}?amount=${amountText}${style.mint === null ? '' : `&spl-token=${style.mint}`}`
  }
}

/** EIP-681 tells chains apart by id: BNB Smart Chain is `ethereum:…@56`. */
function eip681Uri(address: string, style: Extract<PaymentStyle, { kind: 'eip681' }>): string {
  return style.contract === null
    ? `ethereum:${address}@${style.chainId}?value=${style.units}`
    : `ethereum:${style.contract}@${style.chainId}/transfer?address=${address}&uint256=${style.units}`
}
