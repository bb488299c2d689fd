import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createLogger } from './log.ts'

test('fields that hold secrets are hidden, should anybody log them; the rest is written', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cambist-log-'))
  const file = join(folder, 'service.log')
  const logger = createLogger('info', file)
  logger.info({ token: 'canary-1', order: { seal: 'canary-2', id: 'CB1' } }, 'an order')
  logger.warn({ options: { passphrase: 'canary-3' }, api_secret: 'canary-4', mnemonic: 'canary-5' }, 'keys')
  logger.debug({ order: 'CB2' }, 'below the level')
  const read = () => (existsSync(file) ? readFileSync(file, 'utf8') : '')
  await expect.poll(read).toContain('"msg":"keys"')
  const text = read()
  rmSync(folder, { recursive: true })
  expect(text).not.toContain('canary')
  const lines = text.trim().split('\n')
  expect(lines).toHaveLength(2)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 30,
    token: '[hidden]',
    order: { seal: '[hidden]', id: 'CB1' },
    msg: 'an order',
  })
})

/** Writes lines for a while, says so, and ends. */
const WRITES = `
  const { createLogger } = await import(${JSON.stringify(new URL('./log.ts', import.meta.url).href)})
  const logger = createLogger('info', '/dev/full')
  const text = 'x'.repeat(100_000)
  for (let line = 0; line < 300; line += 1) {
    logger.info({ line, text }, 'a line')
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  console.log('wrote')
  process.exit()`

test('a disk that is full under the log neither ends a process nor keeps it from ending', async () => {
  const args = ['--input-type=module', '--eval', WRITES]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    timeout: 110_000,
    killSignal: 'SIGKILL',
  })
  expect(stdout).toBe('wrote\n')
})
