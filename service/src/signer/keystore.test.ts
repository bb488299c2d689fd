import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mnemonicToSeedSync } from '@scure/bip39'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createKeystore, newMnemonic, openKeystore, SCRYPT_N } from './keystore.ts'

const mnemonic = `${'abandon '.repeat(11)}about`
const passphrase = 'correct horse'
const environment = 'sandbox'
let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cambist-keystore-'))
  path = join(folder, 'keystore.json')
})
afterEach(() => rmSync(folder, { recursive: true }))

function create(changes: Partial<Parameters<typeof createKeystore>[0]> = {}) {
  return createKeystore({ path, passphrase, mnemonic, environment, nowMs: 0, scryptN: 2, ...changes })
}

test('what was written opens with its passphrase, at the full work factor', async () => {
  expect(await create({ environment: 'production', scryptN: SCRYPT_N })).toEqual({
    ok: true,
    value: undefined,
  })
  expect(await openKeystore({ path, passphrase, environment: 'production' })).toEqual({
    ok: true,
    value: {
      environment: 'production',
      createdAt: '1970-01-01T00:00:00.000Z',
      seed: mnemonicToSeedSync(mnemonic),
    },
  })
})

test('only its owner can read the file, nothing else is left in the folder, and the words are not in it', async () => {
  await create()
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toEqual(['keystore.json'])
  expect(readFileSync(path, 'utf8')).not.toContain('abandon')
})

/** Some network and FUSE file systems cannot. Whoever makes keys is shown their words when the file is there. */
test('where a folder cannot be written to disk no keystore is left behind whose words nobody was shown', async () => {
  const handle = await open(folder, 'r')
  const handles: FileHandle = Object.getPrototypeOf(handle)
  await handle.close()
  const { sync } = handles
  const cannot = vi.spyOn(handles, 'sync').mockImplementation(async function (this: FileHandle) {
    if ((await this.stat()).isDirectory()) throw new Error('EINVAL: invalid argument, fsync')
    return sync.call(this)
  })
  try {
    await expect(create()).rejects.toThrow('EINVAL')
    expect(readdirSync(folder)).toEqual([])
  } finally {
    cannot.mockRestore()
  }
  expect(await create()).toMatchObject({ ok: true })
})

test('an existing file is never overwritten', async () => {
  writeFileSync(path, 'precious')
  expect(await create()).toMatchObject({ ok: false, rejection: { code: 'keystore_exists' } })
  expect(readFileSync(path, 'utf8')).toBe('precious')
  expect(readdirSync(folder)).toEqual(['keystore.json'])
})

test('of ten that create at once exactly one does', async () => {
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => create({ mnemonic: newMnemonic() })))
  expect(outcomes.filter((outcome) => outcome.ok)).toHaveLength(1)
  expect(await openKeystore({ path, passphrase, environment })).toMatchObject({ ok: true })
})

test('another passphrase, environment or place is refused by name', async () => {
  expect(await openKeystore({ path, passphrase, environment })).toMatchObject({
    rejection: { code: 'keystore_missing' },
  })
  await create()
  expect(await openKeystore({ path, passphrase: 'wrong', environment })).toMatchObject({
    rejection: { code: 'wrong_passphrase' },
  })
  expect(await openKeystore({ path, passphrase, environment: 'production' })).toMatchObject({
    rejection: { code: 'wrong_environment' },
  })
})

test('the same passphrase typed on another keyboard is the same', async () => {
  await create({ passphrase: 'caf\u00e9' })
  expect(await openKeystore({ path, passphrase: 'cafe\u0301', environment })).toMatchObject({ ok: true })
})

test('any byte changed, cut or added is seen', async () => {
  await create()
  const original = readFileSync(path)
  const damaged = [...original.keys()].flatMap((at) => {
    const flipped = Buffer.from(original)
    flipped[at] = (original[at] ?? 0) ^ (1 << (at % 8))
    return [flipped, original.subarray(0, at)]
  })
  damaged.push(Buffer.concat([original, Buffer.from('\n')]))
  for (const bytes of damaged) {
    writeFileSync(path, bytes)
    expect(await openKeystore({ path, passphrase, environment })).toMatchObject({
      ok: false,
      rejection: { code: 'keystore_changed' },
    })
  }
  writeFileSync(path, original)
  expect(await openKeystore({ path, passphrase, environment })).toMatchObject({ ok: true })
})

/** Someone who edits and knows the format makes the checksum fit; the header is authenticated all the same. */
async function edit(change: (text: string) => string) {
  const { createHash } = await import('node:crypto')
  const { checksum: _, ...sealed } = JSON.parse(change(readFileSync(path, 'utf8')))
  const checksum = createHash('sha256').update(JSON.stringify(sealed)).digest('hex')
  writeFileSync(path, `${JSON.stringify({ ...sealed, checksum }, null, 2)}\n`)
}

test('an edit with a fitting checksum is seen, above all one of the environment', async () => {
  await create()
  await edit((text) => text)
  expect(await openKeystore({ path, passphrase, environment })).toMatchObject({ ok: true })

  await edit((text) => text.replace('1970', '1980'))
  expect(await openKeystore({ path, passphrase, environment })).toMatchObject({
    rejection: { code: 'keystore_changed' },
  })
  await edit((text) => text.replace('1980', '1970').replace('"sandbox"', '"production"'))
  expect(await openKeystore({ path, passphrase, environment: 'production' })).toMatchObject({
    rejection: { code: 'keystore_changed' },
  })
})

test('sandbox keys relabelled as production are refused at the full work factor too', async () => {
  await create({ scryptN: SCRYPT_N })
  await edit((text) => text.replace('"sandbox"', '"production"'))
  expect(await openKeystore({ path, passphrase, environment: 'production' })).toMatchObject({
    rejection: { code: 'keystore_changed' },
  })
})

test('a header that asks for all our memory is refused before any of it is used', async () => {
  await create()
  await edit((text) => text.replace('"n": 2', '"n": 1073741824'))
  expect(await openKeystore({ path, passphrase, environment })).toMatchObject({
    rejection: { code: 'keystore_changed' },
  })
})

test('weak production keystores, empty passphrases and words that are none are not written', async () => {
  await expect(create({ environment: 'production' })).rejects.toThrow('at least')
  await expect(create({ passphrase: '' })).rejects.toThrow('passphrase')
  expect(await create({ mnemonic: 'abandon '.repeat(12).trim() })).toMatchObject({
    rejection: { code: 'mnemonic_malformed' },
  })
  expect(readdirSync(folder)).toEqual([])
})

test('a file that cannot be read is an error, not a missing file', async () => {
  await expect(openKeystore({ path: folder, passphrase, environment })).rejects.toThrow('EISDIR')
})

test('new words are twenty-four and never the same', () => {
  expect(newMnemonic().split(' ')).toHaveLength(24)
  expect(newMnemonic()).not.toBe(newMnemonic())
})
