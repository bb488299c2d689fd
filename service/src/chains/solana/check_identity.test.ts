import { expect, test } from 'vitest'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from './address.ts'
import { blocksOf } from './blocks.ts'
import { checkIdentity } from './check_identity.ts'
import { scriptedNode } from './testing/scripted_node.ts'

const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
const listed = new Map<string, AssetId>([[mint, 'USDC:SOL']])

function check(owner: string, decimals: number, told = 'genesis'): Promise<void> {
  const data = Buffer.alloc(82)
  data[44] = decimals
  data[45] = 1
  const account = { lamports: 1, owner, data: [data.toString('base64'), 'base64'] }
  const rpc = scriptedNode({
    getGenesisHash: () => told,
    getSlot: () => 7,
    getBlock: () => ({
      ...{ blockhash: 'hash', previousBlockhash: 'parent', parentSlot: 6, blockHeight: 6, blockTime: 1 },
      ...{ transactions: [], rewards: [] },
    }),
    getMultipleAccounts: () => ({ context: { slot: 7 }, value: [account] }),
  })
  return checkIdentity(rpc, blocksOf(rpc), 'genesis', listed)
}

test('a listed token is a mint of the program of tokens, with the decimals that it is counted in', async () => {
  await expect(check(TOKEN_PROGRAM, 6)).resolves.toBeUndefined()
  await expect(check(TOKEN_PROGRAM, 9)).rejects.toThrow('no mint with 6 decimals')
  await expect(check('1'.repeat(32), 6)).rejects.toThrow('no mint with 6 decimals')
  await expect(check(TOKEN_PROGRAM, 6, 'another')).rejects.toThrow('genesis hash')
})

test('a token of Token-2022 is refused by that name', async () => {
  await expect(check(TOKEN_2022_PROGRAM, 6)).rejects.toThrow('Token-2022, whose tokens are not supported')
})
