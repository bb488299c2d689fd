import type { AssetId } from '../domain/catalog/assets.ts'
import type { AddressFamily } from '../domain/catalog/networks.ts'
import type { OrderId } from '../domain/orders/identifiers.ts'
import type { SealedTerms } from '../domain/orders/seal.ts'
import type { Outcome } from '../domain/outcome.ts'
import type { Intent, KeyPath, OutflowKind, PayoutId, SignedTx } from '../domain/payouts/intent.ts'

/**
 * On whose word money leaves: where the order pays and in what, as sealed when the order was created (or when a
 * refund address was given). The signer recomputes the seal, so changing a row in the database cannot redirect a payout
 * or turn it into one of a dearer asset.
 */
export type Authority = SealedTerms & {
  readonly kind: OutflowKind
  /**
   * Which of our keys is paid: the deposit key that a sweep brings gas to, the change key that a filler on a coin chain
   * brings coins back to. Otherwise null.
   */
  readonly payeeKey: KeyPath | null
  /** Lowercase hex HMAC-SHA256 over `sealText` for this kind (domain/orders/seal.ts). */
  readonly seal: string
}

export type SignRejection = {
  readonly code:
    | 'seal_broken' // the destination is not what was sealed
    | 'not_the_destination' // the intent pays someone else
    | 'not_the_asset' // the intent pays in something else
    | 'limit_exceeded' // per payout, hour or day
    // This payout and attempt were signed before with another intent, an attempt does not exclude the earlier one, or a later
    // outflow of the order was signed.
    | 'conflict'
    | 'malformed'
  readonly message: string
}

/** The only code that sees a private key. In process by default; the same interface over a Unix socket. */
export type Signer = {
  /** Addresses `from … from+count-1`; public, derived from the keystore. */
  addresses(
    family: AddressFamily,
    purpose: KeyPath['purpose'],
    from: number,
    count: number,
  ): Promise<readonly string[]>
  /**
   * What the limits leave for payouts of an asset. Asked before anything is written down: a payout that is refused once it
   * has its nonce keeps all others of its account waiting.
   */
  room(asset: AssetId): Promise<Room>
  /**
   * The last attempt that it has signed of an outflow, 0 for none. Asked before one is drafted whose order has been signed for
   * before, and before one is given up, because the service may have forgotten what was signed. Rejects when it cannot say: that is no 0.
   */
  lastSigned(payoutId: PayoutId): Promise<number>
  /**
   * The number of the last outflow of an order that it has signed an attempt of, 0 for none: it signs nothing for one that came
   * before. Rejects when it cannot say.
   */
  lastOutflow(orderId: OrderId): Promise<number>
  /**
   * What it is reached over, null for nothing yet: the same object as long as the same process answers, and nobody else's answer
   * comes over it. Left out where it is in this process.
   */
  connection?(): object | null
  /** Builds, signs, stores, answers. The same payout and attempt again gives the same bytes, whatever happened between. */
  sign(intent: Intent, authority: Authority): Promise<Outcome<Signed, SignRejection>>
}

/**
 * `intent`: of a filler that was signed before in another way, at another fee say, what was signed. Only one that is written down as just
 * that may be sent: the service may have forgotten it, and others may have it.
 */
export type Signed = SignedTx & { readonly intent?: Intent }

/** In ledger units. */
export type Room = {
  /** The most that one payout may be. */
  readonly onePayout: bigint
  /** The most that all together may be that are signed from now on; null without limits over time. */
  readonly together: bigint | null
}

/** The signer's own record of what it signed; kept apart from the service's tables. */
export type SignedStore = {
  /** Every attempt signed for a payout so far, oldest first. */
  attempts(payoutId: string): Promise<readonly SignedRecord[]>
  /** The number of the last outflow of an order that has a record, 0 for none. */
  lastOutflow(orderId: OrderId): Promise<number>
  /**
   * Stores the record unless that payout and attempt has one already, checking inside the same transaction that
   * `limits` still hold and that no later outflow of its order has a record; answers what is stored afterwards, or why not. No
   * transaction has two records: of one that was signed under another name before, that record is answered.
   */
  insertOnce(record: SignedRecord, limits: readonly CheckedLimit[]): Promise<SignedRecord | NotStored>
  /** Units that count against the limit now. */
  spent(limit: CheckedLimit, nowMs: number): Promise<bigint>
}

/** `overtaken`: a later outflow of the same order was signed already, so that this one was given up. */
export type NotStored = 'limit_exceeded' | 'overtaken'

export type SignedRecord = {
  readonly payoutId: string
  readonly attempt: number
  readonly intent: Intent
  readonly asset: string
  /** Ledger units that leave us; 0 for a filler or sweep. */
  readonly units: bigint
  readonly tx: SignedTx
  readonly atMs: number
}

/**
 * At most `unitsMax` of `asset` in the window that ends now. Every payout counts once, however many attempts, where the
 * chain takes only one of them; on the other chains every attempt does.
 */
export type SpendLimit = { readonly asset: string; readonly windowMs: number; readonly unitsMax: bigint }

/** A limit, and whether the chain of its asset leaves it to us to keep attempts apart. */
export type CheckedLimit = SpendLimit & { readonly countsEveryAttempt: boolean }
