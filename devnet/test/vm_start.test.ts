import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeTemporaryFolder, runScript } from './harness.ts'

/**
 * What: a Surfpool that never leaves its native code keeps neither the start of the local Solana nor the end of its process.
 * How: a pipe that nobody writes to is opened in its place, in processes of their own.
 */
async function start(stuckCount: number, ...args: readonly string[]) {
  const folder = makeTemporaryFolder()
  onTestFinished(folder.remove)
  for (let name = 1; name <= stuckCount; name++) mkdirSync(join(folder.path, String(name)))
  expect(spawnSync('mkfifo', [join(folder.path, 'pipe')]).status).toBe(0)
  const { child, said } = await runScript<string>('run_stuck_vm.ts', folder.path, ...args)
  onTestFinished(() => void child.kill('SIGKILL'))
  const [code] = child.exitCode === null ? await once(child, 'exit') : [child.exitCode]
  return { said, code }
}

/** Longer than a test waits. */
const FOR_EVER = '1000000'

test('another one takes the place of a virtual machine that says nothing', async () => {
  expect(await start(1, '0', FOR_EVER)).toEqual({ said: 'started', code: 7 })
})

test('it is said in words that none of them speaks, and the process ends', async () => {
  expect(await start(3, '0', '1')).toEqual({
    said: expect.stringMatching(/^The local Solana does not start: 3 of its virtual machines/),
    code: 7,
  })
})

test('a start that is given up waits for none of them', async () => {
  expect(await start(3, FOR_EVER, FOR_EVER, 'interrupts')).toEqual({ said: 'interrupted', code: 7 })
})
