import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { tryLock } from '../src/processes/lock_file.ts'

/**
 * What: a lock is its owner's as long as that lives, and nobody's afterwards.
 * How: files as they are left behind.
 */
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cambist-lock-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('who lives keeps its lock, and leaves nothing behind', () => {
  const path = join(folder, 'a.lock')
  const lock = tryLock(path)
  expect(tryLock(path)).toMatchObject({ heldBy: { pid: process.pid } })
  if ('release' in lock) lock.release()
  expect(readdirSync(folder)).toEqual([])
})

test.each(['', '\0\0\0\0', '{"pid": 1'])(
  'what a cut of the power left of a lock (%j) is taken over',
  (left) => {
    const path = join(folder, 'a.lock')
    writeFileSync(path, left)
    const lock = tryLock(path)
    expect(lock).toHaveProperty('release')
    if ('release' in lock) lock.release()
    expect(readdirSync(folder)).toEqual([])
  },
)
