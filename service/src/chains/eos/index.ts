import { assert } from '../../domain/assert.ts'
import { BoundedMap } from '../../domain/bounded_map.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { accept } from '../../domain/outcome.ts'
import { BALANCE_LAG_BLOCKS, type Chain } from '../chain.ts'
import { parsePlace, parseTagged, textOf } from './address.ts'
import { balance } from './balance.ts'
import { bid, estimatePayout } from './bid.ts'
import { blocksOf } from './blocks.ts'
import { broadcast } from './broadcast.ts'
import { checkIdentity } from './check_identity.ts'
import { draft, raise } from './draft.ts'
import { isOver, type Looking, lookup } from './lookup.ts'
import { connect } from './rpc.ts'
import type { EosSettings } from './settings.ts'
import { transfersToOurs } from './transfers.ts'

/**
 * EOS through a node that keeps traces. All deposits arrive at one account, told apart by memos. Only irreversible blocks are
 * told, so that nothing is ever taken back. No nonce and no coin: attempts exclude each other by the time they are valid in.
 */
export function eos(settings: EosSettings): Chain {
  const { id, rpcUrl, chainId, account, timeoutMs } = settings
  const rpc = connect(rpcUrl, timeoutMs)
  const blocks = blocksOf(rpc, chainId)
  const native = nativeAsset(id).id
  const accountOf = (address: string) => {
    const place = parsePlace(address)
    assert(place.ok, `${address} is an address of ${id}`)
    return place.value.account
  }
  const looking: Looking = { rpc, blocks, soFar: new BoundedMap(1_000) }
  const find: Chain['lookup'] = (txHash, attempt) => lookup(looking, txHash, attempt)
  return {
    id,
    family: 'eos',
    model: 'account',
    assets: [native],
    parseAddress: (text) => {
      const place = parsePlace(text)
      return place.ok ? accept(textOf(place.value)) : place
    },
    parseTagged,
    accountOf,
    checkIdentity: () => checkIdentity(rpc, blocks, settings),
    head: async () => {
      const { irreversible, head } = await blocks.info()
      // What is irreversible may honestly be old; what is newest is not, unless the node is catching up.
      return { ...irreversible, timeMs: head.timeMs }
    },
    blockHash: async (height) => (await blocks.final(height))?.hash ?? null,
    readBlock: async (height, findOurs) => {
      const block = await blocks.final(height)
      if (block === null) return null
      const { hash, parentHash, timeMs } = block
      return { height, hash, parentHash, timeMs, transfers: await transfersToOurs(block, findOurs) }
    },
    readMempool: async () => [],
    lookup: find,
    estimatePayout: () => estimatePayout({ rpc, account }),
    bid: (outflow) => bid({ rpc, blocks, account }, outflow),
    draft: (outflow, feeBid, funds) => draft(settings, outflow, feeBid, funds),
    raise,
    isOver: (intent, txHash, between) => isOver(looking, intent, txHash, between),
    broadcast: (tx) => broadcast(rpc, find, tx),
    balance: (asset, addresses, height) =>
      balance({ rpc, blocks }, asset, new Set(addresses.map(accountOf)), height),
    balanceLagBlocks: BALANCE_LAG_BLOCKS,
    minedNonce: async () => {
      throw new Error('accounts of EOS have no nonce')
    },
  }
}
