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
  /** Why one more secret of it could not be opened: whoever signs with that is right, and nobody can say so. Left out where all could. */
  readonly unopened?: Error
}

/** What authentication asks; answers from memory for a moment, so a revocation holds within two seconds. */
export type ApiKeys = {
  find(keyId: string): Promise<ApiKey | null>
  /** A request was proved to be of this key, which `find` gave: notes when, to the minute, without waiting for it. */
  noteUse(key: ApiKey): void
}
