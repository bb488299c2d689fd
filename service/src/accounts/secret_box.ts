import { createCipheriv, createDecipheriv, createHmac, type KeyObject, randomBytes } from 'node:crypto'
import { assert } from '../domain/assert.ts'

/**
 * Encrypts small secrets for the database. `context` says what the secret belongs to (a key id): it is
 * authenticated and not stored, so a sealed value copied to another row does not open there.
 */
export type SecretBox = {
  seal(plain: string, context: string): Buffer
  /** Throws when the key is not ours any more, the context is another or a bit was changed. */
  open(sealed: Buffer, context: string): string
  /** Whether it opens what was sealed with the key of this id (16 hex digits). */
  hasKey(keyId: string): boolean
}

/*
 * version (1) | key id (8) | nonce (12) | AES-256-GCM ciphertext | tag (16)
 * Authenticated besides: everything before the nonce, and the context.
 */
const VERSION = 1
const HEADER_BYTES = 9
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** `keys`: the first encrypts, all decrypt; a new key goes to the front and the old one stays behind it. */
export function createSecretBox(keys: readonly KeyObject[]): SecretBox {
  const [current] = keys
  assert(current !== undefined, 'a secret box has a key')
  assert(
    keys.every((key) => key.symmetricKeySize === 32),
    'AES-256 keys have 32 bytes',
  )
  const byId = new Map(keys.map((key) => [keyIdOf(key).toString('hex'), key]))
  return {
    seal: (plain, context) => {
      const header = Buffer.concat([Buffer.from([VERSION]), keyIdOf(current)])
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', current, nonce)
      cipher.setAAD(associatedData(header, context))
      return Buffer.concat([header, nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
    },
    open: (sealed, context) => {
      if (sealed.length < HEADER_BYTES + NONCE_BYTES + TAG_BYTES || sealed[0] !== VERSION) {
        throw new Error('this is not a sealed secret')
      }
      const header = sealed.subarray(0, HEADER_BYTES)
      const keyId = header.subarray(1).toString('hex')
      const key = byId.get(keyId)
      if (key === undefined)
        throw new Error(
          `the secret was sealed with account key ${keyId}, which is not configured: put it back into CAMBIST_ACCOUNT_KEY_FILE, below the first line`,
        )
      const bodyAt = HEADER_BYTES + NONCE_BYTES
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(HEADER_BYTES, bodyAt), {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(associatedData(header, context))
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
      return Buffer.concat([decipher.update(sealed.subarray(bodyAt, -TAG_BYTES)), decipher.final()]).toString(
        'utf8',
      )
    },
    hasKey: (keyId) => byId.has(keyId),
  }
}

/** Names a key without telling anything about it. */
function keyIdOf(key: KeyObject): Buffer {
  return createHmac('sha256', key)
    .update('cambist-secret-box-key-id')
    .digest()
    .subarray(0, HEADER_BYTES - 1)
}

function associatedData(header: Buffer, context: string): Buffer {
  return Buffer.concat([header, Buffer.from(context, 'utf8')])
}
