import { RawOldTx, RawTx } from '@scure/btc-signer/script.js'
import { hash160, sha256x2 } from '@scure/btc-signer/utils.js'

/** As it came over the wire. */
export type BitcoinTx = { readonly id: string; readonly hex: string; readonly timeMs: number }

export type Input = {
  readonly txid: string
  readonly vout: number
  readonly scriptSig: Uint8Array
  readonly sequence: number
  readonly witness: readonly Uint8Array[]
}
export type Output = { readonly sats: bigint; readonly script: Uint8Array }

export type Decoded = {
  readonly txid: string
  readonly wtxid: string
  readonly version: number
  readonly lockTime: number
  readonly inputs: readonly Input[]
  readonly outputs: readonly Output[]
  readonly size: number
  readonly weight: number
  readonly vsize: number
}

export const NULL_TXID = '0'.repeat(64)

/** https://github.com/bitcoin/bips/blob/master/bip-0144.mediawiki. Throws on anything but one whole transaction. */
export function decodeTransaction(hex: string): Decoded {
  if (!/^([0-9a-f]{2})+$/i.test(hex)) throw new Error('no hexadecimal bytes')
  const bytes = Buffer.from(hex, 'hex')
  const raw = decodeRaw(bytes)
  const witnesses = raw.witnesses ?? []
  if (raw.segwitFlag && witnesses.every((items) => items.length === 0))
    throw new Error('superfluous witness record')
  const stripped = RawOldTx.encode(raw)
  const weight = stripped.length * 3 + bytes.length
  return {
    txid: displayHash(sha256x2(stripped)),
    wtxid: displayHash(sha256x2(bytes)),
    version: raw.version,
    lockTime: raw.lockTime,
    inputs: raw.inputs.map(({ txid, index, finalScriptSig, sequence }, at) => ({
      txid: toHex(txid),
      vout: index,
      scriptSig: finalScriptSig,
      sequence,
      witness: witnesses[at] ?? [],
    })),
    outputs: raw.outputs.map(({ amount, script }) => ({ sats: amount, script })),
    size: bytes.length,
    weight,
    vsize: Math.ceil(weight / 4),
  }
}

/** A transaction without inputs looks like one with a witness, until that reading fails. */
function decodeRaw(bytes: Uint8Array) {
  try {
    return RawTx.decode(bytes)
  } catch {
    return { ...RawOldTx.decode(bytes), segwitFlag: false, witnesses: undefined }
  }
}

export function encodeTransaction({
  version,
  lockTime,
  inputs,
  outputs,
}: Pick<Decoded, 'version' | 'lockTime' | 'inputs' | 'outputs'>): string {
  const raw = {
    version,
    lockTime,
    inputs: inputs.map(({ txid, vout, scriptSig, sequence }) => ({
      txid: Buffer.from(txid, 'hex'),
      index: vout,
      finalScriptSig: Uint8Array.from(scriptSig),
      sequence,
    })),
    outputs: outputs.map(({ sats, script }) => ({ amount: sats, script: Uint8Array.from(script) })),
  }
  const witnesses = inputs.map(({ witness }) => witness.map((item) => Uint8Array.from(item)))
  const hasWitness = witnesses.some((items) => items.length > 0)
  return toHex(hasWitness ? RawTx.encode({ ...raw, segwitFlag: true, witnesses }) : RawOldTx.encode(raw))
}

const decodedTxs = new WeakMap<BitcoinTx, Decoded>()

export function decodedOf(tx: BitcoinTx): Decoded {
  const known = decodedTxs.get(tx)
  if (known !== undefined) return known
  const decoded = decodeTransaction(tx.hex)
  decodedTxs.set(tx, decoded)
  return decoded
}

export function isCoinbase({ inputs }: Decoded): boolean {
  const [only] = inputs
  return inputs.length === 1 && only?.txid === NULL_TXID && only.vout === 0xffff_ffff
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** Hashes are shown last byte first. */
export function displayHash(bytes: Uint8Array): string {
  return Buffer.from(bytes).reverse().toString('hex')
}

export function hash160Hex(bytes: Uint8Array): string {
  return toHex(hash160(bytes))
}
