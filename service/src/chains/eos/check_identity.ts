import { PublicKey } from '@wharfkit/antelope'
import { readAccount } from './account.ts'
import type { Blocks } from './blocks.ts'
import type { Rpc } from './rpc.ts'
import type { EosSettings } from './settings.ts'

/**
 * Rejects unless the node is of the configured network and keeps traces, and the account obeys our key: names have no
 * checksum, and under one that is mistyped all deposits would be a stranger's.
 */
export async function checkIdentity(
  rpc: Rpc,
  blocks: Blocks,
  { account, publicKey }: Pick<EosSettings, 'account' | 'publicKey'>,
): Promise<void> {
  const { irreversible } = await blocks.info()
  await blocks.final(irreversible.height)
  const found = await readAccount(rpc, account)
  if (found === null) throw new Error(`there is no account ${account} on EOS yet`)
  const isOurs = found.activeKeys.some((key) => PublicKey.from(key).equals(publicKey))
  if (!isOurs) throw new Error(`the account ${account} does not obey the key ${publicKey}: it is not ours`)
}
