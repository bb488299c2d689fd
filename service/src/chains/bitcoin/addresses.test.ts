import { Address, OutScript } from '@scure/btc-signer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bitcoinNetworkNames } from '../../domain/catalog/networks.ts'
import { addressOfScript, type OutputKind, parseAddress, scriptBytes } from './addresses.ts'
import { networkFacts } from './settings.ts'

describe('parseAddress', () => {
  test.each<[OutputKind, string]>([
    ['pkh', '1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH'],
    ['sh', '3CNHUhP3uyB9EUtRLsmvFUmvGdjGdkTxJw'],
    ['wpkh', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'],
    ['wsh', 'bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3'],
    ['tr', 'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0'],
  ])('%s of mainnet is accepted there and nowhere else', (kind, text) => {
    expect(parseAddress('mainnet', text)).toEqual({ ok: true, value: { canonical: text, kind } })
    expect(parseAddress('testnet', text).ok).toBe(false)
    expect(parseAddress('regtest', text).ok).toBe(false)
  })

  // https://github.com/bitcoin/bips/blob/master/bip-0173.mediawiki and bip-0350.mediawiki, "invalid" examples.
  test.each([
    'tc1qw508d6qejxtdg4y5r3zarvary0c5xw7kg3g4ty',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5',
    'BC13W508D6QEJXTDG4Y5R3ZARVARY0C5XW7KN40WF2',
    'bc1rw5uspcuh',
    'bc10w508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kw5rljs90',
    'BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P',
    'tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sL5k7',
    'bc1zw508d6qejxtdg4y5r3zarvaryvqyzf3du',
    'bc1gmk9yu',
    'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd',
    'BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh',
    'bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4',
    'bc1pw5dgrnzv',
    'bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y',
    // Valid by BIP-350, and spendable by anyone today.
    'BC1SW50QGDZ25J',
    'bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs',
    'bc1pfeessrawgf',
  ])('%s is refused', (text) => {
    for (const network of bitcoinNetworkNames) expect(parseAddress(network, text).ok).toBe(false)
  })

  test('no text makes it throw', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(parseAddress('mainnet', text).ok).toBe(false)
      }),
    )
  })
})

test('what an output pays to is spelt as parseAddress spells it', () => {
  const program = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
  const output = fc.oneof(
    program(20).map((hash) => ({ type: 'pkh' as const, hash })),
    program(20).map((hash) => ({ type: 'sh' as const, hash })),
    program(20).map((hash) => ({ type: 'wpkh' as const, hash })),
    program(32).map((hash) => ({ type: 'wsh' as const, hash })),
  )
  fc.assert(
    fc.property(fc.constantFrom(...bitcoinNetworkNames), output, (network, paid) => {
      const script = OutScript.encode(paid)
      expect(script.length).toBe(scriptBytes[paid.type])
      const address = addressOfScript(network, script)
      expect(address).toBe(Address(networkFacts[network].spelling).encode(paid))
      expect(parseAddress(network, address ?? '')).toEqual({
        ok: true,
        value: { canonical: address, kind: paid.type },
      })
    }),
  )
})

test('a taproot output is named; scripts that only resemble an address are not', () => {
  const point = Buffer.from('79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798', 'hex')
  expect(addressOfScript('mainnet', Uint8Array.from([0x51, 32, ...point]))).toBe(
    'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0',
  )
  const hash = new Uint8Array(20).fill(7)
  const lookalikes = [
    [],
    [0x00],
    [0x52, 32, ...point],
    [0x51, 20, ...hash],
    [0x00, 20, ...hash, 0x61],
    [0xa9, 20, ...hash, 0x88],
    [0xa8, 20, ...hash, 0x87],
    [0x76, 0xa9, 20, ...hash, 0x87, 0xac],
    [0x76, 0xa9, 20, ...hash, 0x88, 0xad],
    [0x6a, 20, ...hash],
    [0x51, 2, 0x4e, 0x73],
  ]
  for (const script of lookalikes) expect(addressOfScript('mainnet', Uint8Array.from(script))).toBeNull()
})
