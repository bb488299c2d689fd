import { expect, test } from 'vitest'
import { type PaymentScheme, paymentUri, schemeOf } from './payload.ts'

const evmAddress = '0x52908400098527886E0F7030069857D2E4169EE7'
const token = '0xdAC17F958D2ee523a2206206994597C13D831ec7'

test.each<[PaymentScheme, string, string]>([
  ['bitcoin', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', '0.05'],
  ['ethereum', evmAddress, '150'],
  ['bnb', evmAddress, '0.00000001'],
  ['solana', '7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV', '1.5'],
  ['tron', 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC', '12'],
  ['ripple', 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh', '25.5'],
  ['stellar', 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ', '3'],
  ['eos', 'cambist12345', '4.0001'],
])('%s is paid by scheme, address and amount', (scheme, address, amountText) => {
  const request = { scheme, address, style: { kind: 'default' } } as const
  expect(paymentUri({ ...request, amountText })).toBe(`${scheme}:${address}?amount=${amountText}`)
  expect(paymentUri({ ...request, amountText: null })).toBe(address)
})

test('a token travels under the scheme of its network', () => {
  expect(schemeOf('BTC')).toBe('bitcoin')
  expect(schemeOf('ETH')).toBe('ethereum')
  expect(schemeOf('ERC20')).toBe('ethereum')
  expect(schemeOf('BNB')).toBe('bnb')
  expect(schemeOf('BEP20')).toBe('bnb')
  expect(schemeOf('XRP')).toBe('ripple')
  expect(schemeOf('XLM')).toBe('stellar')
  expect(schemeOf('TRX')).toBe('tron')
  expect(schemeOf('TRC20')).toBe('tron')
  expect(schemeOf('EOS')).toBe('eos')
  expect(schemeOf('SOL')).toBe('solana')
})

test('the standard style of bitcoin is BIP-21', () => {
  const request = { scheme: 'bitcoin', address: 'bc1qabc', style: { kind: 'bip21' } } as const
  expect(paymentUri({ ...request, amountText: '0.05' })).toBe('bitcoin:bc1qabc?amount=0.05')
  expect(paymentUri({ ...request, amountText: null })).toBe('bc1qabc')
})

test('the address alone has no amount, whether or not one is wanted', () => {
  const request = { scheme: 'solana', address: '7EcDhSYG', style: { kind: 'address' } } as const
  expect(paymentUri({ ...request, amountText: '1000' })).toBe('7EcDhSYG')
  expect(paymentUri({ ...request, amountText: null })).toBe('7EcDhSYG')
})

test('where no address carries a memo, the standard style names it', () => {
  const request = { scheme: 'eos', address: 'mycambist123', style: { kind: 'memo', memo: '48213' } } as const
  expect(paymentUri({ ...request, amountText: '0.5' })).toBe('eos:mycambist123?amount=0.5&memo=48213')
  expect(paymentUri({ ...request, amountText: null })).toBe('mycambist123')
  const odd = { ...request, style: { kind: 'memo', memo: 'a&amount=9 #' } } as const
  expect(paymentUri({ ...odd, amountText: '0.5' })).toBe(
    'eos:mycambist123?amount=0.5&memo=a%26amount%3D9%20%23',
  )
})

test('the standard style of an EVM coin is EIP-681 in wei, with the chain', () => {
  const style = { kind: 'eip681', chainId: 56, units: 1_500_000_000_000_000_001n, contract: null } as const
  expect(paymentUri({ scheme: 'bnb', address: evmAddress, amountText: '1.5', style })).toBe(
    `ethereum:${evmAddress}@56?value=1500000000000000001`,
  )
  expect(paymentUri({ scheme: 'bnb', address: evmAddress, amountText: null, style })).toBe(evmAddress)
})

test('the standard style of an EVM token calls its transfer', () => {
  const style = { kind: 'eip681', chainId: 1, units: 150_000_000n, contract: token } as const
  expect(paymentUri({ scheme: 'ethereum', address: evmAddress, amountText: '150', style })).toBe(
    `ethereum:${token}@1/transfer?address=${evmAddress}&uint256=150000000`,
  )
})

test('the standard style of Solana is Solana Pay, which names the mint of a token', () => {
  const [address, mint] = [
    '7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV',
    'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  ]
  const request = { scheme: 'solana', address } as const
  const [coin, token] = [{ kind: 'solana_pay', mint: null } as const, { kind: 'solana_pay', mint } as const]
  expect(paymentUri({ ...request, amountText: '1.5', style: coin })).toBe(`solana:${address}?amount=1.5`)
  expect(paymentUri({ ...request, amountText: '25', style: token })).toBe(
    `solana:${address}?amount=25&spl-token=${mint}`,
  )
  expect(paymentUri({ ...request, amountText: null, style: token })).toBe(address)
})

test.each(['100', '0.00000001', '1234567890.123456789', '1.50'])(
  'an amount of %s is paid digit for digit, in every style',
  (amountText) => {
    const styles = [
      ['bitcoin', { kind: 'default' }],
      ['bitcoin', { kind: 'bip21' }],
      ['eos', { kind: 'memo', memo: '7' }],
      ['solana', { kind: 'solana_pay', mint: null }],
      ['solana', { kind: 'solana_pay', mint: 'mint' }],
    ] as const
    for (const [scheme, style] of styles) {
      const uri = paymentUri({ scheme, address: 'a', amountText, style })
      expect(uri.replace(/&.*/, ''), style.kind).toBe(`${scheme}:a?amount=${amountText}`)
    }
  },
)

test('units of a token go out digit for digit', () => {
  const units = 123_456_789_012_345_678_901_234_567n
  const style = { kind: 'eip681', chainId: 1, units, contract: token } as const
  expect(paymentUri({ scheme: 'ethereum', address: evmAddress, amountText: '1', style })).toBe(
    `ethereum:${token}@1/transfer?address=${evmAddress}&uint256=123456789012345678901234567`,
  )
})

test.each(['1e3', '1,5', '', '-1', '.5', '1.', ' 1', '0x10', 'NaN'])(
  'an amount of %j is a broken promise',
  (amountText) => {
    const request = { scheme: 'bitcoin', address: 'bc1qabc', style: { kind: 'default' } } as const
    expect(() => paymentUri({ ...request, amountText })).toThrow('plain decimal')
  },
)

test("a standard is not mixed with another network's scheme", () => {
  const eip681 = { kind: 'eip681', chainId: 1, units: 1n, contract: null } as const
  const request = { address: 'a', amountText: '1' }
  expect(() => paymentUri({ ...request, scheme: 'bitcoin', style: eip681 })).toThrow('EVM')
  expect(() => paymentUri({ ...request, scheme: 'ethereum', style: { kind: 'bip21' } })).toThrow('BIP-21')
  const solanaPay = { kind: 'solana_pay', mint: null } as const
  expect(() => paymentUri({ ...request, scheme: 'tron', style: solanaPay })).toThrow('Solana Pay')
})
