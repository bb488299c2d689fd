import { randomBytes } from 'node:crypto'
import { p2pkh, p2sh, p2tr, p2wpkh, Script } from '@scure/btc-signer'
import { pubECDSA, pubSchnorr, signECDSA, signSchnorr, taprootTweakPrivKey } from '@scure/btc-signer/utils.js'
import { openChainFile } from '../simulated/chain_file.ts'
import type { Coin } from './coins.ts'
import { addressOfScript } from './scripts.ts'
import { legacyHash, SIGHASH, witnessHasher } from './sighash.ts'
import { type Decoded, decodeTransaction, encodeTransaction, type Input, toHex } from './transaction.ts'

/** In bitcoind's words. */
export const addressTypes = ['legacy', 'p2sh-segwit', 'bech32', 'bech32m'] as const
export type AddressType = (typeof addressTypes)[number]
type Key = { readonly type: AddressType; readonly secret: string }

/** The keys that the faucet spends with. Nobody's money: they lie in a file beside the chain. */
export type Wallet = {
  newAddress(type: AddressType): string
  readonly changeScript: Uint8Array
  typeOf(script: string): AddressType | undefined
  /** Signs what it has the keys of; `coins` in the order of the inputs. */
  sign(
    tx: Decoded,
    coins: readonly (Coin | undefined)[],
  ): { readonly hex: string; readonly complete: boolean }
  close(): void
}

export function openWallet(path: string): Wallet {
  const file = openChainFile<Key>(path)
  const keys = new Map<string, Key>()
  const add = (key: Key) => {
    const script = scriptOf(key)
    keys.set(toHex(script), key)
    return script
  }
  const make = (type: AddressType) => {
    const key = { type, secret: randomBytes(32).toString('hex') }
    file.append(key)
    return add(key)
  }
  const [first] = file.lines.map(add)
  const changeScript = first ?? make('bech32')
  return {
    changeScript,
    newAddress: (type) => addressOfScript(make(type)) ?? '',
    typeOf: (script) => keys.get(script)?.type,
    sign: (tx, coins) => sign(keys, tx, coins),
    close: file.close,
  }
}

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'))

function scriptOf({ type, secret }: Key): Uint8Array {
  const key = bytes(secret)
  if (type === 'legacy') return p2pkh(pubECDSA(key)).script
  if (type === 'bech32m') return p2tr(pubSchnorr(key)).script
  const witness = p2wpkh(pubECDSA(key))
  return type === 'bech32' ? witness.script : p2sh(witness).script
}

function sign(keys: ReadonlyMap<string, Key>, tx: Decoded, coins: readonly (Coin | undefined)[]) {
  const hasher = witnessHasher(encodeTransaction(tx))
  let complete = true
  const inputs = tx.inputs.map((input, index): Input => {
    const coin = coins[index]
    const key = coin && keys.get(coin.script)
    const isDone = input.witness.length > 0 || input.scriptSig.length > 0
    if (key !== undefined) return { ...input, ...signatures(key, tx, hasher, index, coins) }
    complete &&= isDone
    return input
  })
  return { hex: encodeTransaction({ ...tx, inputs }), complete }
}

function signatures(
  { type, secret }: Key,
  tx: Decoded,
  hasher: ReturnType<typeof witnessHasher>,
  index: number,
  coins: readonly (Coin | undefined)[],
): Pick<Input, 'scriptSig' | 'witness'> {
  const key = bytes(secret)
  const none = new Uint8Array()
  if (type === 'bech32m') {
    const scripts = coins.map((coin) => bytes(coin?.script ?? ''))
    const amounts = coins.map((coin) => coin?.sats ?? 0n)
    const hash = hasher.preimageWitnessV1(index, scripts, 0, amounts)
    return { scriptSig: none, witness: [signSchnorr(hash, taprootTweakPrivKey(key))] }
  }
  const publicKey = pubECDSA(key)
  const ecdsa = (hash: Uint8Array) => Uint8Array.from([...signECDSA(hash, key), SIGHASH.all])
  const { script: code } = p2pkh(publicKey)
  if (type === 'legacy') {
    const hash = legacyHash(tx, index, code, SIGHASH.all)
    return { scriptSig: Script.encode([ecdsa(hash), publicKey]), witness: [] }
  }
  const hash = hasher.preimageWitnessV0(index, code, SIGHASH.all, coins[index]?.sats ?? 0n)
  const scriptSig = type === 'bech32' ? none : Script.encode([p2wpkh(publicKey).script])
  return { scriptSig, witness: [ecdsa(hash), publicKey] }
}

/** Without what it was signed with. */
export function unsigned(hex: string): Decoded {
  const tx = decodeTransaction(hex)
  return { ...tx, inputs: tx.inputs.map((input) => ({ ...input, scriptSig: new Uint8Array(), witness: [] })) }
}
