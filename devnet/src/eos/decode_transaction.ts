import { createHash } from 'node:crypto'
import { inflateSync } from 'node:zlib'
import { Checksum256, Serializer, Signature, Transaction } from '@wharfkit/antelope'
import { Refusal } from './refusal.ts'

export type PermissionLevel = { readonly actor: string; readonly permission: string }

export type Action = {
  readonly account: string
  readonly name: string
  readonly authorization: readonly PermissionLevel[]
  /** Hex. */
  readonly data: string
}

export type EosTransaction = {
  /** The SHA-256 of its packed form, which leaves the signatures out. */
  readonly id: string
  /** Hex, not compressed. */
  readonly packed: string
  readonly packedContextFreeData: string
  readonly signatures: readonly string[]
  /** Whoever signed: recovered from the signatures, once. */
  readonly signedBy: readonly string[]
  readonly expirationMs: number
  readonly refBlockNum: number
  readonly refBlockPrefix: number
  readonly delaySeconds: number
  readonly actions: readonly Action[]
  /** A delayed transaction is executed when this is over, and its expiration no longer matters. */
  readonly notBeforeMs?: number
  /** A trouble: it gets into its block and does nothing. */
  readonly failsHard?: true
}

/** What wharfkit and eosjs send: https://docs.antelope.io/docs/latest/api-reference */
export type Packed = {
  readonly signatures?: unknown
  readonly compression?: unknown
  readonly packed_context_free_data?: unknown
  readonly packed_trx?: unknown
}

const NOTHING = '00'.repeat(32)

/** Throws a Refusal when the bytes are no transaction, or a signature is none. */
export function decodeTransaction(given: Packed, chainId: string): EosTransaction {
  const isCompressed = [1, '1', 'zlib'].includes(given.compression as string)
  const packed = unpack(given.packed_trx, isCompressed)
  const packedContextFreeData = unpack(given.packed_context_free_data, isCompressed)
  const transaction = read(packed)
  const signatures = (Array.isArray(given.signatures) ? given.signatures : []).map(String)
  if (transaction.context_free_actions.length > 0)
    throw new Refusal('transaction_exception', 'context free actions are left out of this simulator')
  return {
    id: sha256(packed),
    packed,
    packedContextFreeData,
    signatures,
    signedBy: signatures.map((signature) =>
      recover(signature, signingDigest(chainId, packed, packedContextFreeData)),
    ),
    expirationMs: transaction.expiration.toMilliseconds(),
    refBlockNum: transaction.ref_block_num.toNumber(),
    refBlockPrefix: transaction.ref_block_prefix.toNumber(),
    delaySeconds: transaction.delay_sec.toNumber(),
    actions: actionsOf(transaction),
  }
}

export function actionsOf({ actions }: Transaction): Action[] {
  return actions.map(({ account, name, authorization, data }) => ({
    account: String(account),
    name: String(name),
    authorization: authorization.map(({ actor, permission }) => ({
      actor: String(actor),
      permission: String(permission),
    })),
    data: data.hexString,
  }))
}

/** Of no context free data at all, 32 zero bytes are signed. */
function signingDigest(chainId: string, packed: string, contextFree: string): string {
  const isEmpty = contextFree === '' || contextFree === '00'
  return sha256(chainId + packed + (isEmpty ? NOTHING : sha256(contextFree)))
}

function unpack(given: unknown, isCompressed: boolean): string {
  const hex = typeof given === 'string' ? given.toLowerCase() : ''
  if (!isCompressed || hex === '') return hex
  try {
    return inflateSync(Buffer.from(hex, 'hex')).toString('hex')
  } catch {
    throw new Refusal('packed_transaction_type_exception', 'Invalid packed transaction')
  }
}

function read(packed: string): Transaction {
  try {
    const transaction = Serializer.decode({ data: packed, type: Transaction })
    const whole = Serializer.encode({ object: transaction }).hexString
    if (whole === packed) return transaction
  } catch {}
  throw new Refusal('packed_transaction_type_exception', 'Invalid packed transaction')
}

function recover(signature: string, digest: string): string {
  try {
    return String(Signature.from(signature).recoverDigest(Checksum256.from(digest)))
  } catch (error) {
    throw new Refusal('unspecified', `unable to reconstruct public key from signature: ${error}`)
  }
}

/** Of bytes in hex, in hex. */
export function sha256(hex: string): string {
  return createHash('sha256').update(Buffer.from(hex, 'hex')).digest('hex')
}
