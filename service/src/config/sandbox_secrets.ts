import { createHash, createSecretKey, type KeyObject } from 'node:crypto'

/**
 * The sandbox's keys are known to everyone, on purpose: its data survives a restart without a secret to look
 * after. `serve` refuses them on mainnet.
 */
export type SandboxPurpose = 'account' | 'order-seal' | 'order-token'

const purposes: readonly SandboxPurpose[] = ['account', 'order-seal', 'order-token']

export function sandboxKey(purpose: SandboxPurpose): KeyObject {
  return createSecretKey(createHash('sha256').update(`cambist-sandbox-${purpose}`).digest())
}

export function isSandboxKey(key: KeyObject): boolean {
  return purposes.some((purpose) => sandboxKey(purpose).equals(key))
}
