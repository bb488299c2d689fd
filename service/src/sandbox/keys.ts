import { join } from 'node:path'
import { createKeystore, newMnemonic, openKeystore } from '../signer/keystore.ts'

const KEYSTORE_FILE = 'keystore.json'

/** The sandbox's coins are worth nothing, and its passphrase is no secret. */
const PASSPHRASE = 'cambist sandbox'
/** A start has to be quick; a production keystore is stretched 128 times longer. */
const SCRYPT_N = 2 ** 10

/** The seed of this data folder's sandbox; made at the first start. */
export async function openSandboxSeed(dataDir: string, nowMs: number): Promise<Uint8Array> {
  const path = join(dataDir, KEYSTORE_FILE)
  const known = { path, passphrase: PASSPHRASE, environment: 'sandbox' as const }
  const opened = await openKeystore(known)
  if (opened.ok) return opened.value.seed
  if (opened.rejection.code !== 'keystore_missing') throw new Error(opened.rejection.message)
  const made = await createKeystore({ ...known, mnemonic: newMnemonic(), nowMs, scryptN: SCRYPT_N })
  if (!made.ok) throw new Error(made.rejection.message)
  return openSandboxSeed(dataDir, nowMs)
}
