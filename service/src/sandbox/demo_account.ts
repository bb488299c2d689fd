import { randomBytes } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureAccount, type KeysPlace } from '../accounts/keys.ts'
import { ensureWebhookSecret } from '../accounts/webhook_secrets.ts'

export type DemoAccount = {
  readonly api_key: string
  readonly api_secret: string
  readonly webhook_secret: string
}

const ACCOUNT = { accountId: 'acc_sandbox00', name: 'Sandbox demo account', email: 'demo@sandbox.test' }

/** The demo account and its key; the same as long as the data folder lives. */
export async function openDemoAccount(dataDir: string, place: KeysPlace): Promise<DemoAccount> {
  const path = join(dataDir, 'demo_account.json')
  const account = (await readJson<DemoAccount>(path)) ?? makeAccount()
  await writeJson(path, account)
  await ensureAccount(place, ACCOUNT, { keyId: account.api_key, secret: account.api_secret })
  await ensureWebhookSecret(place, ACCOUNT.accountId, account.webhook_secret)
  return account
}

function makeAccount(): DemoAccount {
  return {
    api_key: `ck_sandbox${randomBytes(6).toString('hex')}`,
    api_secret: randomBytes(32).toString('hex'),
    webhook_secret: `whsec_${randomBytes(24).toString('base64')}`,
  }
}

async function readJson<Value>(path: string): Promise<Value | null> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Value
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new Error(`${path} cannot be read; start with --reset to begin anew`, { cause: error })
  }
}

/** Whole or not at all: a reader never sees half a file. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  const draft = `${path}.new`
  await writeFile(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
  await rename(draft, path)
}
