import { mnemonicToSeedSync } from '@scure/bip39'
import { MuxedAccount } from '@stellar/stellar-sdk/base'
import { expect, test } from 'vitest'
import { deriveKeys } from '../derivation.ts'
import { stellarAddress } from './stellar_address.ts'

// https://github.com/stellar/stellar-protocol/blob/master/ecosystem/sep-0005.md#test-1
test('on Stellar everybody has an id on one account, which is that of the SEP-5 vectors', () => {
  const words = 'illness spike retreat truth genius clock brain pass fit cave bargain toe'
  const keys = deriveKeys(mnemonicToSeedSync(words), { bitcoin: 'mainnet', xrpNetworkId: 0 })
  const account = 'GDRXE2BQUC3AZNPVFSCEZ76NJ3WWL25FYFK6RGZGIEKWE4SOOHSUJUJ6'
  expect(stellarAddress(keys, { purpose: 'reserve', index: 1 })).toBe(account)
  const place = (purpose: 'deposit' | 'reserve', index: number) => {
    const muxed = MuxedAccount.fromAddress(stellarAddress(keys, { purpose, index }), '0')
    return { account: muxed.baseAccount().accountId(), id: muxed.id() }
  }
  expect(place('deposit', 48_213)).toEqual({ account, id: '48213' })
  expect(place('reserve', 0)).toEqual({ account, id: '4294967295' })
  expect(() => stellarAddress(keys, { purpose: 'change', index: 0 })).toThrow('no change addresses')
})
