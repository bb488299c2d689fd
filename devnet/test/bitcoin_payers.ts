import { randomBytes } from 'node:crypto'
import { p2pkh, p2sh, p2tr, p2wpkh, RawTx, Script, SigHash, Transaction } from '@scure/btc-signer'
import { pubECDSA, pubSchnorr, sha256x2, signECDSA } from '@scure/btc-signer/utils.js'
import type { Devnet, Rpc } from '../src/index.ts'

/** Regtest, as the field's library spells it. */
export const REGTEST = { bech32: 'bcrt', pubKeyHash: 0x6f, scriptHash: 0xc4, wif: 0xef }

export const keyKinds = ['legacy', 'wrapped segwit', 'segwit', 'taproot'] as const
export type KeyKind = (typeof keyKinds)[number]

export type Spendable = {
  readonly txid: string
  readonly index: number
  readonly sats: bigint
  /** What the library wants to know of it besides. */
  readonly known: object
  readonly key: Uint8Array
}
export type Paid = { readonly address?: string; readonly script?: Uint8Array; readonly sats: bigint }

/** Somebody with a key of the kind, who was paid. */
export async function paidOwner(devnet: Devnet, kind: KeyKind, sats: bigint): Promise<Spendable> {
  const key = Uint8Array.from(randomBytes(32))
  const payment = paymentTo(kind, key)
  const { txHash } = await devnet.send('BTC', 'BTC', payment.address ?? '', sats)
  await devnet.mine('BTC', 1)
  return coinOf(devnet.bitcoin.rpc, txHash, kind, key)
}

/** The output of a transaction that pays this key. */
export async function coinOf(rpc: Rpc, txid: string, kind: KeyKind, key: Uint8Array): Promise<Spendable> {
  const { address: _, ...payment } = paymentTo(kind, key)
  const raw = Uint8Array.from(Buffer.from(await rpc<string>('getrawtransaction', [txid]), 'hex'))
  const { outputs } = RawTx.decode(raw)
  const index = outputs.findIndex(({ script }) => Buffer.compare(script, payment.script) === 0)
  const sats = outputs[index]?.amount ?? 0n
  const utxo =
    kind === 'legacy' ? { nonWitnessUtxo: raw } : { witnessUtxo: { script: payment.script, amount: sats } }
  return { txid, index, sats, key, known: { ...payment, ...utxo } }
}

export function paymentTo(kind: KeyKind, key: Uint8Array) {
  if (kind === 'legacy') return p2pkh(pubECDSA(key), REGTEST)
  if (kind === 'taproot') return p2tr(pubSchnorr(key), undefined, REGTEST)
  const witness = p2wpkh(pubECDSA(key), REGTEST)
  return kind === 'segwit' ? witness : p2sh(witness, REGTEST)
}

/** Signed by the field's library. */
export function spend(
  coins: readonly Spendable[],
  outputs: readonly Paid[],
  more: { readonly lockTime?: number; readonly sequence?: number; readonly sighash?: SigHash } = {},
): { readonly hex: string; readonly txid: string; readonly vsize: number } {
  const { lockTime = 0, sequence = 0xffff_fffd, sighash } = more
  const tx = new Transaction({ lockTime, allowUnknownOutputs: true, allowLegacyWitnessUtxo: true })
  const signed = sighash === undefined ? {} : { sighashType: sighash }
  for (const { txid, index, known } of coins) tx.addInput({ txid, index, sequence, ...known, ...signed })
  for (const { address, script, sats } of outputs) {
    if (script !== undefined) tx.addOutput({ script, amount: sats })
    else tx.addOutputAddress(address ?? '', sats, REGTEST)
  }
  for (const [index, { key }] of coins.entries()) {
    tx.signIdx(key, index, sighash === undefined ? undefined : [sighash])
  }
  tx.finalize()
  return { hex: Buffer.from(tx.extract()).toString('hex'), txid: tx.id, vsize: tx.vsize }
}

/** The same signatures over another amount: well-formed, and of no worth. */
export function tamper(hex: string, more = -1n): string {
  const tx = RawTx.decode(Buffer.from(hex, 'hex'))
  const outputs = tx.outputs.map(({ script, amount }) => ({ script, amount: amount + more }))
  return Buffer.from(RawTx.encode({ ...tx, outputs })).toString('hex')
}

/**
 * A coin spent by somebody else's key, with a signature of that key over just what would be signed: all that is wrong is
 * that the coin is not theirs. Not for taproot, where the key is in the coin.
 */
export function forge(coin: Spendable, kind: Exclude<KeyKind, 'taproot'>, address: string): string {
  const thief = Uint8Array.from(randomBytes(32))
  const publicKey = pubECDSA(thief)
  const scriptOf = (key: Uint8Array) => p2pkh(pubECDSA(key)).script
  const tx = new Transaction()
  tx.addInput({ txid: coin.txid, index: coin.index, sequence: 0xffff_fffd })
  tx.addOutputAddress(address, coin.sats - 2_000n, REGTEST)
  const raw = RawTx.decode(tx.toBytes(true))
  const [input] = raw.inputs
  if (input === undefined) throw new Error('one input')
  const withScript = (script: Uint8Array, witnesses?: Uint8Array[][]) =>
    RawTx.encode({
      ...raw,
      inputs: [{ ...input, finalScriptSig: script }],
      segwitFlag: witnesses !== undefined,
      witnesses,
    })
  const sign = (hash: Uint8Array) => Uint8Array.from([...signECDSA(hash, thief), SigHash.ALL])
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
  if (kind === 'legacy') {
    const hash = sha256x2(withScript(scriptOf(coin.key)), Uint8Array.from([1, 0, 0, 0]))
    return hex(withScript(Script.encode([sign(hash), publicKey])))
  }
  // Wrapped, the thief may bring a program along; bare, the program is the coin's.
  const code = scriptOf(kind === 'segwit' ? coin.key : thief)
  const signature = sign(tx.preimageWitnessV0(0, code, SigHash.ALL, coin.sats))
  const script = kind === 'segwit' ? new Uint8Array() : Script.encode([p2wpkh(publicKey).script])
  return hex(withScript(script, [[signature, publicKey]]))
}

export function dataScript(bytes: number): Uint8Array {
  return Uint8Array.from([0x6a, 0x4c, bytes, ...randomBytes(bytes)])
}
