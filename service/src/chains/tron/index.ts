import { assert } from '../../domain/assert.ts'
import { BoundedMap } from '../../domain/bounded_map.ts'
import { type AssetId, nativeAsset } from '../../domain/catalog/assets.ts'
import type { Intent } from '../../domain/payouts/intent.ts'
import { BALANCE_LAG_BLOCKS, type Chain } from '../chain.ts'
import { listedTokens } from '../listed_tokens.ts'
import { hexOf, parseAddress } from './address.ts'
import { balance } from './balance.ts'
import { bid, estimatePayout } from './bid.ts'
import { blocksOf } from './blocks.ts'
import { broadcast } from './broadcast.ts'
import { checkIdentity, requireFirstBlock } from './check_identity.ts'
import { draft, raise } from './draft.ts'
import { isOver, type Looking, lookup } from './lookup.ts'
import { mempoolReader } from './mempool.ts'
import { connect } from './rpc.ts'
import type { TronSettings } from './settings.ts'
import { transfersToOurs } from './transfers.ts'

/** TRON through the HTTP API of a full node. No nonce and no coin: attempts exclude each other by the time they are valid in. */
export function tron(settings: TronSettings): Chain {
  const { id, rpcUrl, solidUrl, genesisBlockId, feeLimitSunMax, timeoutMs, reserveAddress } = settings
  const rpc = connect(rpcUrl, timeoutMs, solidUrl)
  const blocks = blocksOf(rpc)
  const looking: Looking = { rpc, blocks, soFar: new BoundedMap(1_000) }
  const native = nativeAsset(id).id
  const tokens = listedTokens(settings, inHex)
  const listed = { native, tokens }
  const contracts = new Map([...tokens].map(([contract, asset]) => [asset, contract]))
  const contractOf = (asset: AssetId) => {
    if (asset === native) return null
    const contract = contracts.get(asset)
    assert(contract !== undefined, `${asset} has a contract on ${id}`)
    return contract
  }
  const parse = (text: string) => parseAddress(text, new Set(tokens.keys()))
  const bidder = { rpc, blocks, feeLimitSunMax, reserveAddress, contractOf }
  const find = (txHash: string, attempt?: Intent) => lookup(rpc, blocks, native, txHash, attempt)
  return {
    id,
    family: 'tron',
    model: 'account',
    assets: [native, ...contracts.keys()],
    parseAddress: parse,
    checkIdentity: () => checkIdentity(rpc, blocks, genesisBlockId, tokens),
    head: async () => {
      const { height, hash, timeMs } = await blocks.newest('head')
      return { height, hash, timeMs }
    },
    finalBlock: async () => {
      const { height, hash } = await blocks.newest('solid')
      return { height, hash }
    },
    blockHash: async (height) => (await blocks.header(height))?.hash ?? null,
    readBlock: async (height, findOurs) => {
      const block = await blocks.at(height)
      if (block === null) return null
      const { hash, parentHash, timeMs, moves } = block
      return { height, hash, parentHash, timeMs, transfers: await transfersToOurs(moves, listed, findOurs) }
    },
    readMempool: mempoolReader(rpc, listed),
    lookup: find,
    estimatePayout: (asset) => estimatePayout(bidder, asset),
    bid: (outflow) => bid(bidder, outflow),
    draft: (outflow, feeBid, funds) => draft({ contractOf, parseAddress: parse }, outflow, feeBid, funds),
    raise,
    isOver: async (intent, txHash, between) => {
      const over = await isOver(looking, intent, txHash, between)
      if (over) await requireFirstBlock(blocks, genesisBlockId)
      return over
    },
    broadcast: (tx) => broadcast(rpc, find, tx),
    balance: (asset, addresses, height) =>
      balance({ rpc, blocks }, asset, contractOf(asset), addresses, height),
    balanceLagBlocks: BALANCE_LAG_BLOCKS,
    minedNonce: async () => {
      throw new Error('accounts of TRON have no nonce')
    },
  }
}

function inHex(contract: string): string | null {
  return parseAddress(contract, new Set()).ok ? hexOf(contract) : null
}
