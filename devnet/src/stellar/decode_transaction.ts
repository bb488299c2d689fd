import {
  extractBaseAddress,
  FeeBumpTransaction,
  Keypair,
  type Transaction,
  TransactionBuilder,
} from '@stellar/stellar-sdk/base'

/** The name that networks of one machine go by; keys and hashes of other networks are worth nothing here. */
export const PASSPHRASE = 'Standalone Network ; February 2017'

export type StellarTransaction = {
  /** Its hash, under which everybody finds it. */
  readonly id: string
  /** XDR, in base64. */
  readonly envelope: string
  /** A trouble: charge the fee and fail with this code of an operation. */
  readonly failWith?: string
}

export type Decoded = Signed & {
  readonly transaction: Transaction
  /** There when somebody else wrapped the transaction up to pay its fee. */
  readonly bump?: Bump
}

export type Bump = Signed & {
  readonly envelope: FeeBumpTransaction
  /** The hash of what is wrapped up in it. */
  readonly innerId: string
}

type Signed = {
  /** The accounts whose keys signed it. */
  readonly signers: ReadonlySet<string>
  /** There is a signature by nobody who has to sign, or one too many. */
  readonly hasIdleSignature: boolean
}

/** Decoding and checking signatures takes milliseconds; a transaction runs several times before it is in a ledger. */
const decodedOf = new WeakMap<StellarTransaction, Decoded>()

/** Throws on bytes that are no transaction, or are spelt in another way than the only right one. */
export function readTransaction(envelope: string, passphrase: string): StellarTransaction {
  const decoded = decodeWith(envelope, passphrase)
  const outer = decoded.bump?.envelope ?? decoded.transaction
  if (outer.toEnvelope().toXdr('base64') !== envelope) throw new Error('not canonical')
  const tx = { id: hashOf(outer), envelope }
  decodedOf.set(tx, decoded)
  return tx
}

export function decode(tx: StellarTransaction): Decoded {
  const known = decodedOf.get(tx)
  if (known !== undefined) return known
  const decoded = decodeWith(tx.envelope, PASSPHRASE)
  decodedOf.set(tx, decoded)
  return decoded
}

function decodeWith(envelope: string, passphrase: string): Decoded {
  const outer = TransactionBuilder.fromXdr(envelope, passphrase)
  const transaction = outer instanceof FeeBumpTransaction ? outer.innerTransaction : outer
  const sources = transaction.operations.flatMap((operation) => operation.source ?? [])
  const decoded = { transaction, ...signaturesOf(transaction, [transaction.source, ...sources]) }
  if (!(outer instanceof FeeBumpTransaction)) return decoded
  const bump = {
    envelope: outer,
    innerId: hashOf(transaction),
    ...signaturesOf(outer, [outer.feeSource]),
  }
  return { ...decoded, bump }
}

type Envelope = Transaction | FeeBumpTransaction

function hashOf(envelope: Envelope): string {
  return Buffer.from(envelope.hash()).toString('hex')
}

function signaturesOf(envelope: Envelope, needed: readonly string[]): Signed {
  const accounts = [...new Set(needed.map(extractBaseAddress))]
  const signers = new Set<string>()
  let used = 0
  for (const { hint, signature } of envelope.signatures) {
    const signer = accounts.find((account) => {
      const key = Keypair.fromPublicKey(account)
      const isHinted = Buffer.from(key.signatureHint()).equals(hint.toBytes())
      return isHinted && !signers.has(account) && isVerified(key, envelope, signature.toBytes())
    })
    if (signer === undefined) continue
    signers.add(signer)
    used += 1
  }
  return { signers, hasIdleSignature: used < envelope.signatures.length }
}

function isVerified(key: Keypair, envelope: Envelope, signature: Uint8Array): boolean {
  try {
    return key.verify(envelope.hash(), signature)
  } catch {
    return false
  }
}
