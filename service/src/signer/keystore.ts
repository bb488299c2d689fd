import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  randomBytes,
  scrypt,
  timingSafeEqual,
} from 'node:crypto'
import { link, open, readFile, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { generateMnemonic, mnemonicToSeedWebcrypto, validateMnemonic } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { assert } from '../domain/assert.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import type { InstantMs } from '../domain/time.ts'

/** A sandbox's keys never open in production, nor the other way round. */
export type KeystoreEnvironment = 'sandbox' | 'production'

export type KeystoreRejection = {
  readonly code:
    | 'mnemonic_malformed'
    | 'keystore_exists'
    | 'keystore_missing'
    | 'keystore_changed' // damaged, or edited by someone
    | 'wrong_passphrase'
    | 'wrong_environment'
  readonly message: string
}

export type Keystore = {
  readonly environment: KeystoreEnvironment
  readonly createdAt: string
  /** The BIP-39 seed, 64 bytes. */
  readonly seed: Uint8Array
}

/** scrypt's work factor for real keys: about 0.4 s and 128 MB a guess. */
export const SCRYPT_N = 2 ** 17
/** Bounds what a file can make us allocate: 512 MB. */
const SCRYPT_N_MAX = 2 ** 19
const VERSION = 1

type Header = {
  readonly version: number
  readonly environment: KeystoreEnvironment
  readonly createdAt: string
  readonly kdf: {
    readonly name: string
    readonly n: number
    readonly r: number
    readonly p: number
    readonly salt: string
  }
  readonly cipher: { readonly name: string; readonly nonce: string }
}

type Sealed = {
  readonly header: Header
  /** Tells a wrong passphrase from a changed file; no easier to guess against than the ciphertext itself. */
  readonly passphraseCheck: string
  readonly ciphertext: string
  readonly tag: string
}

/** Twenty-four English words (BIP-39), from the operating system's randomness. */
export function newMnemonic(): string {
  return generateMnemonic(wordlist, 256)
}

/**
 * Writes the words, encrypted, to a new file that only its owner can read. The file appears whole or not at all,
 * and an existing one is never replaced: it may be the only key to real money.
 */
export async function createKeystore(options: {
  readonly path: string
  readonly passphrase: string
  readonly mnemonic: string
  readonly environment: KeystoreEnvironment
  readonly nowMs: InstantMs
  /** Less work than SCRYPT_N, for tests and sandboxes only. */
  readonly scryptN?: number
}): Promise<Outcome<void, KeystoreRejection>> {
  const { passphrase, mnemonic, environment, nowMs, scryptN = SCRYPT_N } = options
  if (!validateMnemonic(mnemonic, wordlist)) {
    const message = 'these are not the words of a seed (BIP-39): one is misspelt, missing or out of its place'
    return refuse({ code: 'mnemonic_malformed', message })
  }
  assert(passphrase.length > 0, 'a keystore has a passphrase')
  assert(
    environment === 'sandbox' || scryptN >= SCRYPT_N,
    `a production keystore has scrypt N of at least ${SCRYPT_N}`,
  )
  const header: Header = {
    version: VERSION,
    environment,
    createdAt: new Date(nowMs).toISOString(),
    kdf: { name: 'scrypt', n: scryptN, r: 8, p: 1, salt: randomBytes(32).toString('hex') },
    cipher: { name: 'aes-256-gcm', nonce: randomBytes(12).toString('hex') },
  }
  const keys = await stretch(passphrase, header)
  const cipher = createCipheriv('aes-256-gcm', keys.encryption, Buffer.from(header.cipher.nonce, 'hex'))
  cipher.setAAD(Buffer.from(JSON.stringify(header)))
  const ciphertext = Buffer.concat([cipher.update(mnemonic, 'utf8'), cipher.final()])
  const text = fileText({
    header,
    passphraseCheck: keys.check.toString('hex'),
    ciphertext: ciphertext.toString('hex'),
    tag: cipher.getAuthTag().toString('hex'),
  })
  return (await writeNew(options.path, text))
    ? accept(undefined)
    : refuse({ code: 'keystore_exists', message: `${options.path} exists and is not overwritten` })
}

/** Decrypts the file; every refusal says which of the possible troubles it is. */
export async function openKeystore(options: {
  readonly path: string
  readonly passphrase: string
  readonly environment: KeystoreEnvironment
}): Promise<Outcome<Keystore, KeystoreRejection>> {
  const { path, passphrase, environment } = options
  const changed = refuse<KeystoreRejection>({
    code: 'keystore_changed',
    message: `${path} is damaged or was changed since it was written; restore it from a backup`,
  })
  const text = await readIfThere(path)
  if (text === null) return refuse({ code: 'keystore_missing', message: `${path} does not exist` })
  const sealed = parseFile(text)
  if (sealed === null) return changed
  const { header } = sealed
  if (header.environment !== environment) {
    const message = `${path} holds ${header.environment} keys, and this is ${environment}`
    return refuse({ code: 'wrong_environment', message })
  }
  if (environment === 'production' && header.kdf.n < SCRYPT_N) return changed
  const keys = await stretch(passphrase, header)
  if (!timingSafeEqual(keys.check, Buffer.from(sealed.passphraseCheck, 'hex'))) {
    return refuse({ code: 'wrong_passphrase', message: `the passphrase does not open ${path}` })
  }
  const mnemonic = decrypt(sealed, keys.encryption)
  if (mnemonic === null) return changed
  return accept({ environment, createdAt: header.createdAt, seed: await mnemonicToSeedWebcrypto(mnemonic) })
}

function decrypt(sealed: Sealed, key: Buffer): string | null {
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(sealed.header.cipher.nonce, 'hex'))
  decipher.setAAD(Buffer.from(JSON.stringify(sealed.header)))
  decipher.setAuthTag(Buffer.from(sealed.tag, 'hex'))
  try {
    return decipher.update(sealed.ciphertext, 'hex', 'utf8') + decipher.final('utf8')
  } catch {
    return null // the authentication tag does not match
  }
}

/** One key to encrypt with and, independent of it, a value that shows whether the passphrase is the right one. */
async function stretch(passphrase: string, header: Header): Promise<{ encryption: Buffer; check: Buffer }> {
  const { n, r, p, salt } = header.kdf
  const options = { N: n, r, p, maxmem: 256 * n * r + 2 ** 20 }
  const bytes = await scryptAsync(passphrase.normalize('NFKC'), Buffer.from(salt, 'hex'), 64, options)
  const check = createHmac('sha256', bytes.subarray(32)).update('cambist-keystore-passphrase').digest()
  return { encryption: bytes.subarray(0, 32), check }
}

const scryptAsync: (
  password: string,
  salt: Buffer,
  length: number,
  options: { N: number; r: number; p: number; maxmem: number },
) => Promise<Buffer> = promisify(scrypt)

/** The checksum tells damage from a wrong passphrase; the tag, not the checksum, keeps people from editing. */
function fileText(sealed: Sealed): string {
  const checksum = createHash('sha256').update(JSON.stringify(sealed)).digest('hex')
  return `${JSON.stringify({ ...sealed, checksum }, null, 2)}\n`
}

/** Null unless the text is, to the byte, what `fileText` writes. */
function parseFile(text: string): Sealed | null {
  let file: unknown
  try {
    file = JSON.parse(text)
  } catch {
    return null
  }
  const sealed = readSealed(file)
  return sealed !== null && fileText(sealed) === text ? sealed : null
}

function readSealed(file: unknown): Sealed | null {
  const header = field(file, 'header')
  const kdf = field(header, 'kdf')
  const cipher = field(header, 'cipher')
  const environment = field(header, 'environment')
  const createdAt = field(header, 'createdAt')
  const n = field(kdf, 'n')
  if (environment !== 'sandbox' && environment !== 'production') return null
  if (typeof createdAt !== 'string' || typeof n !== 'number') return null
  if (n < 2 || n > SCRYPT_N_MAX || !Number.isInteger(Math.log2(n))) return null
  const salt = hex(field(kdf, 'salt'), 32)
  const nonce = hex(field(cipher, 'nonce'), 12)
  const passphraseCheck = hex(field(file, 'passphraseCheck'), 32)
  const tag = hex(field(file, 'tag'), 16)
  const ciphertext = hex(field(file, 'ciphertext'))
  if (salt === null || nonce === null || passphraseCheck === null || tag === null || ciphertext === null)
    return null
  return {
    header: {
      version: VERSION,
      environment,
      createdAt,
      kdf: { name: 'scrypt', n, r: 8, p: 1, salt },
      cipher: { name: 'aes-256-gcm', nonce },
    },
    passphraseCheck,
    ciphertext,
    tag,
  }
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}

function hex(value: unknown, bytes?: number): string | null {
  if (typeof value !== 'string' || !/^(?:[0-9a-f]{2}){1,1024}$/.test(value)) return null
  return bytes === undefined || value.length === bytes * 2 ? value : null
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null
    throw error
  }
}

/** False when the file was there already. A hard link, unlike a rename, refuses to replace. */
async function writeNew(path: string, text: string): Promise<boolean> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
    await link(temporary, path)
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false
    throw error
  } finally {
    await file.close()
    await unlink(temporary)
  }
  try {
    await syncFolder(dirname(path))
  } catch (error) {
    await unlink(path)
    throw error
  }
  return true
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
