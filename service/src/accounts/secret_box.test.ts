import { createSecretKey, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createSecretBox } from './secret_box.ts'

const makeKey = () => createSecretKey(randomBytes(32))

test('what is sealed opens again, and never looks the same twice', () => {
  const box = createSecretBox([makeKey()])
  for (const plain of ['', 'a secret', 'ключ 🔑'])
    expect(box.open(box.seal(plain, 'ck_1'), 'ck_1')).toBe(plain)
  expect(box.seal('same', 'ck_1').equals(box.seal('same', 'ck_1'))).toBe(false)
  expect(box.seal('canary', 'ck_1').includes('canary')).toBe(false)
})

test('a changed bit anywhere, a cut, or another context does not open', () => {
  const box = createSecretBox([makeKey()])
  const sealed = box.seal('a secret', 'ck_1')
  for (let index = 0; index < sealed.length; index += 1) {
    const changed = Buffer.from(sealed)
    changed[index] = (changed[index] ?? 0) ^ 1
    expect(() => box.open(changed, 'ck_1'), `byte ${index}`).toThrow()
  }
  for (let length = 0; length < sealed.length; length += 1) {
    expect(() => box.open(sealed.subarray(0, length), 'ck_1'), `${length} bytes`).toThrow()
  }
  expect(() => box.open(sealed, 'ck_2')).toThrow()
})

test('an older key still opens what it sealed; an unknown one is named', () => {
  const [old, fresh] = [makeKey(), makeKey()]
  const sealed = createSecretBox([old]).seal('a secret', 'ck_1')
  const rotated = createSecretBox([fresh, old])
  expect(rotated.open(sealed, 'ck_1')).toBe('a secret')
  expect(createSecretBox([fresh]).open(rotated.seal('new', 'ck_1'), 'ck_1')).toBe('new')
  expect(() => createSecretBox([fresh]).open(sealed, 'ck_1')).toThrow(
    /sealed with account key [0-9a-f]{16}, which is not/,
  )
})
