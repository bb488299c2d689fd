import { spawnSync } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { makeTemporaryFolder } from './harness.ts'

/**
 * What: copying a node's state never hangs, though the node cuts the file off and writes it anew while it is copied.
 * How: a file of the kernel says that it is longer than what it gives, as a file that was cut off does; in a process of
 * its own, because whoever waits for the rest waits for ever.
 */
const folder = makeTemporaryFolder()
afterAll(() => folder.remove())

const LONGER_THAN_IT_IS = '/sys/devices/system/cpu/online'

test('a state file that became shorter is copied, and no more', () => {
  const state = `${folder.path}/state.json`
  symlinkSync(LONGER_THAN_IT_IS, state)
  const module = new URL('../src/evm/back_up.ts', import.meta.url).href
  const script = `const { backUp } = await import('${module}'); backUp('${state}')`
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { timeout: 60_000 })
  expect([status, existsSync(`${state}.copy`)]).toEqual([0, true])
})
