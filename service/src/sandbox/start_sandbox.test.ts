import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CommandRefused } from '../command_refused.ts'
import { readSandboxConfig } from '../config/sandbox_config.ts'
import { createLogger } from '../log.ts'
import { startSandbox } from './start_sandbox.ts'

/**
 * What: a part of a sandbox that does not end keeps no other from ending, and one that cannot begin is named.
 * How: a whole sandbox with one small chain; its mailbox, which ends first, says that it did not; its chain's file is damaged.
 */
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cambist-sandbox-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function start() {
  const config = readSandboxConfig({ CAMBIST_DATA_DIR: folder, PORT: '0' })
  return startSandbox({ config, logger: createLogger('silent'), networks: ['XRP'], mining: 'manual' })
}

async function answers(databaseUrl: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: databaseUrl })
  client.on('error', () => {})
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  )
}

test('database, chains and folder are let go although a part of the devnet does not end', async () => {
  const { devnet, databaseUrl, stop } = await start()
  const { mailbox, networks } = devnet
  const endMailbox = mailbox.stop
  Object.assign(mailbox, { stop: () => endMailbox().then(() => Promise.reject(new Error('it hangs'))) })
  await expect(stop()).rejects.toThrow('it hangs')
  expect(await answers(databaseUrl)).toBe(false)
  await expect(fetch(networks.XRP?.rpcUrl ?? '')).rejects.toThrow('fetch failed')
  expect(existsSync(join(folder, 'devnet/devnet.lock'))).toBe(false)
  expect(existsSync(join(folder, 'sandbox.lock'))).toBe(false)
})

test('a damaged chain is named, with what begins anew', async () => {
  const { stop } = await start()
  await stop()
  const file = join(folder, 'devnet/xrp/chain.jsonl')
  writeFileSync(file, '\0\0\0\n')
  const refusal = await start().catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(CommandRefused)
  expect(String(refusal)).toContain(`${file} is damaged: its line 1 cannot be read. \`npm start -- --reset\``)
  expect(existsSync(join(folder, 'sandbox.lock'))).toBe(false)
})

test('a network that is off is named to whoever mines on it', async () => {
  const { service, stop } = await start()
  const answer = await fetch(`${service.baseUrl}/sandbox/mine`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ network: 'SOL', blocks: 1 }),
  })
  const { error_code, message, details } = (await answer.json()) as Record<string, unknown>
  await stop()
  const said = 'SOL is not running in this devnet'
  expect({ status: answer.status, error_code, message, details }).toEqual({
    status: 400,
    error_code: 'INVALID_PARAMETER',
    message: said,
    details: [{ field: 'network', message: said }],
  })
})
