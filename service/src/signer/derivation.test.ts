import { mnemonicToSeedSync } from '@scure/bip39'
import { xAddressToClassicAddress } from 'ripple-address-codec'
import { utils } from 'tronweb'
import { bytesToHex } from 'viem'
import { expect, test } from 'vitest'
import type { BitcoinNetwork } from '../domain/catalog/networks.ts'
import { deriveKeys } from './derivation.ts'

const aboutWords = `${'abandon '.repeat(11)}about`
const about = mnemonicToSeedSync(aboutWords)
const junk = mnemonicToSeedSync(`${'test '.repeat(11)}junk`)

const networksOf = (bitcoin: BitcoinNetwork) => ({ bitcoin, xrpNetworkId: bitcoin === 'mainnet' ? 0 : 31337 })

// https://github.com/bitcoin/bips/blob/master/bip-0084.mediawiki#test-vectors
test('Bitcoin addresses are the ones of the BIP-84 vectors', () => {
  const keys = deriveKeys(about, networksOf('mainnet'))
  expect(keys.address('bitcoin', { purpose: 'deposit', index: 0 })).toBe(
    'bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu',
  )
  expect(keys.address('bitcoin', { purpose: 'deposit', index: 1 })).toBe(
    'bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g',
  )
  expect(keys.address('bitcoin', { purpose: 'change', index: 0 })).toBe(
    'bc1q8c6fshw2dlwun7ekn9qwf37cu2rn755upcp6el',
  )
  expect(bytesToHex(keys.publicKey('bitcoin', { purpose: 'deposit', index: 0 }))).toBe(
    '0x0330d54fd0dd420a6e5f8d3624f5f3482cae350f79d5f0753bf5beef9c2d91af3c',
  )
})

test('EVM addresses are the ones every development node knows', () => {
  const keys = deriveKeys(junk, networksOf('regtest'))
  expect(keys.address('evm', { purpose: 'deposit', index: 0 })).toBe(
    '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  )
  expect(keys.address('evm', { purpose: 'deposit', index: 1 })).toBe(
    '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  )
  expect(bytesToHex(keys.privateKey('evm', { purpose: 'deposit', index: 0 }))).toBe(
    '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
  )
})

test('networks, purposes and indexes never share an address', () => {
  const purposes = ['deposit', 'reserve', 'change'] as const
  const seen = (['mainnet', 'regtest', 'testnet'] as const).flatMap((network) => {
    const keys = deriveKeys(about, networksOf(network))
    return purposes.flatMap((purpose) =>
      [0, 1, 2 ** 31 - 1].map((index) => keys.address('bitcoin', { purpose, index })),
    )
  })
  expect(new Set(seen).size).toBe(seen.length)
  expect(seen.filter((address) => address.startsWith('bcrt1q'))).toHaveLength(9)
  expect(seen.filter((address) => address.startsWith('tb1q'))).toHaveLength(9)

  const keys = deriveKeys(about, networksOf('mainnet'))
  expect(keys.address('evm', { purpose: 'reserve', index: 0 })).not.toBe(
    keys.address('evm', { purpose: 'deposit', index: 0 }),
  )
})

test('an EVM change address and an index out of range are errors', () => {
  const keys = deriveKeys(about, networksOf('mainnet'))
  expect(() => keys.address('evm', { purpose: 'change', index: 0 })).toThrow('no change addresses')
  for (const index of [-1, 0.5, 2 ** 31, Number.NaN]) {
    expect(() => keys.address('bitcoin', { purpose: 'deposit', index })).toThrow('a key index is')
  }
})

test('TRON accounts are the ones that every wallet derives from the same words', () => {
  const keys = deriveKeys(about, networksOf('mainnet'))
  const [deposit, reserve] = (['deposit', 'reserve'] as const).map((purpose) =>
    keys.address('tron', { purpose, index: 0 }),
  )
  const ofClient = utils.accounts.generateAccountWithMnemonic(aboutWords, "m/44'/195'/0'/0/0", '')
  expect(deposit).toBe(ofClient.address)
  expect(reserve).toMatch(/^T/)
  expect(reserve).not.toBe(deposit)
  expect(() => keys.address('tron', { purpose: 'change', index: 0 })).toThrow('no change addresses')
})

test('on the XRP Ledger everybody has a tag on one account, and the reserve has the last one', () => {
  const keys = deriveKeys(about, networksOf('mainnet'))
  // The first account of these words in every wallet that follows BIP-44.
  const account = 'rHsMGQEkVNJmpGWs8XUBoTBiAAbwxZN5v3'
  expect(keys.address('xrp', { purpose: 'reserve', index: 1 })).toBe(account)
  const place = (address: string) => xAddressToClassicAddress(address)
  expect(place(keys.address('xrp', { purpose: 'deposit', index: 48_213 }))).toEqual({
    classicAddress: account,
    tag: 48_213,
    test: false,
  })
  expect(place(keys.address('xrp', { purpose: 'reserve', index: 0 }))).toMatchObject({ tag: 2 ** 32 - 1 })
  const testing = deriveKeys(about, networksOf('regtest'))
  expect(place(testing.address('xrp', { purpose: 'deposit', index: 1 }))).toMatchObject({ test: true })
  expect(() => keys.address('xrp', { purpose: 'change', index: 0 })).toThrow('no change addresses')
})

test('a key is the same however often it is asked for, whatever was asked for and wiped between', () => {
  const keys = deriveKeys(about, networksOf('mainnet'))
  const key = { purpose: 'deposit', index: 0 } as const
  const first = keys.privateKey('bitcoin', key)
  const told = bytesToHex(first)
  first.fill(0)
  expect(bytesToHex(keys.privateKey('bitcoin', key))).toBe(told)
  expect(keys.address('bitcoin', { purpose: 'change', index: 0 })).not.toBe(keys.address('bitcoin', key))
  const addresses = Array.from({ length: 650 }, (_, index) =>
    keys.address('bitcoin', { purpose: 'deposit', index }),
  )
  expect(new Set(addresses).size).toBe(650)
  expect(keys.address('bitcoin', key)).toBe(addresses[0])
  expect(bytesToHex(keys.privateKey('bitcoin', key))).toBe(told)
})
