import { NETWORK, TEST_NETWORK } from '@scure/btc-signer'
import { expect, test } from 'vitest'
import { bitcoinSpellings } from './bitcoin_spellings.ts'

test('the main network and the test network write addresses as the library that signs for them has it', () => {
  expect(bitcoinSpellings).toMatchObject({ mainnet: NETWORK, testnet: TEST_NETWORK })
})
