import { type Horizon, NoAnswer } from './horizon.ts'
import { textIn } from './replies.ts'

/** Rejects unless Horizon is of the configured network. */
export async function checkIdentity(horizon: Horizon, passphrase: string): Promise<void> {
  const root = await horizon.get('/')
  if (root === null) throw new NoAnswer('/', 'it has no root')
  const told = textIn(root.network_passphrase, 'network_passphrase')
  if (told !== passphrase)
    throw new Error(`Horizon is of the network "${told}", configured is "${passphrase}"`)
}
