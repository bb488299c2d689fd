import { Transaction } from '@scure/btc-signer'
import { sha256x2 } from '@scure/btc-signer/utils.js'
import { type Decoded, encodeTransaction } from './transaction.ts'

export const SIGHASH = { all: 1, none: 2, single: 3, anyoneCanPay: 0x80 } as const

/** What the witness kinds of signatures sign: `preimageWitnessV0` (BIP-143) and `preimageWitnessV1` (BIP-341). */
export function witnessHasher(hex: string): Pick<Transaction, 'preimageWitnessV0' | 'preimageWitnessV1'> {
  return Transaction.fromRaw(Uint8Array.from(Buffer.from(hex, 'hex')), {
    allowUnknownInputs: true,
    allowUnknownOutputs: true,
    allowUnknownVersion: true,
    disableScriptCheck: true,
  })
}

/** What a legacy signature signs, which amounts are no part of: `SignatureHash` in script/interpreter.cpp. */
export function legacyHash(tx: Decoded, index: number, code: Uint8Array, type: number): Uint8Array {
  const kind = type & ~SIGHASH.anyoneCanPay
  const empty = new Uint8Array()
  // A number one, by a mistake that became a rule.
  if (kind === SIGHASH.single && index >= tx.outputs.length)
    return Uint8Array.from([1, ...new Uint8Array(31)])
  const inputs = tx.inputs.map((input, at) => ({
    ...input,
    witness: [],
    scriptSig: at === index ? code : empty,
    sequence: at !== index && kind !== SIGHASH.all ? 0 : input.sequence,
  }))
  const outputs = {
    [SIGHASH.all]: tx.outputs,
    [SIGHASH.none]: [],
    [SIGHASH.single]: tx.outputs
      .slice(0, index + 1)
      .map((output, at) => (at === index ? output : { sats: 2n ** 64n - 1n, script: empty })),
  }[kind]
  const isAlone = (type & SIGHASH.anyoneCanPay) !== 0
  const signed = encodeTransaction({
    ...tx,
    inputs: isAlone ? inputs.slice(index, index + 1) : inputs,
    outputs: outputs ?? tx.outputs,
  })
  return sha256x2(Buffer.concat([Buffer.from(signed, 'hex'), Buffer.from([type, 0, 0, 0])]))
}
