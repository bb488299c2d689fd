import { ECDH } from 'node:crypto'
import { HDKey } from '@scure/bip32'
import { p2wpkh } from '@scure/btc-signer'
import { classicAddressToXAddress } from 'ripple-address-codec'
import { deriveAddress } from 'ripple-keypairs'
import { publicKeyToAddress } from 'viem/accounts'
import { bytesToHex } from 'viem/utils'
import { assert } from '../domain/assert.ts'
import { bitcoinSpellings } from '../domain/catalog/bitcoin_spellings.ts'
import type { AddressFamily, BitcoinNetwork } from '../domain/catalog/networks.ts'
import type { KeyPath } from '../domain/payouts/intent.ts'
import { tronAddressOf } from './addresses/tron_address.ts'
import { deriveEd25519 } from './slip10.ts'

/** Every key we have, by path. Private keys do not leave this folder. */
export type Keys = {
  /**
   * P2WPKH on Bitcoin, EIP-55 checksummed on EVM, base58 on TRON; on the XRP Ledger one account for all, and tags.
   * Stellar's are in stellar_address.ts; on EOS an account has a name of its own (eos_address.ts), Solana's in solana_address.ts.
   */
  address(family: KeyedFamily, key: KeyPath): string
  /** On Stellar and Solana an ed25519 seed. */
  privateKey(family: AddressFamily, key: KeyPath): Uint8Array
  /** Compressed, 33 bytes. */
  publicKey(family: Secp256k1Family, key: KeyPath): Uint8Array
}

export type Secp256k1Family = Exclude<AddressFamily, 'stellar' | 'solana'>
/** Those whose addresses follow from the key alone. */
export type KeyedFamily = Exclude<Secp256k1Family, 'eos'>

export type Networks = { readonly bitcoin: BitcoinNetwork; readonly xrpNetworkId: number }

/** Leaves are not hardened, so an index is below 2^31 (BIP-32). */
export const KEY_INDEX_MAX = 2 ** 31 - 1

/** One transaction asks for each of its keys three times; the most that it has coins is 500. */
const LEAVES_MAX = 600

/** The reserve has its own account, so that a leaked deposit account key does not open it. */
export function deriveKeys(seed: Uint8Array, networks: Networks): Keys {
  const { bitcoin: network } = networks
  const root = HDKey.fromMasterSeed(seed)
  const branches = new Map<string, HDKey>()
  const leaves = new Map<string, HDKey>()
  const leaf = (family: Secp256k1Family, key: KeyPath): HDKey => {
    assert(
      Number.isInteger(key.index) && key.index >= 0 && key.index <= KEY_INDEX_MAX,
      `a key index is 0 to ${KEY_INDEX_MAX}`,
    )
    const path = branchPath(family, key.purpose, network)
    const index = family === 'xrp' || family === 'eos' ? 0 : key.index
    const name = `${path}/${index}`
    const known = leaves.get(name)
    if (known !== undefined) return known
    const branch = branches.get(path) ?? root.derive(path)
    branches.set(path, branch)
    if (leaves.size >= LEAVES_MAX) leaves.clear()
    const derived = branch.deriveChild(index)
    leaves.set(name, derived)
    return derived
  }
  const privateKey = (family: AddressFamily, key: KeyPath) => {
    if (family === 'stellar') return deriveEd25519(seed, STELLAR_PATH)
    if (family === 'solana') return deriveEd25519(seed, solanaPath(key))
    const bytes = leaf(family, key).privateKey
    assert(bytes !== null, 'a key derived from the seed has a private half')
    // Whoever wipes it when he is done wipes his own.
    return bytes.slice()
  }
  const publicKey = (family: Secp256k1Family, key: KeyPath) => {
    const bytes = leaf(family, key).publicKey
    assert(bytes !== null, 'a derived key has a public half')
    return bytes
  }
  return {
    privateKey,
    publicKey,
    address: (family, key) => {
      switch (family) {
        case 'bitcoin':
          return bitcoinAddress(publicKey(family, key), network)
        case 'evm':
          return evmAddress(publicKey(family, key))
        case 'tron':
          return tronAddressOf(evmAddress(publicKey(family, key)))
        case 'xrp':
          return xrpAddress(publicKey(family, key), key, networks.xrpNetworkId)
      }
    },
  }
}

/** BIP-84 on Bitcoin, BIP-44 elsewhere (https://github.com/satoshilabs/slips/blob/master/slip-0044.md). */
function branchPath(family: Secp256k1Family, purpose: KeyPath['purpose'], network: BitcoinNetwork): string {
  if (family === 'xrp') return "m/44'/144'/0'/0"
  if (family === 'eos') return "m/44'/194'/0'/0"
  if (family === 'bitcoin') {
    const coin = network === 'mainnet' ? 0 : 1
    return `m/84'/${coin}'/${purpose === 'reserve' ? 1 : 0}'/${purpose === 'change' ? 1 : 0}`
  }
  assert(purpose !== 'change', 'account chains have no change addresses')
  return `m/44'/${family === 'tron' ? 195 : 60}'/${purpose === 'reserve' ? 1 : 0}'/0`
}

function bitcoinAddress(publicKey: Uint8Array, network: BitcoinNetwork): string {
  const { address } = p2wpkh(publicKey, bitcoinSpellings[network])
  assert(address !== undefined, 'a witness program has an address')
  return address
}

/** From the public half: deriving the leaf made that already, and making it is nearly all of the work. */
function evmAddress(publicKey: Uint8Array): string {
  const whole = ECDH.convertKey(publicKey, 'secp256k1', undefined, undefined, 'uncompressed')
  assert(typeof whole !== 'string', 'no encoding was asked for')
  return publicKeyToAddress(bytesToHex(whole))
}

/**
 * One account, and a tag for everybody: a deposit's is the index of its key. The reserve has the last tag there is, so
 * that an operator who funds it is told from a customer who forgot the tag; key 1 of the reserve is the account without one.
 */
function xrpAddress(publicKey: Uint8Array, { purpose, index }: KeyPath, networkId: number): string {
  assert(purpose !== 'change', 'the XRP Ledger has no change addresses')
  const account = deriveAddress(Buffer.from(publicKey).toString('hex').toUpperCase())
  if (purpose === 'reserve' && index > 0) return account
  return classicAddressToXAddress(account, purpose === 'reserve' ? RESERVE_TAG : index, networkId !== 0)
}

/** What the reserve has where everybody has a tag. */
export const RESERVE_TAG = 2 ** 32 - 1

/** SEP-5, m/44'/148'/0': the first account of every wallet. */
const STELLAR_PATH = [44, 148, 0]

/** m/44'/501'/i'/0', as wallets number accounts; the reserve has the next change index, which wallets leave alone. */
function solanaPath({ purpose, index }: KeyPath): readonly number[] {
  assert(purpose !== 'change', 'account chains have no change addresses')
  assert(
    Number.isInteger(index) && index >= 0 && index <= KEY_INDEX_MAX,
    `a key index is 0 to ${KEY_INDEX_MAX}`,
  )
  return [44, 501, index, purpose === 'reserve' ? 1 : 0]
}
