import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js'
import { Script } from '@scure/btc-signer'
import type { Coin } from './coins.ts'
import { scriptType } from './scripts.ts'
import { legacyHash, witnessHasher } from './sighash.ts'
import { type Decoded, hash160Hex, toHex } from './transaction.ts'

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'))

/**
 * Why a transaction may not spend these coins, in bitcoind's words (script/script_error.cpp); undefined: it may. What
 * cannot be verified here is refused.
 */
export function scriptProblem(hex: string, tx: Decoded, spent: readonly Coin[]): string | undefined {
  const hasher = witnessHasher(hex)
  for (const [index, coin] of spent.entries()) {
    const problem = inputProblem({ tx, hasher, spent, index, coin })
    if (problem === undefined) continue
    const { txid, vout } = tx.inputs[index] ?? {}
    return `${problem}), input ${index} of ${tx.txid} (wtxid ${tx.wtxid}), spending ${txid}:${vout}`
  }
  return undefined
}

type Spend = {
  readonly tx: Decoded
  readonly hasher: ReturnType<typeof witnessHasher>
  readonly spent: readonly Coin[]
  readonly index: number
  readonly coin: Coin
}

const NOT_EQUAL = 'Script failed an OP_EQUALVERIFY operation'
const MISMATCH = 'Witness program hash mismatch'
const FALSE = 'Script evaluated without error but finished with a false/empty top stack element'

function inputProblem(spend: Spend): string | undefined {
  const { tx, index, coin } = spend
  const { scriptSig = new Uint8Array(), witness = [] } = tx.inputs[index] ?? {}
  const type = scriptType(bytes(coin.script))
  if (type === 'pubkeyhash') {
    if (witness.length > 0) return 'Witness provided for non-witness script'
    return keyHashProblem(spend, scriptSig)
  }
  if (type === 'scripthash') return wrappedProblem(spend, scriptSig)
  if (type === 'witness_v0_keyhash' || type === 'witness_v1_taproot') {
    if (scriptSig.length > 0) return 'Witness requires empty scriptSig'
    return type === 'witness_v1_taproot' ? taprootProblem(spend) : witnessProblem(spend, coin.script)
  }
  return `this simulator cannot verify scripts of type ${type}`
}

/** https://github.com/bitcoin/bips/blob/master/bip-0143.mediawiki */
function witnessProblem({ tx, hasher, index, coin }: Spend, program: string): string | undefined {
  const [signature, key, ...more] = tx.inputs[index]?.witness ?? []
  if (signature === undefined || key === undefined || more.length > 0) return MISMATCH
  if (hash160Hex(key) !== program.slice(4)) return NOT_EQUAL
  if (key.length !== 33) return 'Using non-compressed keys in segwit'
  const code = bytes(`76a914${program.slice(4)}88ac`)
  return signatureProblem(signature, key, (type) => hasher.preimageWitnessV0(index, code, type, coin.sats))
}

function wrappedProblem(spend: Spend, scriptSig: Uint8Array): string | undefined {
  const redeem = scriptSig.subarray(1)
  if (scriptSig[0] !== redeem.length || scriptType(redeem) !== 'witness_v0_keyhash')
    return 'this simulator cannot verify a script hash of anything but a witness key hash'
  if (hash160Hex(redeem) !== spend.coin.script.slice(4, 44)) return FALSE
  return witnessProblem(spend, toHex(redeem))
}

function keyHashProblem({ tx, index, coin }: Spend, scriptSig: Uint8Array): string | undefined {
  const items = pushes(scriptSig)
  const [signature, key, ...more] = items
  if (signature === undefined || key === undefined) return 'Operation not valid with the current stack size'
  if (more.length > 0) return 'Stack size must be exactly one after execution'
  if (hash160Hex(key) !== coin.script.slice(6, 46)) return NOT_EQUAL
  const code = bytes(coin.script)
  return signatureProblem(signature, key, (type) => legacyHash(tx, index, code, type))
}

function pushes(script: Uint8Array): Uint8Array[] {
  try {
    return Script.decode(script).filter((item) => typeof item === 'object')
  } catch {
    return []
  }
}

function signatureProblem(
  signature: Uint8Array,
  key: Uint8Array,
  hashFor: (type: number) => Uint8Array,
): string | undefined {
  if (signature.length === 0) return FALSE
  const type = signature.at(-1) ?? 0
  const base = type & ~0x80
  if (base < 1 || base > 3) return 'Signature hash type missing or not understood'
  const der = signature.subarray(0, -1)
  try {
    const { s } = secp256k1.Signature.fromBytes(der, 'der')
    if (s > secp256k1.Point.Fn.ORDER / 2n) return 'Non-canonical signature: S value is unnecessarily high'
  } catch {
    return 'Non-canonical DER signature'
  }
  const isValid = orFalse(() => secp256k1.verify(der, hashFor(type), key, { prehash: false, format: 'der' }))
  return isValid ? undefined : 'Signature must be zero for failed CHECK(MULTI)SIG operation'
}

/** https://github.com/bitcoin/bips/blob/master/bip-0341.mediawiki, by the key alone. */
function taprootProblem({ tx, hasher, spent, index, coin }: Spend): string | undefined {
  const [signature, ...more] = tx.inputs[index]?.witness ?? []
  if (signature === undefined) return 'Witness program was passed an empty witness'
  if (more.length > 0) return 'this simulator cannot verify a taproot spend by script or with an annex'
  if (signature.length !== 64 && signature.length !== 65) return 'Invalid Schnorr signature size'
  const type = signature.length === 64 ? 0 : (signature[64] ?? 0)
  const isKnown = [0x01, 0x02, 0x03, 0x81, 0x82, 0x83].includes(type)
  if (signature.length === 65 && !isKnown) return 'Invalid Schnorr signature hash type'
  const scripts = spent.map(({ script }) => bytes(script))
  const amounts = spent.map(({ sats }) => sats)
  const isValid = orFalse(() => {
    const hash = hasher.preimageWitnessV1(index, scripts, type, amounts)
    return schnorr.verify(signature.subarray(0, 64), hash, bytes(coin.script.slice(4)))
  })
  return isValid ? undefined : 'Invalid Schnorr signature'
}

/** A key that is no point on the curve verifies nothing. */
function orFalse(verify: () => boolean): boolean {
  try {
    return verify()
  } catch {
    return false
  }
}
