import { type AssetId, assetOf } from '../../domain/catalog/assets.ts'
import { base58Of } from './address.ts'
import { callConstantly, wordIn } from './balance.ts'
import type { Blocks } from './blocks.ts'
import type { Rpc } from './rpc.ts'

/** keccak256("decimals()"), first four bytes. */
const DECIMALS = '313ce567'

/** Rejects unless the node's first block is the configured one, and every listed token is there as we count it. */
export async function checkIdentity(
  rpc: Rpc,
  blocks: Blocks,
  genesisBlockId: string,
  tokens: ReadonlyMap<string, AssetId>,
): Promise<void> {
  await requireFirstBlock(blocks, genesisBlockId)
  await blocks.newest('solid')
  for (const [contract, asset] of tokens) {
    const decimals = wordIn(
      await callConstantly(rpc, 'wallet', contract, contract, DECIMALS),
      `decimals of ${base58Of(contract)}`,
    )
    const { chainDecimals } = assetOf(asset)
    if (decimals !== BigInt(chainDecimals))
      throw new Error(
        `${asset}: the contract ${base58Of(contract)} has ${decimals} decimals, the catalogue ${chainDecimals}`,
      )
  }
}

/** Also asked after a node said that a transaction never happens: another network would say so of any. */
export async function requireFirstBlock(blocks: Blocks, genesisBlockId: string): Promise<void> {
  for (const which of ['head', 'solid'] as const) {
    const first = await blocks.first(which)
    if (first?.hash === genesisBlockId) continue
    const whose = which === 'head' ? "the TRON node's first block" : 'the first block that is solid'
    throw new Error(`${whose} is ${first?.hash}, configured is ${genesisBlockId}`)
  }
}
