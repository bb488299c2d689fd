import type { KeyObject } from 'node:crypto'

/** read: look at orders; trade: create orders and choose emergency actions. */
export const scopes = ['read', 'trade'] as const
export type Scope = (typeof scopes)[number]

/** A key that may sign requests now. Two secrets live at once while one replaces the other. */
export type ApiKey = {
  readonly keyId: string
  readonly accountId: string
  readonly scopes: readonly Scope[]
  /** Addresses or CIDR ranges the key may be used from; empty means anywhere. */
  readonly ipAllow: readonly string[]
  /** KeyObjects, because an HMAC with one costs a fifth of one with a Buffer. */
  readonly secrets: readonly KeyObject[]
}

/** What authentication asks; answers from memory for a moment, so a revocation holds within two seconds. */
export type ApiKeys = {
  find(keyId: string): Promise<ApiKey | null>
}

/** The first answer to a POST, kept so that a retry gives it again (DESIGN 3, Retries). */
export type IdempotencyStore = {
  /**
   * Takes the slot for `accountId` + `slot` (the Idempotency-Key, or the signature when there is none).
   * `first`: the caller does the work and must finish or release. `replay`: the stored answer.
   * `conflict`: same slot, other body. `busy`: the first is still at work (answered 409-like as retry later).
   */
  begin(
    accountId: string,
    slot: string,
    bodyHash: string,
    keepMs: number,
  ): Promise<
    | { readonly kind: 'first' }
    | { readonly kind: 'replay'; readonly status: number; readonly body: string }
    | { readonly kind: 'conflict' }
    | { readonly kind: 'busy' }
  >
  finish(accountId: string, slot: string, status: number, body: string): Promise<void>
  release(accountId: string, slot: string): Promise<void>
}
