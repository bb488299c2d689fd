import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
