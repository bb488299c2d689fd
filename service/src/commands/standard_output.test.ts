import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

/**
 * What: whoever is told by exit 0 that a command did its work has what it printed.
 * How: the real command in a shell that leads its output to a device that is always full, and to a reader that leaves.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-output-'))
afterAll(() => rmSync(folder, { recursive: true }))

const CLI = join(import.meta.dirname, '../cli.ts')

function inShell(line: string) {
  const { status, stderr } = spawnSync('bash', ['-c', `set -o pipefail; ${line}`], {
    encoding: 'utf8',
    env: { ...process.env, NODE: process.execPath, CLI, FOLDER: folder },
  })
  return { status, stderr }
}

test.runIf(existsSync('/dev/full'))('words that a full disk took are no success', () => {
  writeFileSync(join(folder, 'passphrase'), 'of a test\n')
  const create = 'keystore create "$FOLDER/keystore.json" --passphrase-file "$FOLDER/passphrase" --test'
  const { status, stderr } = inShell(`"$NODE" "$CLI" ${create} > /dev/full`)
  expect(existsSync(join(folder, 'keystore.json'))).toBe(true)
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^Not everything could be printed \(ENOSPC/)])
})

test('a reader that leaves early has what it wanted', () => {
  expect(inShell('"$NODE" "$CLI" openapi | head -1')).toEqual({ status: 0, stderr: '' })
})
