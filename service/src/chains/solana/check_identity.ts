import { type AssetId, assetOf } from '../../domain/catalog/assets.ts'
import { decimalsOfMint, readAccounts } from './accounts.ts'
import { TOKEN_2022_PROGRAM } from './address.ts'
import type { Blocks } from './blocks.ts'
import type { Rpc } from './rpc.ts'

/** Rejects unless the node is of the configured network, and every listed token is there as we count it. */
export async function checkIdentity(
  rpc: Rpc,
  blocks: Blocks,
  genesisHash: string,
  tokens: ReadonlyMap<string, AssetId>,
): Promise<void> {
  const told = await rpc.call('getGenesisHash')
  if (told !== genesisHash)
    throw new Error(`the Solana node's genesis hash is ${told}, configured is ${genesisHash}`)
  await blocks.head()
  if (tokens.size === 0) return
  const { accounts } = await readAccounts(rpc, [...tokens.keys()])
  for (const [index, [mint, asset]] of [...tokens].entries()) {
    const account = accounts[index] ?? null
    if (account?.owner === TOKEN_2022_PROGRAM)
      throw new Error(`${asset}: ${mint} is a mint of Token-2022, whose tokens are not supported`)
    const decimals = account === null ? undefined : decimalsOfMint(account)
    const { chainDecimals } = assetOf(asset)
    if (decimals !== chainDecimals)
      throw new Error(`${asset}: ${mint} is no mint with ${chainDecimals} decimals`)
  }
}
