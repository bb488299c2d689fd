import { createHash, randomBytes } from 'node:crypto'

/** 256 random bits, as 43 letters that stand in a link and in a cookie as they are. */
export function makeToken(): string {
  return randomBytes(32).toString('base64url')
}

export function isToken(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text)
}

/** What is kept of a token: it has too many bits to be found from its hash, so the hash needs no salt and no cost. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
