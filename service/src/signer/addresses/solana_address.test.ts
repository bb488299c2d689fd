import { mnemonicToSeedSync } from '@scure/bip39'
import { createKeyPairSignerFromPrivateKeyBytes } from '@solana/kit'
import { expect, test } from 'vitest'
import { deriveKeys } from '../derivation.ts'
import { canonicalSolanaAddress, solanaAddress } from './solana_address.ts'

const keysOf = (words: string) =>
  deriveKeys(mnemonicToSeedSync(words), { bitcoin: 'mainnet', xrpNetworkId: 0 })

test('Solana accounts are the ones that wallets derive from the same words', async () => {
  const keys = keysOf(`${'abandon '.repeat(11)}about`)
  const deposit = { purpose: 'deposit', index: 0 } as const
  // The first account of these words in Phantom and Solflare.
  expect(solanaAddress(keys, deposit)).toBe('HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk')
  const ofClient = await createKeyPairSignerFromPrivateKeyBytes(keys.privateKey('solana', deposit))
  expect(ofClient.address).toBe(solanaAddress(keys, deposit))
})

test('every key has an address of its own, and there are no change addresses', () => {
  const keys = keysOf(`${'test '.repeat(11)}junk`)
  const addresses = (['deposit', 'reserve'] as const).flatMap((purpose) =>
    [0, 1, 2 ** 31 - 1].map((index) => solanaAddress(keys, { purpose, index })),
  )
  expect(new Set(addresses).size).toBe(6)
  for (const address of addresses) expect(canonicalSolanaAddress(address)).toBe(address)
  expect(() => solanaAddress(keys, { purpose: 'change', index: 0 })).toThrow('no change addresses')
  expect(() => solanaAddress(keys, { purpose: 'deposit', index: 2 ** 31 })).toThrow('a key index is')
})

test.each(['', '1'.repeat(31), '1'.repeat(33), '0'.repeat(32), 'I'.repeat(40), 'z'.repeat(44)])(
  '"%s" is no address',
  (text) => {
    expect(canonicalSolanaAddress(text)).toBeNull()
  },
)
