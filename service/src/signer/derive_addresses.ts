import type { AddressFamily } from '../domain/catalog/networks.ts'
import type { KeyPath } from '../domain/payouts/intent.ts'
import { eosAddress } from './addresses/eos_address.ts'
import { solanaAddress } from './addresses/solana_address.ts'
import { deriveKeys, type Keys } from './derivation.ts'
import { loadInTurn } from './load_in_turn.ts'
import { checkAddressRequest } from './requests/check_request.ts'
import type { SignerSettings } from './settings.ts'
import type { Signer } from './signer.ts'

/** What addresses follow from, beside the keys. */
export type AddressSettings = Pick<SignerSettings, 'bitcoin' | 'xrp' | 'eos'>

/** Every key of the seed, on the networks of the settings. */
export function keysOf(seed: Uint8Array, { bitcoin, xrp }: AddressSettings): Keys {
  return deriveKeys(seed, { bitcoin: bitcoin.network, xrpNetworkId: xrp?.networkId ?? 0 })
}

/** The addresses of a signer with these keys: all that it gives away without signing. */
export function addressesOf(keys: Keys, settings: AddressSettings): Signer['addresses'] {
  return async (...request) => {
    const { family, purpose, from, count } = checkAddressRequest(...request)
    const addressOf = await addressesIn(keys, settings, family)
    return Array.from({ length: count }, (_, at) => addressOf({ purpose, index: from + at }))
  }
}

/** What gives the address of any key, where addresses of a family lie. */
export async function addressesIn(
  keys: Keys,
  { eos }: AddressSettings,
  family: AddressFamily,
): Promise<(key: KeyPath) => string> {
  if (family === 'eos') return (key) => eosAddress(eos, key)
  if (family === 'solana') return (key) => solanaAddress(keys, key)
  if (family !== 'stellar') return (key) => keys.address(family, key)
  const { stellarAddress } = await loadInTurn(() => import('./addresses/stellar_address.ts'))
  return (key) => stellarAddress(keys, key)
}
