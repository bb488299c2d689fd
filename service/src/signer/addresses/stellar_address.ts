import { encodeMuxedAccount, encodeMuxedAccountToAddress, Keypair } from '@stellar/stellar-sdk/base'
import { assert } from '../../domain/assert.ts'
import type { KeyPath } from '../../domain/payouts/intent.ts'
import { type Keys, RESERVE_TAG } from '../derivation.ts'

/** One account for all, as on the XRP Ledger; everybody's id is in a muxed address (SEP-23). */
export function stellarAddress(keys: Keys, key: KeyPath): string {
  const { purpose, index } = key
  assert(purpose !== 'change', 'Stellar has no change addresses')
  const account = Keypair.fromRawEd25519Seed(keys.privateKey('stellar', key)).publicKey()
  if (purpose === 'reserve' && index > 0) return account
  const id = purpose === 'reserve' ? RESERVE_TAG : index
  return encodeMuxedAccountToAddress(encodeMuxedAccount(account, String(id)))
}
