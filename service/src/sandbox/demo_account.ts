import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { ensureAccount, type KeysPlace } from '../accounts/keys.ts'
import { ensureWebhookSecret } from '../accounts/webhook_secrets.ts'
import { readJson, writeJson } from './json_file.ts'

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
