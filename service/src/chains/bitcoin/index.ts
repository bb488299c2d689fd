import { assert } from '../../domain/assert.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { accept } from '../../domain/outcome.ts'
import type { Chain } from '../chain.ts'
import { parseAddress } from './addresses.ts'
import { watchBalance } from './balance.ts'
import { broadcast } from './broadcast.ts'
import { draft, raise } from './draft.ts'
import { areExcluded, isUnspent } from './exclusion.ts'
import { bid, estimatePayout } from './fees.ts'
import { checkIdentity } from './identity.ts'
import { lookup } from './lookup.ts'
import { watchMempool } from './mempool.ts'
import { blockHash, head, readBlock } from './read_block.ts'
import { connect } from './rpc.ts'
import { BITCOIN, type BitcoinSettings } from './settings.ts'

export type { BitcoinSettings } from './settings.ts'

const SCAN_TIMEOUT_MS = 15 * 60_000

/** Bitcoin by a node of our own over JSON-RPC; nothing is asked of its wallet. */
export function bitcoin(settings: BitcoinSettings): Chain {
  const { id, network, rpcUrl, timeoutMs, milliSatPerVbFallback, milliSatPerVbMax } = settings
  assert(milliSatPerVbFallback <= milliSatPerVbMax, 'the fallback fee is within the cap')
  const rpc = connect(rpcUrl, timeoutMs)
  const scanRpc = connect(rpcUrl, settings.scanTimeoutMs ?? SCAN_TIMEOUT_MS)

  return {
    id,
    family: 'bitcoin',
    model: 'coins',
    assets: [BITCOIN],
    parseAddress(text) {
      const parsed = parseAddress(network, text)
      return parsed.ok ? accept(parsed.value.canonical) : parsed
    },
    checkIdentity: () => checkIdentity(rpc, network),
    head: () => head(rpc),
    blockHash: (height) => blockHash(rpc, height),
    readBlock: (height, findOurs) => readBlock(rpc, network, height, findOurs),
    readMempool: watchMempool(rpc, network),
    lookup: (txHash) => lookup(rpc, txHash),
    estimatePayout: (asset) => estimatePayout(rpc, settings, asset),
    bid: (outflow) => bid(rpc, settings, outflow),
    draft: (outflow, feeBid, funds) => draft(settings, outflow, feeBid, funds),
    raise: (previous, feeBid) => raise(settings, previous, feeBid),
    broadcast: (tx) => broadcast(rpc, tx),
    balance: watchBalance(scanRpc),
    minedNonce: async () => {
      throw new Error('bitcoin pays with coins and has no nonces')
    },
    isUnspent: (coin) => isUnspent(rpc, coin),
    areExcluded: (attempts) => areExcluded(rpc, chainFacts[id].confirmations, attempts),
  }
}
