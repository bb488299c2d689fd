import { isAddress } from '@solana/kit'
import { assert } from '../../domain/assert.ts'
import { BoundedMap } from '../../domain/bounded_map.ts'
import { type AssetId, nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { BALANCE_LAG_BLOCKS, type Chain } from '../chain.ts'
import { listedTokens } from '../listed_tokens.ts'
import { parseAddress } from './address.ts'
import { balance } from './balance.ts'
import { bid, estimatePayout } from './bid.ts'
import { blocksOf } from './blocks.ts'
import { broadcast } from './broadcast.ts'
import { checkIdentity } from './check_identity.ts'
import { draft, raise } from './draft.ts'
import { rentsOf } from './fees.ts'
import { isOver, type Looking, lookup } from './lookup.ts'
import { connect } from './rpc.ts'
import type { SolanaSettings } from './settings.ts'
import { transfersToOurs } from './transfers.ts'

/**
 * Solana through the JSON-RPC of a node. Slots are heights, and what is not final is nobody's word. No nonce and no coin:
 * attempts exclude each other by the blocks they are valid in.
 */
export function solana(settings: SolanaSettings): Chain {
  const { id, rpcUrl, genesisHash, feeLamportsMax, timeoutMs, reserveAddress } = settings
  const rpc = connect(rpcUrl, timeoutMs)
  const blocks = blocksOf(rpc)
  const looking: Looking = { rpc, blocks, soFar: new BoundedMap(1_000) }
  const native = nativeAsset(id).id
  const tokens = listedTokens(settings, (mint) => (isAddress(mint) ? mint : null))
  const mints = new Map([...tokens].map(([mint, asset]) => [asset, mint]))
  const mintOf = (asset: AssetId) => {
    if (asset === native) return null
    const mint = mints.get(asset)
    assert(mint !== undefined, `${asset} has a mint on ${id}`)
    return mint
  }
  const parse = (text: string) => parseAddress(text, new Set(tokens.keys()))
  const rents = rentsOf(rpc)
  const bidder = { rpc, blocks, rents, feeLamportsMax, reserveAddress, mintOf }
  const drafter = { mintOf, parseAddress: parse, feeLamportsMax }
  const find = (txHash: string) => lookup(rpc, blocks, native, txHash)
  return {
    id,
    family: 'solana',
    model: 'account',
    assets: [native, ...mints.keys()],
    parseAddress: parse,
    checkIdentity: () => checkIdentity(rpc, blocks, genesisHash, tokens),
    head: async () => {
      const { height, hash } = await blocks.head()
      return { height, hash }
    },
    blockHash: async (height) => (await blocks.header(height))?.hash ?? null,
    readBlock: async (height, findOurs) => {
      const block = await blocks.at(height)
      if (block === null) return null
      const { hash, parentHash, timeMs } = block
      const transfers = await transfersToOurs(block, { native, tokens }, findOurs)
      return { height, hash, parentHash, timeMs, transfers }
    },
    readMempool: async () => [],
    lookup: find,
    estimatePayout: (asset) => estimatePayout(bidder, asset),
    bid: (outflow) => bid(bidder, outflow),
    draft: (outflow, feeBid, funds) => draft(drafter, outflow, feeBid, funds),
    raise: (previous, feeBid) => raise(drafter, previous, feeBid),
    isOver: (intent, txHash, between) => isOver(looking, intent, txHash, between),
    broadcast: (tx) => broadcast(rpc, find, tx),
    balance: (asset, addresses, height) => balance({ rpc, blocks }, asset, mintOf(asset), addresses, height),
    balanceLagBlocks: BALANCE_LAG_BLOCKS,
    lockedUnits: async () => fromChainUnits(native, (await rents()).account).units,
    minedNonce: async () => {
      throw new Error('accounts of Solana have no nonce')
    },
  }
}
