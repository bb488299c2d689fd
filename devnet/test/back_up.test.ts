import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { backerUp, isWhole } from '../src/evm/back_up.ts'
import { restoreIfBroken } from '../src/evm/start_anvil.ts'
import { makeTemporaryFolder } from './harness.ts'

/**
 * What: whenever it is looked at, a node's state has a copy that is whole and of the last second, and a broken state is replaced by it.
 * How: files like those that anvil writes, with the age that they would have, and every beginning of one, which is what anvil
 * leaves when it is killed while it writes.
 */
const folder = makeTemporaryFolder()
afterAll(() => folder.remove())

const path = `${folder.path}/state.json`
const copy = `${path}.copy`

beforeEach(() => {
  for (const file of [path, copy, `${path}.broken`]) rmSync(file, { force: true })
})

/** In the order in which anvil writes it, with everything that may close too early. */
const stateOf = (block: number) =>
  JSON.stringify({
    block: { number: block, quoted: 'a "}]}" and \\' },
    accounts: { '0x1': { storage: {}, code: '0x' } },
    best_block_number: block,
    blocks: [{ header: { extra: [[]] }, transactions: [{ access: [[1, [2]]] }] }],
    transactions: [[{ a: [[]] }]],
    historical_states: [
      ['0x2', { accounts: { '0x1': { storage: { a: [[]] } } }, block_hashes: { 1: '"]]}' } }],
    ],
  })

test('a state is copied whenever it is looked at, also right after each time that it was written', async () => {
  const backUp = backerUp(path)
  for (let turn = 1; turn <= 5; turn++) {
    writeFileSync(path, stateOf(turn))
    // A tenth of a second ago, and later than the turn before.
    const writtenS = Date.now() / 1_000 - 0.1 + turn / 100
    utimesSync(path, writtenS, writtenS)
    await backUp()
    expect(readFileSync(copy, 'utf8')).toBe(stateOf(turn))
  }
})

test('what anvil has not written to its end is not copied', async () => {
  const backUp = backerUp(path, 0)
  writeFileSync(path, stateOf(1))
  await backUp()
  const next = stateOf(2)
  for (const length of [0, 1, next.length / 2, next.length - 1]) {
    writeFileSync(path, next.slice(0, length))
    await backUp()
    expect(readFileSync(copy, 'utf8')).toBe(stateOf(1))
  }
})

test('what is being written when it is looked at is waited for', async () => {
  writeFileSync(path, stateOf(1).slice(0, 100))
  const backingUp = backerUp(path)()
  appendFileSync(path, stateOf(1).slice(100))
  await backingUp
  expect(readFileSync(copy, 'utf8')).toBe(stateOf(1))
})

test('no beginning of a state is whole, with the key that is looked for and without', () => {
  for (const text of [stateOf(3), stateOf(3).replace('historical_states', 'of_another_release')]) {
    for (let length = 0; length < text.length; length++)
      expect(isWhole(Buffer.from(text.slice(0, length))), text.slice(0, length)).toBe(false)
    expect(isWhole(Buffer.from(text))).toBe(true)
    expect(isWhole(Buffer.from(`${text}]}`)), 'with the end of a longer one behind it').toBe(false)
  }
})

test('before there is a state there is nothing to copy', async () => {
  await backerUp(path)()
  expect(existsSync(copy)).toBe(false)
})

test('a broken state is replaced by its copy, and by nothing where that is broken too', () => {
  const said: string[] = []
  const restore = () => restoreIfBroken(path, (line) => said.push(line))
  const half = stateOf(2).slice(0, 100)
  writeFileSync(path, half)
  writeFileSync(copy, stateOf(1))
  restore()
  expect([readFileSync(path, 'utf8'), readFileSync(`${path}.broken`, 'utf8')]).toEqual([stateOf(1), half])
  restore()
  expect(said).toEqual([expect.stringContaining('taking its last copy')])
  writeFileSync(path, half)
  writeFileSync(copy, half)
  restore()
  expect([existsSync(path), readFileSync(`${path}.broken`, 'utf8')]).toEqual([false, half])
  expect(said[1]).toContain('so is its copy')
})

const LONGER_THAN_IT_IS = '/sys/devices/system/cpu/online'

/**
 * A file of the kernel says that it is longer than what it gives, as a file that was cut off does; in a process of
 * its own, because whoever waits for the rest waits for ever.
 */
test('a state file that became shorter while it was read is not waited for', () => {
  symlinkSync(LONGER_THAN_IT_IS, path)
  const module = new URL('../src/evm/back_up.ts', import.meta.url).href
  const script = `const { backerUp } = await import('${module}'); await backerUp('${path}', 0)()`
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { timeout: 60_000 })
  expect([status, existsSync(copy)]).toEqual([0, false])
})
