import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CommandRefused } from '../command_refused.ts'
import { readSandboxConfig } from '../config/sandbox_config.ts'
import { createLogger } from '../log.ts'
import { emptyFolder, refuseForeignFolder } from './own_folder.ts'
import { resetSandbox } from './reset_sandbox.ts'
import { startSandbox } from './start_sandbox.ts'

/**
 * What: a sandbox begins in no folder that holds something of somebody else, and deletes nothing but what is its own.
 * How: folders as they may be; where it would start or delete, the command's own functions.
 */
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cambist-folder-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function put(...paths: readonly string[]): void {
  for (const path of paths) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), 'of somebody')
  }
}

test('--reset of a folder that was never a sandbox deletes nothing, and says why', async () => {
  put('thesis/chapter_1.txt', 'devnet/package.json')
  const config = readSandboxConfig({ CAMBIST_DATA_DIR: folder })
  await expect(resetSandbox(config)).rejects.toThrow(CommandRefused)
  await expect(resetSandbox(config)).rejects.toThrow('CAMBIST_DATA_DIR')
  expect(readdirSync(folder).sort()).toEqual(['devnet', 'thesis'])
  expect(existsSync(join(folder, 'thesis/chapter_1.txt'))).toBe(true)
})

test('a sandbox does not start in such a folder, and leaves nothing in it', async () => {
  put('thesis/chapter_1.txt')
  const config = readSandboxConfig({ CAMBIST_DATA_DIR: folder, PORT: '0' })
  const starting = startSandbox({ config, logger: createLogger('silent') })
  await expect(starting).rejects.toThrow('thesis is in it')
  expect(readdirSync(folder)).toEqual(['thesis'])
})

test.each([
  ['nothing', []],
  [
    'what a sandbox had written when it was killed at once',
    ['service.log', 'sandbox.lock.5f', 'marker.json.new'],
  ],
  ['a sandbox', ['marker.json', 'devnet/btc/blocks', 'notes.txt']],
  ['a sandbox of an earlier version', ['demo_account.json', 'keystore.json', 'devnet/btc/blocks']],
])('a folder with %s is taken', async (_what, paths) => {
  put(...paths)
  await refuseForeignFolder(folder)
})

test('what somebody has put beside a sandbox stays when it is deleted', async () => {
  put(
    'marker.json',
    'devnet/btc/blocks',
    'postgres/cluster/PG_VERSION',
    'sandbox.lock',
    'service.log',
    'notes.txt',
  )
  await emptyFolder(folder)
  expect(readdirSync(folder)).toEqual(['notes.txt'])
})

test('a folder in which nothing else is goes with it', async () => {
  put('marker.json', 'keystore.json', 'demo_account.json', 'sandbox.json.new', 'devnet/btc/blocks')
  await emptyFolder(folder)
  expect(existsSync(folder)).toBe(false)
})

test('a sandbox of which nothing starts any more is deleted', async () => {
  put('marker.json', 'devnet/xrp/chain.jsonl', 'devnet/eth/state.json', 'postgres/cluster/PG_VERSION')
  writeFileSync(join(folder, 'devnet/xrp/chain.jsonl'), '\0\0\0\n')
  await resetSandbox(readSandboxConfig({ CAMBIST_DATA_DIR: folder }))
  expect(existsSync(folder)).toBe(false)
})
