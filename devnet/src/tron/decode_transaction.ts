import { secp256k1 } from '@noble/curves/secp256k1.js'
import { addressOfPublicKey, isAddress, sha256Hex } from './addresses.ts'
import {
  type Action,
  ANY_URL,
  contractNumbers,
  contractSchemas,
  type Raw,
  rawSchema,
  transactionSchema,
  typeOfNumber,
} from './messages.ts'
import { decodeMessage, encodeMessage, type Message, type Schema } from './protobuf.ts'

export type TronTransaction = {
  /** The hash of `rawHex`, which is what is signed, and under which everybody finds it. */
  readonly id: string
  readonly rawHex: string
  readonly signatures: readonly string[]
  /** A trouble: is charged and fails with this `contractRet`. */
  readonly failWith?: string
}

export type Decoded = { readonly raw: Raw; readonly action: Action; readonly permission: bigint }

export function transactionOf(rawHex: string, signatures: readonly string[]): TronTransaction {
  return { id: sha256Hex(rawHex), rawHex: rawHex.toLowerCase(), signatures }
}

export function fromWire(hex: string): TronTransaction {
  const { raw_data = '', signature = [] } = decodeMessage(transactionSchema, Buffer.from(hex, 'hex'))
  return transactionOf(raw_data, signature)
}

/** What bandwidth is counted by; the result that a block adds to it counts as 64 bytes. */
export function bandwidthOf({ rawHex, signatures }: TronTransaction): bigint {
  const message = { raw_data: rawHex, signature: signatures }
  return BigInt(encodeMessage(transactionSchema, message).length) + 64n
}

/** Throws on bytes that are no transaction of a kind that is run here. */
export function decodeRaw(rawHex: string): Decoded {
  const raw = decodeMessage(rawSchema, Buffer.from(rawHex, 'hex'))
  const [contract, ...others] = raw.contract ?? []
  if (contract === undefined || others.length > 0) throw new Error('contract size should be exactly 1')
  const type = typeOfNumber(contract.type ?? 0n)
  if (type === undefined) throw new Error(`contract type ${contract.type} is not run here`)
  if (contract.parameter?.type_url !== ANY_URL + type) throw new Error(`parameter is no ${type}`)
  const schema: Schema = contractSchemas[type]
  const value = decodeMessage(schema, Buffer.from(contract.parameter.value ?? '', 'hex'))
  return { raw, action: { type, ...value } as Action, permission: contract.Permission_id ?? 0n }
}

export function encodeRaw({ type, ...value }: Action, rest: Omit<Raw, 'contract'>): string {
  const schema: Schema = contractSchemas[type]
  const bytes = encodeMessage(schema, value as Message<Schema>)
  const parameter = { type_url: ANY_URL + type, value: Buffer.from(bytes).toString('hex') }
  const raw = { ...rest, contract: [{ type: contractNumbers[type], parameter }] }
  return Buffer.from(encodeMessage(rawSchema, raw)).toString('hex')
}

/** 65 bytes: r, s, and which of the possible keys it is, counted from 0 or from 27. */
export function sign(id: string, secretKey: Uint8Array): string {
  const signature = secp256k1.sign(Buffer.from(id, 'hex'), secretKey, { prehash: false, format: 'recovered' })
  const [recovery = 0, ...rs] = signature
  return Buffer.from([...rs, recovery + 27]).toString('hex')
}

/** undefined: it is the signature of nobody. */
export function signerOf(id: string, signature: string): string | undefined {
  const bytes = Buffer.from(signature, 'hex')
  const last = bytes[64] ?? 255
  try {
    const recovered = secp256k1.Signature.fromBytes(
      Uint8Array.from([last >= 27 ? last - 27 : last, ...bytes.subarray(0, 64)]),
      'recovered',
    )
    const address = addressOfPublicKey(recovered.recoverPublicKey(Buffer.from(id, 'hex')).toBytes(false))
    return isAddress(address) ? address : undefined
  } catch {
    return undefined
  }
}
